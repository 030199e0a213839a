// linalg.softmax, which has no indexing maps, along a dim that is cut.
// REQUIRES: run
// RUN: cleave check %s

cleave.mesh @m = <["a"=2]>

func.func @forward(%x: tensor<6x10xf32> {cleave.sharding = #cleave.sharding<@m, [{"a"}, {}]>})
    -> (tensor<6x10xf32> {cleave.sharding = #cleave.sharding<@m, [{}, {"a"}]>}) {
  %empty = tensor.empty() : tensor<6x10xf32>
  %y = linalg.softmax dimension(1) ins(%x : tensor<6x10xf32>)
    outs(%empty : tensor<6x10xf32>) -> tensor<6x10xf32>
  return %y : tensor<6x10xf32>
}
