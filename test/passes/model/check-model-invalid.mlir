// Whole messages about models that cannot be cut.
// RUN: cleave-opt %s --cleave-check-model -split-input-file -verify-diagnostics

// A dynamic argument, by the name of its location.
// expected-error@unknown {{'tokens' has the dynamic type 'tensor<?x8xf32>'; only static shapes can be cut: give each dim a size}}
func.func @dynamic_argument(%x: tensor<?x8xf32> loc("tokens")) {
  return
}

// -----

// A dynamic value in between.
func.func @dynamic_value(%x: tensor<8xf32>) -> tensor<8xf32> {
  // expected-error@+1 {{'%cast' has the dynamic type 'tensor<?xf32>'; only static shapes can be cut: give each dim a size}}
  %cast = tensor.cast %x : tensor<8xf32> to tensor<?xf32>
  %y = tensor.cast %cast : tensor<?xf32> to tensor<8xf32>
  return %y : tensor<8xf32>
}

// -----

// An argument without a known rank.
func.func @unranked(
    // expected-error@+1 {{'arg0' is an unranked tensor; give it a shape}}
    %x: tensor<*xf32>) {
  return
}

// -----

func.func @tuple(
    // expected-error@+1 {{'arg0' has the tuple type 'tuple<tensor<8xf32>>'; return its members one by one}}
    %x: tuple<tensor<8xf32>>) {
  return
}

// -----

func.func @element_type(
    // expected-error@+1 {{'arg0' has the element type 'complex<f32>'; known are floats and integers}}
    %x: tensor<8xcomplex<f32>>) {
  return
}

// -----

func.func @encoding(
    // expected-error@+1 {{'arg0' has the encoding "sparse", which cannot be cut; remove it}}
    %x: tensor<8xf32, "sparse">) {
  return
}

// -----

func.func @memref(
    // expected-error@+1 {{'arg0' has type 'memref<8xf32>'; a model computes on tensors and scalars}}
    %x: memref<8xf32>) {
  return
}

// -----

// An entry takes a scalar as a tensor.
func.func @scalar(
    // expected-error@+1 {{'arg0' of entry 'scalar' has type 'f32'; entries take and return tensors; a scalar is a tensor<f32>}}
    %x: f32) {
  return
}

// -----

// expected-error@+1 {{'func.func' op returns 'index' as result 0; entries take and return tensors; a scalar is a tensor<index>}}
func.func @scalar_result() -> index {
  %c = arith.constant 3 : index
  return %c : index
}

// -----

// Jumps between blocks.
// expected-error@+1 {{'func.func' op has 2 blocks; a model's functions have one: use scf.for for loops}}
func.func @blocks(%x: tensor<8xf32>) -> tensor<8xf32> {
  cf.br ^next
^next:
  return %x : tensor<8xf32>
}

// -----

// A branch around tensors.
func.func @branch(%x: tensor<8xf32>, %y: tensor<8xf32>) -> tensor<8xf32> {
  %flag = arith.constant true
  // expected-error@+1 {{'scf.if' op is control flow around tensors, which cannot be cut; use scf.for, or select between values}}
  %z = scf.if %flag -> (tensor<8xf32>) {
    scf.yield %x : tensor<8xf32>
  } else {
    scf.yield %y : tensor<8xf32>
  }
  return %z : tensor<8xf32>
}

// -----

// Weights belong to entries.
func.func private @inner(
    // expected-error@+1 {{'arg0' of the private function 'inner' is marked as weight or state; only an entry binds them}}
    %w: tensor<8xf32> {cleave.weight = "w"}) {
  return
}

// -----

// One weight has one type in all entries.
func.func @prefill(
    // expected-note@+1 {{first bound here}}
    %w: tensor<8xf32> {cleave.weight = "w"}) {
  return
}
func.func @decode(
    // expected-error@+1 {{'w' is bound as 'tensor<4xf32>' here and as 'tensor<8xf32>' elsewhere; one weight has one type and one kind in all entries}}
    %w: tensor<4xf32> {cleave.weight = "w"}) {
  return
}

// -----

func.func @state_argument_twice(%s: tensor<8xf32> {cleave.state = "s"},
    // expected-error@+1 {{'arg1' binds the state 's' a second time in entry 'state_argument_twice'}}
    %t: tensor<8xf32> {cleave.state = "s"}) {
  return
}

// -----

// expected-error@+1 {{'func.func' op writes the state 's' as result 0, but has no argument with that state}}
func.func @state_without_argument(%x: tensor<8xf32>)
    -> (tensor<8xf32> {cleave.state = "s"}) {
  return %x : tensor<8xf32>
}

// -----

// expected-error@+1 {{'func.func' op writes the state 's' twice}}
func.func @state_result_twice(%s: tensor<8xf32> {cleave.state = "s"})
    -> (tensor<8xf32> {cleave.state = "s"}, tensor<8xf32> {cleave.state = "s"}) {
  return %s, %s : tensor<8xf32>, tensor<8xf32>
}

// -----

// A function with no body.
func.func private @elsewhere(tensor<8xf32>) -> tensor<8xf32>
func.func @external(%x: tensor<8xf32>) -> tensor<8xf32> {
  // expected-error@+1 {{'func.call' op calls 'elsewhere', which has no body; define it in the model}}
  %y = call @elsewhere(%x) : (tensor<8xf32>) -> tensor<8xf32>
  return %y : tensor<8xf32>
}

// -----

// A function behind a value.
func.func private @target(%x: tensor<8xf32>) -> tensor<8xf32> {
  return %x : tensor<8xf32>
}
func.func @indirect(%x: tensor<8xf32>) -> tensor<8xf32> {
  %f = func.constant @target : (tensor<8xf32>) -> tensor<8xf32>
  // expected-error@+1 {{'func.call_indirect' op calls indirectly; a model calls its functions with func.call}}
  %y = call_indirect %f(%x) : (tensor<8xf32>) -> tensor<8xf32>
  return %y : tensor<8xf32>
}

// -----

// Recursion over two functions.
// expected-note@+1 {{'ping' is entered here first}}
func.func private @ping(%x: tensor<8xf32>) -> tensor<8xf32> {
  %y = call @pong(%x) : (tensor<8xf32>) -> tensor<8xf32>
  return %y : tensor<8xf32>
}
func.func private @pong(%x: tensor<8xf32>) -> tensor<8xf32> {
  // expected-error@+1 {{'func.call' op calls 'ping' recursively; use scf.for}}
  %y = call @ping(%x) : (tensor<8xf32>) -> tensor<8xf32>
  return %y : tensor<8xf32>
}
