// A dim that splits into two, on meshes whose axis divides neither, one or both
// of the parts.
// REQUIRES: plan
// RUN: split-file %s %t
// RUN: cleave plan %t/four.mlir --json | %python %S/bytes.py %t/four.mlir
// RUN: cleave plan %t/three.mlir --json | %python %S/bytes.py %t/three.mlir
// RUN: cleave plan %t/six.mlir --json | %python %S/bytes.py %t/six.mlir
// RUN: cleave plan %t/sixteen.mlir --json | %python %S/bytes.py %t/sixteen.mlir

//--- four.mlir
cleave.mesh @m = <["a"=4]>

// One axis becomes two sub-axes.
// MOVES: @split nothing
func.func @split(
    %x: tensor<8xf32> {cleave.sharding = #cleave.sharding<@m, [{"a"}]>})
    -> tensor<2x4xf32> {
  %y = tensor.expand_shape %x [[0, 1]] output_shape [2, 4]
    : tensor<8xf32> into tensor<2x4xf32>
  return %y : tensor<2x4xf32>
}

// Two rows over four ranks: no rank waits for another.
// MOVES: @uneven_sum nothing
func.func @uneven_sum(
    %x: tensor<2x4xf32> {cleave.sharding = #cleave.sharding<@m, [{"a"}, {}]>},
    %y: tensor<2x4xf32>) -> tensor<2x4xf32> {
  %z = arith.addf %x, %y : tensor<2x4xf32>
  return %z : tensor<2x4xf32>
}

//--- three.mlir
cleave.mesh @m = <["a"=3]>

// Three blocks of 3, 3 and 2 are no rows: gathered, 9 elements with padding.
// AT MOST: @split_does_not_divide 24
func.func @split_does_not_divide(
    %x: tensor<8xf32> {cleave.sharding = #cleave.sharding<@m, [{"a"}]>})
    -> tensor<2x4xf32> {
  %y = tensor.expand_shape %x [[0, 1]] output_shape [2, 4]
    : tensor<8xf32> into tensor<2x4xf32>
  return %y : tensor<2x4xf32>
}

// MOVES: @uneven_sum nothing
func.func @uneven_sum(
    %x: tensor<2x4xf32> {cleave.sharding = #cleave.sharding<@m, [{}, {"a"}]>},
    %y: tensor<2x4xf32>) -> tensor<2x4xf32> {
  %z = arith.addf %x, %y : tensor<2x4xf32>
  return %z : tensor<2x4xf32>
}

//--- six.mlir
cleave.mesh @m = <["a"=6]>

// Two of the six to the rows, three to the columns.
// MOVES: @split nothing
func.func @split(
    %x: tensor<12xf32> {cleave.sharding = #cleave.sharding<@m, [{"a"}]>})
    -> tensor<2x6xf32> {
  %y = tensor.expand_shape %x [[0, 1]] output_shape [2, 6]
    : tensor<12xf32> into tensor<2x6xf32>
  return %y : tensor<2x6xf32>
}

// Eight elements lie on four of six ranks; as rows of four they would lie on
// other ones. Never more than a gather of the twelve with padding.
// AT MOST: @split_minor_does_not_divide 40
func.func @split_minor_does_not_divide(
    %x: tensor<8xf32> {cleave.sharding = #cleave.sharding<@m, [{"a"}]>})
    -> tensor<2x4xf32> {
  %y = tensor.expand_shape %x [[0, 1]] output_shape [2, 4]
    : tensor<8xf32> into tensor<2x4xf32>
  return %y : tensor<2x4xf32>
}

//--- sixteen.mlir
cleave.mesh @m = <["a"=16]>

// Half of the ranks hold nothing. Never more than a gather with padding.
// AT MOST: @split_overflows 60
func.func @split_overflows(
    %x: tensor<8xf32> {cleave.sharding = #cleave.sharding<@m, [{"a"}]>})
    -> tensor<2x4xf32> {
  %y = tensor.expand_shape %x [[0, 1]] output_shape [2, 4]
    : tensor<8xf32> into tensor<2x4xf32>
  return %y : tensor<2x4xf32>
}
