// Two axes of one dim change their order: blocks move between ranks, and none
// of them grows.
// REQUIRES: run
// RUN: cleave check %s

cleave.mesh @m = <["a"=2, "b"=4]>

func.func @forward(%x: tensor<24xf32> {cleave.sharding = #cleave.sharding<@m, [{"a", "b"}]>})
    -> (tensor<24xf32> {cleave.sharding = #cleave.sharding<@m, [{"b", "a"}]>}) {
  return %x : tensor<24xf32>
}
