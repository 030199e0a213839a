// A body that asks for its index must get the global one: a row mask made of
// linalg.index, cut over 4 ranks by rows. The ranks after the first see rows 8
// to 31, not 0 to 7 again.
// REQUIRES: run
// RUN: cleave check %s

cleave.mesh @m = <["a"=4]>
#id = affine_map<(i, j) -> (i, j)>

func.func @forward(%x: tensor<32x32xf32> {cleave.sharding = #cleave.sharding<@m, [{"a"}, {}]>})
    -> (tensor<32x32xf32> {cleave.sharding = #cleave.sharding<@m, [{"a"}, {}]>}) {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<32x32xf32>
  %y = linalg.generic {indexing_maps = [#id, #id],
      iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<32x32xf32>) outs(%empty : tensor<32x32xf32>) {
    ^bb0(%value: f32, %old: f32):
      %i = linalg.index 0 : index
      %j = linalg.index 1 : index
      %seen = arith.cmpi sle, %j, %i : index
      %kept = arith.select %seen, %value, %zero : f32
      linalg.yield %kept : f32
  } -> tensor<32x32xf32>
  return %y : tensor<32x32xf32>
}
