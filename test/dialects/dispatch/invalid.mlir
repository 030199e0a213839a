// RUN: cleave-opt %s --split-input-file --verify-diagnostics

// C1: the callee is a kernel; first one that is none, then one that is not there.
func.func private @plain(%x: tensor<4xf32>, %out: tensor<4xf32>) -> tensor<4xf32> {
  return %out : tensor<4xf32>
}
func.func @calls_a_function(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error@+1 {{'dispatch.call' op calls 'plain', which is no kernel; a kernel is a func.func with the attribute 'dispatch.kernel'}}
  %0 = dispatch.call @plain(%x) into (%x) : (tensor<4xf32>) into (tensor<4xf32>)
  return %0 : tensor<4xf32>
}

// -----

func.func @calls_nothing(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error@+1 {{'dispatch.call' op calls 'absent', which is no kernel}}
  %0 = dispatch.call @absent(%x) into (%x) : (tensor<4xf32>) into (tensor<4xf32>)
  return %0 : tensor<4xf32>
}

// -----

// C2: inputs, then destinations.
func.func private @k(%x: tensor<4xf32>, %out: tensor<2xf32>) -> tensor<2xf32>
    attributes {dispatch.kernel} {
  return %out : tensor<2xf32>
}
func.func @other_arguments(%x: tensor<3xf32>, %y: tensor<2xf32>) -> tensor<2xf32> {
  // expected-error@+1 {{'dispatch.call' op does not fit the arguments of kernel 'k', which are 'tensor<4xf32>', 'tensor<2xf32>'}}
  %0 = dispatch.call @k(%x) into (%y) : (tensor<3xf32>) into (tensor<2xf32>)
  return %0 : tensor<2xf32>
}

// -----

// C3: against the kernel, and within the op.
func.func private @k(%x: tensor<4xf32>, %out: tensor<2xf32>) -> tensor<4xf32>
    attributes {dispatch.kernel} {
  return %x : tensor<4xf32>
}
func.func @other_results(%x: tensor<4xf32>, %y: tensor<2xf32>) -> tensor<2xf32> {
  // expected-error@+1 {{'dispatch.call' op does not fit the results of kernel 'k', which are 'tensor<4xf32>'}}
  %0 = dispatch.call @k(%x) into (%y) : (tensor<4xf32>) into (tensor<2xf32>)
  return %0 : tensor<2xf32>
}

// -----

func.func @results_unlike_destinations(%x: tensor<4xf32>) {
  // expected-error@+1 {{'dispatch.call' op failed to verify that results have the types of the destinations}}
  %0 = "dispatch.call"(%x, %x) {callee = @k, operandSegmentSizes = array<i32: 1, 1>}
    : (tensor<4xf32>, tensor<4xf32>) -> tensor<2xf32>
  return
}

// -----

func.func @copy_of_other_type(%x: tensor<4xf32>) {
  // expected-error@+1 {{'dispatch.copy' op failed to verify that all of {input, result} have same type}}
  %0 = "dispatch.copy"(%x) : (tensor<4xf32>) -> tensor<2xf32>
  return
}

// -----

func.func @dynamic(%x: tensor<?xf32>) {
  // expected-error@+1 {{'dispatch.copy' op operand #0 must be statically shaped tensor of any type values, but got 'tensor<?xf32>'}}
  %0 = dispatch.copy %x : tensor<?xf32>
  return
}
