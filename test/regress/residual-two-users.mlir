// A result with two users, one of which is a residual add.
// REQUIRES: run
// RUN: cleave check %s

cleave.mesh @m = <["dp"=2, "tp"=2]>

func.func @forward(%x: tensor<8x8xf32> {cleave.sharding = #cleave.sharding<@m, [{"dp"}, {}]>},
                   %up: tensor<8x8xf32> {cleave.sharding = #cleave.sharding<@m, [{}, {"tp"}]>},
                   %down: tensor<8x8xf32> {cleave.sharding = #cleave.sharding<@m, [{"tp"}, {}]>})
    -> tensor<8x8xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<8x8xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<8x8xf32>)
    -> tensor<8x8xf32>
  %h = linalg.matmul ins(%x, %up : tensor<8x8xf32>, tensor<8x8xf32>)
    outs(%init : tensor<8x8xf32>) -> tensor<8x8xf32>
  %g = linalg.matmul ins(%h, %down : tensor<8x8xf32>, tensor<8x8xf32>)
    outs(%init : tensor<8x8xf32>) -> tensor<8x8xf32>
  %y = linalg.add ins(%h, %g : tensor<8x8xf32>, tensor<8x8xf32>)
    outs(%empty : tensor<8x8xf32>) -> tensor<8x8xf32>
  return %y : tensor<8x8xf32>
}
