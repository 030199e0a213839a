// The cut of one dim moves from one axis to another.
// REQUIRES: run
// RUN: cleave check %s

cleave.mesh @m = <["a"=2, "b"=4]>

func.func @forward(%x: tensor<24xf32> {cleave.sharding = #cleave.sharding<@m, [{"a"}]>})
    -> (tensor<24xf32> {cleave.sharding = #cleave.sharding<@m, [{"b"}]>}) {
  return %x : tensor<24xf32>
}
