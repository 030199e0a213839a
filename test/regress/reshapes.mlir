// Heads out of a cut dim and back: expand and collapse keep the cut.
// REQUIRES: run
// RUN: cleave check %s

cleave.mesh @m = <["a"=4]>

func.func @forward(%x: tensor<6x24xf32> {cleave.sharding = #cleave.sharding<@m, [{}, {"a"}]>})
    -> (tensor<6x24xf32> {cleave.sharding = #cleave.sharding<@m, [{}, {"a"}]>}) {
  %heads = tensor.expand_shape %x [[0], [1, 2]] output_shape [6, 4, 6]
    : tensor<6x24xf32> into tensor<6x4x6xf32>
  %empty = tensor.empty() : tensor<6x4x6xf32>
  %twice = linalg.add ins(%heads, %heads : tensor<6x4x6xf32>, tensor<6x4x6xf32>)
    outs(%empty : tensor<6x4x6xf32>) -> tensor<6x4x6xf32>
  %y = tensor.collapse_shape %twice [[0], [1, 2]]
    : tensor<6x4x6xf32> into tensor<6x24xf32>
  return %y : tensor<6x24xf32>
}
