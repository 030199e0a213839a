// Whole messages about shardings that cannot be kept.
// RUN: cleave-opt %s --cleave-propagate-shardings -split-input-file \
// RUN:   -verify-diagnostics

// A sum declared, read by an op that is not linear.
cleave.mesh @m = <["a"=2]>
func.func @nonlinear_use(
    %x: tensor<4x8xf32> {cleave.sharding = #cleave.sharding<@m, [{}, {"a"}]>},
    %w: tensor<8x6xf32>, %z: tensor<4x6xf32>) -> tensor<4x6xf32> {
  // expected-note@+1 {{'%0' is declared here}}
  %y = linalg.matmul
    {cleave.sharding = #cleave.sharding<@m, [{}, {}], partial=sum{"a"}>}
    ins(%x, %w : tensor<4x8xf32>, tensor<8x6xf32>)
    outs(%z : tensor<4x6xf32>) -> tensor<4x6xf32>
  // expected-error@+1 {{'%0' is declared partial over "a", but linalg.exp needs the reduced value; remove 'partial' from its sharding or constrain it before this op}}
  %e = linalg.exp ins(%y : tensor<4x6xf32>) outs(%z : tensor<4x6xf32>)
    -> tensor<4x6xf32>
  return %e : tensor<4x6xf32>
}

// -----

// Nothing is reduced over 'b'.
cleave.mesh @m = <["a"=2, "b"=2]>
func.func @no_such_summands(
    %x: tensor<4x8xf32> {cleave.sharding = #cleave.sharding<@m, [{}, {"a"}]>},
    %w: tensor<8x6xf32>, %z: tensor<4x6xf32>) -> tensor<4x6xf32> {
  // expected-error@+1 {{'%0' is declared partial over "b", but its producer leaves no such summands there; declare 'partial' only where a dim that is reduced is cut}}
  %y = linalg.matmul
    {cleave.sharding = #cleave.sharding<@m, [{}, {}], partial=sum{"b"}>}
    ins(%x, %w : tensor<4x8xf32>, tensor<8x6xf32>)
    outs(%z : tensor<4x6xf32>) -> tensor<4x6xf32>
  return %y : tensor<4x6xf32>
}

// -----

// The body adds; a maximum of summands is another number.
cleave.mesh @m = <["a"=2]>
func.func @other_kind(
    %x: tensor<4x8xf32> {cleave.sharding = #cleave.sharding<@m, [{}, {"a"}]>},
    %w: tensor<8x6xf32>, %z: tensor<4x6xf32>) -> tensor<4x6xf32> {
  // expected-error@+1 {{'%0' is declared partial over "a", but its producer leaves no such summands there; declare 'partial' only where a dim that is reduced is cut}}
  %y = linalg.matmul
    {cleave.sharding = #cleave.sharding<@m, [{}, {}], partial=max{"a"}>}
    ins(%x, %w : tensor<4x8xf32>, tensor<8x6xf32>)
    outs(%z : tensor<4x6xf32>) -> tensor<4x6xf32>
  return %y : tensor<4x6xf32>
}

// -----

// An entry returns sums.
cleave.mesh @m = <["a"=2]>
func.func @returned(
    %x: tensor<4x8xf32> {cleave.sharding = #cleave.sharding<@m, [{}, {"a"}]>},
    %w: tensor<8x6xf32>, %z: tensor<4x6xf32>)
    -> (tensor<4x6xf32> {cleave.sharding = #cleave.sharding<@m, [{}, {}]>}) {
  // expected-note@+1 {{'%0' is declared here}}
  %y = linalg.matmul
    {cleave.sharding = #cleave.sharding<@m, [{}, {}], partial=sum{"a"}>}
    ins(%x, %w : tensor<4x8xf32>, tensor<8x6xf32>)
    outs(%z : tensor<4x6xf32>) -> tensor<4x6xf32>
  // expected-error@+1 {{'%0' is declared partial over "a", but return needs the reduced value; remove 'partial' from its sharding or constrain it before this op}}
  return %y : tensor<4x6xf32>
}

// -----

// A loop that needs what it carries whole does not start with summands.
cleave.mesh @m = <["a"=2]>
func.func @loop(
    %x: tensor<4x8xf32> {cleave.sharding = #cleave.sharding<@m, [{}, {"a"}]>},
    %w: tensor<8x4xf32>, %z: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  // expected-note@+1 {{'%0' is declared here}}
  %y = linalg.matmul
    {cleave.sharding = #cleave.sharding<@m, [{}, {}], partial=sum{"a"}>}
    ins(%x, %w : tensor<4x8xf32>, tensor<8x4xf32>)
    outs(%z : tensor<4x4xf32>) -> tensor<4x4xf32>
  // expected-error@+1 {{'%0' is declared partial over "a", but loop needs the reduced value; remove 'partial' from its sharding or constrain it before this op}}
  %r = scf.for %i = %c0 to %c3 step %c1 iter_args(%v = %y)
      -> (tensor<4x4xf32>) {
    %e = linalg.exp ins(%v : tensor<4x4xf32>) outs(%z : tensor<4x4xf32>)
      -> tensor<4x4xf32>
    scf.yield %e : tensor<4x4xf32>
  }
  return %r : tensor<4x4xf32>
}
