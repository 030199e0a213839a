// 30 rows over 4 ranks are 8 + 8 + 8 + 6; none is dropped.
// REQUIRES: run
// RUN: cleave check %s

cleave.mesh @m = <["a"=4]>

func.func @forward(%x: tensor<30x8xf32> {cleave.sharding = #cleave.sharding<@m, [{"a"}, {}]>})
    -> (tensor<30x8xf32> {cleave.sharding = #cleave.sharding<@m, [{}, {}]>}) {
  %empty = tensor.empty() : tensor<30x8xf32>
  %y = linalg.add ins(%x, %x : tensor<30x8xf32>, tensor<30x8xf32>)
    outs(%empty : tensor<30x8xf32>) -> tensor<30x8xf32>
  return %y : tensor<30x8xf32>
}
