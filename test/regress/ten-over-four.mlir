// 10 elements over 4 ranks, blocks of 3: computed on, sliced from whole, and
// gathered, without a lost or a made-up element.
// REQUIRES: run
// RUN: cleave check %s

cleave.mesh @m = <["a"=4]>

func.func @forward(%whole: tensor<10xf32> {cleave.sharding = #cleave.sharding<@m, [{}]>},
                   %cut: tensor<10xf32> {cleave.sharding = #cleave.sharding<@m, [{"a"}]>})
    -> (tensor<10xf32> {cleave.sharding = #cleave.sharding<@m, [{"a"}]>}, tensor<10xf32> {cleave.sharding = #cleave.sharding<@m, [{}]>}) {
  %empty = tensor.empty() : tensor<10xf32>
  %sum = linalg.add ins(%whole, %cut : tensor<10xf32>, tensor<10xf32>)
    outs(%empty : tensor<10xf32>) -> tensor<10xf32>
  %y = cleave.constraint %sum <@m, [{"a"}]> : tensor<10xf32>
  %z = cleave.constraint %y <@m, [{}]> : tensor<10xf32>
  return %y, %z : tensor<10xf32>, tensor<10xf32>
}
