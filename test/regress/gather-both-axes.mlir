// From both dims cut to whole: both axes are gathered, not the first alone.
// REQUIRES: run
// RUN: cleave check %s

cleave.mesh @m = <["a"=2, "b"=4]>

func.func @forward(%x: tensor<64x16xf32> {cleave.sharding = #cleave.sharding<@m, [{"a"}, {"b"}]>})
    -> (tensor<64x16xf32> {cleave.sharding = #cleave.sharding<@m, [{}, {}]>}) {
  return %x : tensor<64x16xf32>
}
