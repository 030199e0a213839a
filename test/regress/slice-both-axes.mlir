// From whole to both dims cut: both are sliced, and nothing is sent.
// REQUIRES: run
// RUN: cleave check %s

cleave.mesh @m = <["a"=2, "b"=4]>

func.func @forward(%x: tensor<64x16xf32> {cleave.sharding = #cleave.sharding<@m, [{}, {}]>})
    -> (tensor<64x16xf32> {cleave.sharding = #cleave.sharding<@m, [{"a"}, {"b"}]>}) {
  return %x : tensor<64x16xf32>
}
