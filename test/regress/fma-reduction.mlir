// A combiner written with fma adds a product: a sum like any other, or, if the
// kind is not read, a dim that is kept whole.
// REQUIRES: run
// RUN: cleave check %s

cleave.mesh @m = <["a"=4]>

func.func @forward(%x: tensor<6x10xf32> {cleave.sharding = #cleave.sharding<@m, [{}, {"a"}]>},
                   %y: tensor<6x10xf32> {cleave.sharding = #cleave.sharding<@m, [{}, {"a"}]>})
    -> tensor<6xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<6xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<6xf32>)
    -> tensor<6xf32>
  %z = linalg.generic {
      indexing_maps = [affine_map<(i, j) -> (i, j)>,
                       affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>],
      iterator_types = ["parallel", "reduction"]}
      ins(%x, %y : tensor<6x10xf32>, tensor<6x10xf32>)
      outs(%init : tensor<6xf32>) {
    ^bb0(%a: f32, %b: f32, %acc: f32):
      %s = math.fma %a, %b, %acc : f32
      linalg.yield %s : f32
  } -> tensor<6xf32>
  return %z : tensor<6xf32>
}
