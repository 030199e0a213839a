// RUN: cleave-opt %s --cleave-verify-dispatched --split-input-file \
// RUN:   --verify-diagnostics

// expected-error@+1 {{'func.func' op returns a 'f32'; entries return tensors (a scalar is a tensor without dims)}}
func.func @returns_scalar(%x: tensor<f32>) -> f32 {
  %0 = tensor.extract %x[] : tensor<f32>
  return %0 : f32
}

// -----

// expected-error@+1 {{'func.func' op has an argument of type 'index'; entries take tensors (a scalar is a tensor without dims)}}
func.func @takes_scalar(%i: index) {
  return
}

// -----

func.func @works(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error@+1 {{'linalg.add' op works on tensors outside of a kernel; kernels are made of linalg ops and of slices, pads and joins}}
  %0 = linalg.add ins(%x, %x : tensor<4xf32>, tensor<4xf32>)
    outs(%x : tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

// Every one is named.
func.func @slices(%x: tensor<4x4xf32>) -> tensor<4x2xf32> {
  // expected-error@+1 {{'tensor.extract_slice' op works on tensors outside of a kernel}}
  %0 = tensor.extract_slice %x[0, 1] [4, 3] [1, 1]
    : tensor<4x4xf32> to tensor<4x3xf32>
  // expected-error@+1 {{'tensor.extract_slice' op works on tensors outside of a kernel}}
  %1 = tensor.extract_slice %0[0, 1] [4, 2] [1, 1]
    : tensor<4x3xf32> to tensor<4x2xf32>
  return %1 : tensor<4x2xf32>
}

// -----

// Scalars, views, loops, communication and calls may; private functions return
// scalars.
cleave.mesh @two = <["tp"=2]>
func.func private @kernel(%x: tensor<4xf32>, %out: tensor<4xf32>)
    -> tensor<4xf32> attributes {dispatch.kernel} {
  %0 = linalg.add ins(%x, %x : tensor<4xf32>, tensor<4xf32>)
    outs(%out : tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
func.func private @first(%x: tensor<4xf32>, %i: index) -> f32 {
  %0 = tensor.extract %x[%i] : tensor<4xf32>
  return %0 : f32
}
func.func @fine(%x: tensor<2x64xf32>) -> tensor<4xf32> {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %row = tensor.extract_slice %x[1, 0] [1, 64] [1, 1]
    : tensor<2x64xf32> to tensor<64xf32>
  %four = tensor.extract_slice %row[0] [4] [1] : tensor<64xf32> to tensor<4xf32>
  %first = call @first(%four, %one) : (tensor<4xf32>, index) -> f32
  %twice = arith.addf %first, %first : f32
  %result = scf.for %i = %zero to %one step %one iter_args(%v = %four)
      -> tensor<4xf32> {
    %0 = tensor.empty() : tensor<4xf32>
    %1 = dispatch.call @kernel(%v) into (%0)
      : (tensor<4xf32>) into (tensor<4xf32>)
    %2 = comm.all_reduce sum %1 over @two ["tp"] : tensor<4xf32>
    scf.yield %2 : tensor<4xf32>
  }
  return %result : tensor<4xf32>
}
