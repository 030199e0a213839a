// A sharding with more entries than the tensor has dims is refused.
// RUN: cleave-opt %s -verify-diagnostics

cleave.mesh @m = <["a"=2]>

// expected-error@+1 {{'func.func' op sharding of argument 0 has 2 dims, but the tensor 'tensor<8xf32>' has 1}}
func.func @forward(%x: tensor<8xf32> {cleave.sharding = #cleave.sharding<@m, [{}, {"a"}]>})
    -> tensor<8xf32> {
  return %x : tensor<8xf32>
}
