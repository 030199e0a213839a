// One dim cut over both axes becomes two dims cut over one each, in the other
// order.
// REQUIRES: run
// RUN: cleave check %s

cleave.mesh @m = <["a"=2, "b"=4]>

func.func @forward(%x: tensor<64x16xf32> {cleave.sharding = #cleave.sharding<@m, [{"a", "b"}, {}]>})
    -> (tensor<64x16xf32> {cleave.sharding = #cleave.sharding<@m, [{"b"}, {"a"}]>}) {
  return %x : tensor<64x16xf32>
}
