// One value from one sharding to another: never more bytes than the list of
// collectives that users of this notation know.
// REQUIRES: plan
// RUN: split-file %s %t
// RUN: cleave plan %t/three-axes.mlir --json \
// RUN:   | %python %S/bytes.py %t/three-axes.mlir
// RUN: cleave plan %t/eight.mlir --json | %python %S/bytes.py %t/eight.mlir

//--- three-axes.mlir
cleave.mesh @m = <["x"=2, "y"=2, "z"=2]>

// Gather of 8x8 over four ranks.
// AT MOST: @gather_minor_axes 192
func.func @gather_minor_axes(
    %v: tensor<16x8xf32>
        {cleave.sharding = #cleave.sharding<@m, [{"x", "y", "z"}, {}]>})
    -> (tensor<16x8xf32> {cleave.sharding = #cleave.sharding<@m, [{"x"},
        {}]>}) {
  return %v : tensor<16x8xf32>
}

// What is whole is cut for nothing.
// MOVES: @cut_whole nothing
func.func @cut_whole(
    %v: tensor<16x8xf32> {cleave.sharding = #cleave.sharding<@m, [{}, {}]>})
    -> (tensor<16x8xf32> {cleave.sharding = #cleave.sharding<@m, [{"x"},
        {"y", "z"}]>}) {
  return %v : tensor<16x8xf32>
}

// MOVES: @gather_columns all_gather x 128
func.func @gather_columns(
    %v: tensor<16x8xf32> {cleave.sharding = #cleave.sharding<@m, [{"y"},
        {"x"}]>})
    -> (tensor<16x8xf32> {cleave.sharding = #cleave.sharding<@m, [{"y"},
        {}]>}) {
  return %v : tensor<16x8xf32>
}

// From the first dim to the last: half of the 512 bytes of a block.
// MOVES: @axis_to_last_dim all_to_all x 256
func.func @axis_to_last_dim(
    %v: tensor<16x8x4xf32>
      {cleave.sharding = #cleave.sharding<@m, [{"x"}, {"y"}, {}]>})
    -> (tensor<16x8x4xf32>
      {cleave.sharding = #cleave.sharding<@m, [{}, {"y"}, {"x"}]>}) {
  return %v : tensor<16x8x4xf32>
}

// Two all-to-alls of a block.
// AT MOST: @two_axes_to_last_dim 512
func.func @two_axes_to_last_dim(
    %v: tensor<16x8x4xf32>
      {cleave.sharding = #cleave.sharding<@m, [{"y"}, {"x"}, {}]>})
    -> (tensor<16x8x4xf32>
      {cleave.sharding = #cleave.sharding<@m, [{}, {}, {"x", "y"}]>}) {
  return %v : tensor<16x8x4xf32>
}

// A permute of a 512-byte block, then 3/4 and 1/2 of it.
// AT MOST: @three_axes_to_last_dim 1152
func.func @three_axes_to_last_dim(
    %v: tensor<16x8x8xf32>
      {cleave.sharding = #cleave.sharding<@m, [{"y"}, {"x", "z"}, {}]>})
    -> (tensor<16x8x8xf32>
      {cleave.sharding = #cleave.sharding<@m, [{}, {}, {"x", "y", "z"}]>}) {
  return %v : tensor<16x8x8xf32>
}

// Cut first, then one all-to-all of what is left.
// AT MOST: @cut_then_exchange 448
func.func @cut_then_exchange(
    %v: tensor<16x8x8xf32>
      {cleave.sharding = #cleave.sharding<@m, [{}, {"x"}, {}]>})
    -> (tensor<16x8x8xf32>
      {cleave.sharding = #cleave.sharding<@m, [{}, {}, {"x", "y", "z"}]>}) {
  return %v : tensor<16x8x8xf32>
}

// Ten columns do not cut in four, so the rows are cut first: a permute of 40
// bytes and half of them again.
// AT MOST: @columns_to_rows 60
func.func @columns_to_rows(
    %v: tensor<4x10xf32> {cleave.sharding = #cleave.sharding<@m, [{}, {"x"}]>})
    -> (tensor<4x10xf32> {cleave.sharding = #cleave.sharding<@m, [{"x", "y"},
        {}]>}) {
  return %v : tensor<4x10xf32>
}

//--- eight.mlir
cleave.mesh @m = <["y"=8]>

// Only the minor half of the axis is gathered: half of 4x8.
// MOVES: @gather_sub_axis all_gather y:(4)2 64
func.func @gather_sub_axis(
    %v: tensor<16x8xf32> {cleave.sharding = #cleave.sharding<@m, [{"y"}, {}]>})
    -> (tensor<16x8xf32> {cleave.sharding = #cleave.sharding<@m, [{"y":(1)4},
        {}]>}) {
  return %v : tensor<16x8xf32>
}
