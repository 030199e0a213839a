// REQUIRES: run
// RUN: cleave check %s

// A kernel that clips a block and takes its minimum starts by storing infinity
// in its destination, so this must not be the buffer of the block.
cleave.mesh @eight = <["a"=2, "c"=2, "b"=2]>
#same = affine_map<(i) -> (i)>
#none = affine_map<(i) -> ()>

func.func @lowest(%x: tensor<7xf32>
    {cleave.sharding = #cleave.sharding<@eight, [{"a", "b", "c"}]>})
    -> tensor<f32> {
  %one = arith.constant 1.0 : f32
  %infinity = arith.constant 0x7F800000 : f32
  %twice_empty = tensor.empty() : tensor<7xf32>
  %twice = linalg.add ins(%x, %x : tensor<7xf32>, tensor<7xf32>)
    outs(%twice_empty : tensor<7xf32>) -> tensor<7xf32>
  %moved = cleave.constraint %twice <@eight, [{"c", "b", "a"}]> : tensor<7xf32>
  %clipped_empty = tensor.empty() : tensor<7xf32>
  %clipped = linalg.generic {
      indexing_maps = [#same, #same], iterator_types = ["parallel"]}
      ins(%moved : tensor<7xf32>) outs(%clipped_empty : tensor<7xf32>) {
    ^bb0(%value: f32, %old: f32):
      %low = arith.minimumf %value, %one : f32
      linalg.yield %low : f32
  } -> tensor<7xf32>
  %empty = tensor.empty() : tensor<f32>
  %init = linalg.fill ins(%infinity : f32) outs(%empty : tensor<f32>)
    -> tensor<f32>
  %lowest = linalg.generic {
      indexing_maps = [#same, #none], iterator_types = ["reduction"]}
      ins(%clipped : tensor<7xf32>) outs(%init : tensor<f32>) {
    ^bb0(%value: f32, %acc: f32):
      %less = arith.minimumf %value, %acc : f32
      linalg.yield %less : f32
  } -> tensor<f32>
  return %lowest : tensor<f32>
}
