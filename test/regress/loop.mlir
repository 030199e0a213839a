// A loop carries a value whose cut follows from inside.
// REQUIRES: run
// RUN: cleave check %s

cleave.mesh @m = <["a"=2]>

func.func @forward(%x: tensor<8x8xf32> {cleave.sharding = #cleave.sharding<@m, [{"a"}, {}]>},
                   %w: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<8x8xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<8x8xf32>)
    -> tensor<8x8xf32>
  %y = scf.for %i = %c0 to %c3 step %c1 iter_args(%h = %x)
      -> (tensor<8x8xf32>) {
    %p = linalg.matmul ins(%h, %w : tensor<8x8xf32>, tensor<8x8xf32>)
      outs(%init : tensor<8x8xf32>) -> tensor<8x8xf32>
    scf.yield %p : tensor<8x8xf32>
  }
  return %y : tensor<8x8xf32>
}
