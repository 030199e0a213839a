// Two operands of an element-wise op are cut differently; one of them moves.
// REQUIRES: run
// RUN: cleave check %s

cleave.mesh @m = <["a"=2, "b"=2]>

func.func @forward(%x: tensor<8x8xf32> {cleave.sharding = #cleave.sharding<@m, [{"a"}, {"b"}]>},
                   %y: tensor<8x8xf32> {cleave.sharding = #cleave.sharding<@m, [{"b"}, {"a"}]>})
    -> tensor<8x8xf32> {
  %empty = tensor.empty() : tensor<8x8xf32>
  %z = linalg.mul ins(%x, %y : tensor<8x8xf32>, tensor<8x8xf32>)
    outs(%empty : tensor<8x8xf32>) -> tensor<8x8xf32>
  return %z : tensor<8x8xf32>
}
