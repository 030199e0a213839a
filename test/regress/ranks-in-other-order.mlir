// A mesh that lists its ranks in another order, with a weight and a result that
// is moved.
// REQUIRES: run
// RUN: cleave check %s

cleave.mesh @m = <["a"=2, "b"=2], ranks=[3, 1, 0, 2]>

func.func @forward(
    %x: tensor<8x9xf32>
      {cleave.sharding = #cleave.sharding<@m, [{"a"}, {"b"}]>},
    %w: tensor<9x4xf32>
      {cleave.weight = "w", cleave.sharding = #cleave.sharding<@m, [{"b"}, {}]>})
    -> (tensor<8x4xf32> {cleave.sharding = #cleave.sharding<@m, [{}, {"a"}]>}) {
  %z = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<8x4xf32>
  %i = linalg.fill ins(%z : f32) outs(%e : tensor<8x4xf32>) -> tensor<8x4xf32>
  %y = linalg.matmul ins(%x, %w : tensor<8x9xf32>, tensor<9x4xf32>) outs(%i :
    tensor<8x4xf32>) -> tensor<8x4xf32>
  return %y : tensor<8x4xf32>
}
