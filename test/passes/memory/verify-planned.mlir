// RUN: cleave-opt %s --cleave-verify-planned --split-input-file \
// RUN:   --verify-diagnostics

// expected-error@+1 {{'func.func' op has no 'dispatch.frame_bytes'; the phase 'memory' gives it}}
func.func @not_planned(%x: tensor<4xf32>) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}

// -----

func.func @no_place(%x: tensor<4xf32>) -> tensor<4xf32>
    attributes {dispatch.frame_bytes = 64} {
  // expected-error@+1 {{'dispatch.copy' op has a tensor without a place; the phase 'memory' gives it one in 'dispatch.at'}}
  %0 = dispatch.copy %x : tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

// In loops, too.
func.func @no_place_in_loop(%x: tensor<4xf32>, %n: index) -> tensor<4xf32>
    attributes {dispatch.frame_bytes = 64} {
  %0 = scf.for %i = %n to %n step %n iter_args(%v = %x) -> tensor<4xf32> {
    // expected-error@+1 {{'dispatch.copy' op has a tensor without a place}}
    %1 = dispatch.copy %v : tensor<4xf32>
    scf.yield %1 : tensor<4xf32>
  } {dispatch.at = [#dispatch.at<frame, 0>]}
  return %0 : tensor<4xf32>
}

// -----

func.func @outside(%x: tensor<4xf32>) -> tensor<4xf32>
    attributes {dispatch.frame_bytes = 64} {
  // expected-error@+1 {{'dispatch.copy' op has a tensor of 16 bytes at 52 of a frame of 64 bytes}}
  %0 = dispatch.copy %x {dispatch.at = [#dispatch.at<frame, 52>]}
    : tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

// At the very end it fits; kernels and declarations need no frame.
func.func private @kernel(%x: tensor<4xf32>) -> tensor<4xf32>
    attributes {dispatch.kernel} {
  return %x : tensor<4xf32>
}
func.func @fits(%x: tensor<4xf32>) -> tensor<4xf32>
    attributes {dispatch.frame_bytes = 64} {
  %0 = dispatch.copy %x {dispatch.at = [#dispatch.at<frame, 48>]}
    : tensor<4xf32>
  return %0 : tensor<4xf32>
}
