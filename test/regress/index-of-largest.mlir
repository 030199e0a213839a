// A reduction of two results that depend on each other keeps its dim whole: the
// largest number of a row and its index.
// REQUIRES: run
// RUN: cleave check %s

cleave.mesh @m = <["a"=3]>

func.func @forward(
    %x: tensor<4x10xf32> {cleave.sharding = #cleave.sharding<@m, [{}, {"a"}]>})
    -> (tensor<4xf32>, tensor<4xi32>) {
  %l = arith.constant 0xFF800000 : f32
  %z = arith.constant 0 : i32
  %e = tensor.empty() : tensor<4xf32>
  %i = linalg.fill ins(%l : f32) outs(%e : tensor<4xf32>) -> tensor<4xf32>
  %e2 = tensor.empty() : tensor<4xi32>
  %i2 = linalg.fill ins(%z : i32) outs(%e2 : tensor<4xi32>) -> tensor<4xi32>
  %r:2 = linalg.generic
    {indexing_maps=[affine_map<(i,j)->(i,j)>,affine_map<(i,j)->(i)>,affine_map<(i,j)->(i)>],
    iterator_types=["parallel","reduction"]} ins(%x : tensor<4x10xf32>) outs(%i,
    %i2 : tensor<4xf32>, tensor<4xi32>) {
  ^bb0(%v: f32, %m: f32, %k: i32):
    %j = linalg.index 1 : index
    %jj = arith.index_cast %j : index to i32
    %g = arith.cmpf ogt, %v, %m : f32
    %nm = arith.select %g, %v, %m : f32
    %nk = arith.select %g, %jj, %k : i32
    linalg.yield %nm, %nk : f32, i32
  } -> (tensor<4xf32>, tensor<4xi32>)
  return %r#0, %r#1 : tensor<4xf32>, tensor<4xi32>
}
