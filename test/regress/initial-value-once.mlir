// What a product adds to counts once, not once per rank.
// REQUIRES: run
// RUN: cleave check %s

cleave.mesh @m = <["a"=4]>

func.func @forward(%x: tensor<6x8xf32> {cleave.sharding = #cleave.sharding<@m, [{}, {"a"}]>},
                   %w: tensor<8x4xf32> {cleave.sharding = #cleave.sharding<@m, [{"a"}, {}]>},
                   %init: tensor<6x4xf32>) -> tensor<6x4xf32> {
  %y = linalg.matmul ins(%x, %w : tensor<6x8xf32>, tensor<8x4xf32>)
    outs(%init : tensor<6x4xf32>) -> tensor<6x4xf32>
  return %y : tensor<6x4xf32>
}
