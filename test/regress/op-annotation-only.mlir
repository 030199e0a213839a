// The only annotation is the attribute of an op; its operand and its user
// follow.
// REQUIRES: run
// RUN: cleave check %s

cleave.mesh @m = <["a"=2]>

func.func @forward(%x: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %empty = tensor.empty() : tensor<8x8xf32>
  %y = linalg.exp
    {cleave.sharding = #cleave.sharding<@m, [{"a"}, {}]>}
    ins(%x : tensor<8x8xf32>) outs(%empty : tensor<8x8xf32>) -> tensor<8x8xf32>
  %z = linalg.add ins(%y, %y : tensor<8x8xf32>, tensor<8x8xf32>)
    outs(%empty : tensor<8x8xf32>) -> tensor<8x8xf32>
  return %z : tensor<8x8xf32>
}
