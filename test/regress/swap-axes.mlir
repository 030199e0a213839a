// The axes of two dims change places. One all-to-all cannot do it; the blocks
// have other shapes before and after.
// REQUIRES: run
// RUN: cleave check %s

cleave.mesh @m = <["a"=2, "b"=4]>

func.func @forward(%x: tensor<64x16xf32> {cleave.sharding = #cleave.sharding<@m, [{"a"}, {"b"}]>})
    -> (tensor<64x16xf32> {cleave.sharding = #cleave.sharding<@m, [{"b"}, {"a"}]>}) {
  return %x : tensor<64x16xf32>
}
