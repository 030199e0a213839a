// Matrix times vector, vector times matrix, and vector times vector in f64.
// REQUIRES: run
// RUN: cleave check %s

cleave.mesh @m = <["a"=3]>

func.func @forward(
    %x: tensor<8x7xf64> {cleave.sharding = #cleave.sharding<@m, [{"a"}, {}]>},
    %v: tensor<7xf64>,
    %u: tensor<8xf64> {cleave.sharding = #cleave.sharding<@m, [{"a"}]>})
    -> (tensor<8xf64>, tensor<7xf64>, tensor<f64>) {
  %z = arith.constant 0.0 : f64
  %e = tensor.empty() : tensor<8xf64>
  %i = linalg.fill ins(%z : f64) outs(%e : tensor<8xf64>) -> tensor<8xf64>
  %y = linalg.matvec ins(%x, %v : tensor<8x7xf64>, tensor<7xf64>) outs(%i :
    tensor<8xf64>) -> tensor<8xf64>
  %e1 = tensor.empty() : tensor<7xf64>
  %i1 = linalg.fill ins(%z : f64) outs(%e1 : tensor<7xf64>) -> tensor<7xf64>
  %y1 = linalg.vecmat ins(%u, %x : tensor<8xf64>, tensor<8x7xf64>) outs(%i1 :
    tensor<7xf64>) -> tensor<7xf64>
  %e2 = tensor.empty() : tensor<f64>
  %i2 = linalg.fill ins(%z : f64) outs(%e2 : tensor<f64>) -> tensor<f64>
  %d = linalg.dot ins(%y, %u : tensor<8xf64>, tensor<8xf64>) outs(%i2 :
    tensor<f64>) -> tensor<f64>
  return %y, %y1, %d : tensor<8xf64>, tensor<7xf64>, tensor<f64>
}
