// An argument is used through a constraint and directly, by one op.
// REQUIRES: run
// RUN: cleave check %s

cleave.mesh @m = <["a"=2]>

func.func @forward(%x: tensor<8x8xf32> {cleave.sharding = #cleave.sharding<@m, [{"a"}, {}]>})
    -> tensor<8x8xf32> {
  %moved = cleave.constraint %x <@m, [{}, {"a"}]> : tensor<8x8xf32>
  %empty = tensor.empty() : tensor<8x8xf32>
  %y = linalg.add ins(%x, %moved : tensor<8x8xf32>, tensor<8x8xf32>)
    outs(%empty : tensor<8x8xf32>) -> tensor<8x8xf32>
  return %y : tensor<8x8xf32>
}
