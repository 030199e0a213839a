// Casts between bf16 and f64, which go through f32.
// REQUIRES: run
// RUN: cleave check %s

cleave.mesh @m = <["a"=2]>

#id = affine_map<(i) -> (i)>

func.func @forward(
    %x: tensor<5xbf16> {cleave.sharding = #cleave.sharding<@m, [{"a"}]>},
    %y: tensor<5xf64> {cleave.sharding = #cleave.sharding<@m, [{"a"}]>})
    -> (tensor<5xf64>, tensor<5xbf16>) {
  %wide = tensor.empty() : tensor<5xf64>
  %narrow = tensor.empty() : tensor<5xbf16>
  %0 = linalg.generic {indexing_maps = [#id, #id],
      iterator_types = ["parallel"]}
      ins(%x : tensor<5xbf16>) outs(%wide : tensor<5xf64>) {
    ^bb0(%in: bf16, %old: f64):
      %v = arith.extf %in : bf16 to f64
      linalg.yield %v : f64
  } -> tensor<5xf64>
  %1 = linalg.generic {indexing_maps = [#id, #id],
      iterator_types = ["parallel"]}
      ins(%y : tensor<5xf64>) outs(%narrow : tensor<5xbf16>) {
    ^bb0(%in: f64, %old: bf16):
      %v = arith.truncf %in : f64 to bf16
      linalg.yield %v : bf16
  } -> tensor<5xbf16>
  return %0, %1 : tensor<5xf64>, tensor<5xbf16>
}
