// An axis that the mesh does not have is refused, not ignored.
// RUN: cleave-opt %s -verify-diagnostics

cleave.mesh @m = <["a"=2]>

// expected-error@+1 {{'func.func' op mesh 'm' has no axis 'd'; it has 'a'}}
func.func @forward(%x: tensor<8xf32> {cleave.sharding = #cleave.sharding<@m, [{"d"}]>})
    -> tensor<8xf32> {
  return %x : tensor<8xf32>
}
