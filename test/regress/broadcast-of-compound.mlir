// A vector cut over two axes is broadcast, and meets a column of size 1.
// REQUIRES: run
// RUN: cleave check %s

cleave.mesh @m = <["a"=3, "b"=2]>

func.func @forward(
    %x: tensor<5xf32> {cleave.sharding = #cleave.sharding<@m, [{"a", "b"}]>},
    %y: tensor<5x1xf32>)
    -> (tensor<5x4xf32>, tensor<5x4xf32>) {
  %e = tensor.empty() : tensor<5x4xf32>
  %b = linalg.broadcast ins(%x : tensor<5xf32>) outs(%e : tensor<5x4xf32>)
    dimensions = [1]
  %c = linalg.generic
    {indexing_maps=[affine_map<(i,j)->(i,0)>,affine_map<(i,j)->(i,j)>,affine_map<(i,j)->(i,j)>],
    iterator_types=["parallel","parallel"]} ins(%y, %b : tensor<5x1xf32>,
    tensor<5x4xf32>) outs(%e : tensor<5x4xf32>) {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %s = arith.addf %p, %q : f32
    linalg.yield %s : f32
  } -> tensor<5x4xf32>
  return %b, %c : tensor<5x4xf32>, tensor<5x4xf32>
}
