// Splitting a dim splits the axis that cuts it; merging both dims gathers what
// no cut of the merged dim is.
// REQUIRES: run
// RUN: cleave check %s

cleave.mesh @m = <["a"=4, "b"=3]>

func.func @forward(
    %x: tensor<8x9xf32>
      {cleave.sharding = #cleave.sharding<@m, [{"a"}, {"b"}]>})
    -> (tensor<2x4x9xf32> {cleave.sharding = #cleave.sharding<@m, [{"a":(1)2}, {"a":(2)2}, {}]>}, tensor<72xf32>) {
  %e = tensor.expand_shape %x [[0, 1], [2]] output_shape [2, 4, 9] :
    tensor<8x9xf32> into tensor<2x4x9xf32>
  %c = tensor.collapse_shape %x [[0, 1]] : tensor<8x9xf32> into tensor<72xf32>
  return %e, %c : tensor<2x4x9xf32>, tensor<72xf32>
}
