// A contraction over 'tp' whose result is wanted with its rows over both axes:
// a reduce-scatter, not an all-reduce and a slice, and no weight is gathered.
// REQUIRES: run
// RUN: cleave check %s

cleave.mesh @m = <["dp"=2, "tp"=4]>

func.func @forward(%x: tensor<64x16xf32> {cleave.sharding = #cleave.sharding<@m, [{"dp"}, {"tp"}]>},
                   %w: tensor<16x64xf32> {cleave.sharding = #cleave.sharding<@m, [{"tp"}, {}]>})
    -> (tensor<64x64xf32> {cleave.sharding = #cleave.sharding<@m, [{"dp", "tp"}, {}]>}) {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<64x64xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<64x64xf32>)
    -> tensor<64x64xf32>
  %y = linalg.matmul ins(%x, %w : tensor<64x16xf32>, tensor<16x64xf32>)
    outs(%init : tensor<64x64xf32>) -> tensor<64x64xf32>
  return %y : tensor<64x64xf32>
}
