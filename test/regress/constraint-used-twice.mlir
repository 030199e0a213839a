// One constraint has many users, some of which want another sharding.
// REQUIRES: run
// RUN: cleave check %s

cleave.mesh @m = <["a"=2]>

func.func @forward(%x: tensor<8x8xf32>) -> (tensor<8x8xf32>, tensor<8x8xf32>) {
  %cut = cleave.constraint %x <@m, [{"a"}, {}]> : tensor<8x8xf32>
  %empty = tensor.empty() : tensor<8x8xf32>
  %y = linalg.add ins(%cut, %cut : tensor<8x8xf32>, tensor<8x8xf32>)
    outs(%empty : tensor<8x8xf32>) -> tensor<8x8xf32>
  %t = linalg.transpose ins(%cut : tensor<8x8xf32>)
    outs(%empty : tensor<8x8xf32>) permutation = [1, 0]
  %other = cleave.constraint %cut <@m, [{}, {"a"}]> : tensor<8x8xf32>
  %z = linalg.mul ins(%t, %other : tensor<8x8xf32>, tensor<8x8xf32>)
    outs(%empty : tensor<8x8xf32>) -> tensor<8x8xf32>
  return %y, %z : tensor<8x8xf32>, tensor<8x8xf32>
}
