// A function that calls itself never ends; it is refused with the way it goes.
// RUN: cleave-opt %s --cleave-check-model -verify-diagnostics

cleave.mesh @m = <["a"=2]>

// expected-note@+1 {{'again' is entered here first}}
func.func private @again(%x: tensor<8xf32>) -> tensor<8xf32> {
  // expected-error@+1 {{'func.call' op calls 'again' recursively; use scf.for}}
  %y = call @again(%x) : (tensor<8xf32>) -> tensor<8xf32>
  return %y : tensor<8xf32>
}

func.func @forward(%x: tensor<8xf32>) -> tensor<8xf32> {
  %y = call @again(%x) : (tensor<8xf32>) -> tensor<8xf32>
  return %y : tensor<8xf32>
}
