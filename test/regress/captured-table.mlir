// A table that a body reads by tensor.extract is an operand like any other,
// though it is none of the op's: looked up with its rows cut and without an
// annotation.
// REQUIRES: run
// RUN: cleave check %s

cleave.mesh @m = <["a"=4]>

func.func @forward(
    %rows: tensor<10xi32> {cleave.sharding = #cleave.sharding<@m, [{"a"}]>},
    %table: tensor<7x6xf32>) -> tensor<10x6xf32> {
  %seven = arith.constant 7 : i32
  %empty = tensor.empty() : tensor<10x6xf32>
  %y = linalg.generic {
      indexing_maps = [affine_map<(i, j) -> (i)>, affine_map<(i, j) -> (i, j)>],
      iterator_types = ["parallel", "parallel"]}
      ins(%rows : tensor<10xi32>) outs(%empty : tensor<10x6xf32>) {
    ^bb0(%token: i32, %old: f32):
      // Any input gives a row that exists.
      %small = arith.remui %token, %seven : i32
      %row = arith.index_castui %small : i32 to index
      %col = linalg.index 1 : index
      %value = tensor.extract %table[%row, %col] : tensor<7x6xf32>
      linalg.yield %value : f32
  } -> tensor<10x6xf32>
  return %y : tensor<10x6xf32>
}
