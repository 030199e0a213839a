// A dim cut over two axes becomes whole.
// REQUIRES: run
// RUN: cleave check %s

cleave.mesh @m = <["a"=2, "b"=4]>

func.func @forward(%x: tensor<24xf32> {cleave.sharding = #cleave.sharding<@m, [{"a", "b"}]>})
    -> (tensor<24xf32> {cleave.sharding = #cleave.sharding<@m, [{}]>}) {
  return %x : tensor<24xf32>
}
