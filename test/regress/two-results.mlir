// Two reductions in one op, a sum and a maximum, over a dim that is cut: each
// result has its own kind.
// REQUIRES: run
// RUN: cleave check %s

cleave.mesh @m = <["a"=4]>

func.func @forward(%x: tensor<6x10xf32> {cleave.sharding = #cleave.sharding<@m, [{}, {"a"}]>})
    -> (tensor<6xf32>, tensor<6xf32>) {
  %zero = arith.constant 0.0 : f32
  %lowest = arith.constant 0xFF800000 : f32
  %empty = tensor.empty() : tensor<6xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%empty : tensor<6xf32>)
    -> tensor<6xf32>
  %lows = linalg.fill ins(%lowest : f32) outs(%empty : tensor<6xf32>)
    -> tensor<6xf32>
  %y:2 = linalg.generic {
      indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>,
                       affine_map<(i, j) -> (i)>],
      iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<6x10xf32>)
      outs(%zeros, %lows : tensor<6xf32>, tensor<6xf32>) {
    ^bb0(%value: f32, %sum: f32, %max: f32):
      %s = arith.addf %sum, %value : f32
      %m = arith.maximumf %max, %value : f32
      linalg.yield %s, %m : f32, f32
  } -> (tensor<6xf32>, tensor<6xf32>)
  return %y#0, %y#1 : tensor<6xf32>, tensor<6xf32>
}
