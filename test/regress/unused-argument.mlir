// An argument that nobody uses is accepted, cut or not.
// REQUIRES: run
// RUN: cleave check %s

cleave.mesh @m = <["a"=2]>

func.func @forward(%x: tensor<8xf32> {cleave.sharding = #cleave.sharding<@m, [{"a"}]>},
                   %cut: tensor<8xf32> {cleave.sharding = #cleave.sharding<@m, [{"a"}]>},
                   %plain: tensor<4x4xf32>) -> tensor<8xf32> {
  return %x : tensor<8xf32>
}
