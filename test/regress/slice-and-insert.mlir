// A slice and an insertion (a cache update) along a dim that is cut, at places
// that are no boundary of blocks.
// REQUIRES: run
// RUN: cleave check %s

cleave.mesh @m = <["a"=4]>

func.func @forward(%cache: tensor<16x6xf32> {cleave.sharding = #cleave.sharding<@m, [{"a"}, {}]>},
                   %new: tensor<3x6xf32>) -> (tensor<16x6xf32>, tensor<5x6xf32>) {
  %y = tensor.insert_slice %new into %cache[5, 0] [3, 6] [1, 1]
    : tensor<3x6xf32> into tensor<16x6xf32>
  %z = tensor.extract_slice %y[3, 0] [5, 6] [2, 1]
    : tensor<16x6xf32> to tensor<5x6xf32>
  return %y, %z : tensor<16x6xf32>, tensor<5x6xf32>
}
