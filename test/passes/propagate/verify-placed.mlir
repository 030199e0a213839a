// The gate after propagation.
// RUN: cleave-opt %s --cleave-verify-placed -split-input-file \
// RUN:   -verify-diagnostics

// Without a mesh there is one rank, and nothing to place.
func.func @one_rank(%x: tensor<4xf32>) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}

// -----

cleave.mesh @m = <["a"=2]>
func.func @argument_without_sharding(
    // expected-error@+1 {{'arg0' has no sharding after propagation}}
    %x: tensor<4xf32>)
    -> (tensor<4xf32> {cleave.sharding = #cleave.sharding<@m, [{}]>}) {
  return %x : tensor<4xf32>
}

// -----

cleave.mesh @m = <["a"=2]>
func.func @open_argument(
    // expected-error@+1 {{'arg0' has the open sharding #cleave.sharding<@m, [{"a", ?}]> after propagation}}
    %x: tensor<4xf32> {cleave.sharding = #cleave.sharding<@m, [{"a", ?}]>})
    -> (tensor<4xf32> {cleave.sharding = #cleave.sharding<@m, [{}]>}) {
  return %x : tensor<4xf32>
}

// -----

cleave.mesh @m = <["a"=2]>
func.func @op_without_sharding(
    %x: tensor<4xf32> {cleave.sharding = #cleave.sharding<@m, [{"a"}]>})
    -> (tensor<4xf32> {cleave.sharding = #cleave.sharding<@m, [{}]>}) {
  // expected-error@+1 {{'%0' has no sharding after propagation}}
  %e = tensor.empty() : tensor<4xf32>
  return %x : tensor<4xf32>
}
