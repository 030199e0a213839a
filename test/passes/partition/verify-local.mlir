// The gate after partitioning: nothing speaks of the whole model.
// RUN: cleave-opt %s --cleave-verify-local -split-input-file \
// RUN:   -verify-diagnostics

// The mesh and what is noted at edges may stay.
cleave.mesh @m = <["a"=2]>
func.func @local(
    %x: tensor<2xf32> {cleave.global_type = tensor<4xf32>,
                       cleave.sharding = #cleave.sharding<@m, [{"a"}]>}) {
  return
}

// -----

cleave.mesh @m = <["a"=2]>
func.func @constraint_left(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error@+1 {{'cleave.constraint' op is left over from the whole model}}
  %c = cleave.constraint %x <@m, [{}]> : tensor<4xf32>
  return %c : tensor<4xf32>
}

// -----

cleave.mesh @m = <["a"=2]>
func.func @sharding_left() -> tensor<4xf32> {
  // expected-error@+1 {{'tensor.empty' op is left over from the whole model}}
  %e = tensor.empty() {cleave.sharding = #cleave.sharding<@m, [{"a"}]>}
    : tensor<4xf32>
  return %e : tensor<4xf32>
}
