// The plans that users of this notation know, for values that meet with
// different cuts. What is moved is never more than there.
// REQUIRES: plan
// RUN: cleave plan %s --json | %python %S/bytes.py %s

cleave.mesh @m = <["a"=2, "b"=2, "c"=2]>

// A sum keeps its cut; the product after it reduces over 'b', unless gathering
// the smaller factor moves less. All-reduce of the 4x16 block.
// AT MOST: @contracted_axis_ends 256
func.func @contracted_axis_ends(
    %x: tensor<8x8xf32> {cleave.sharding = #cleave.sharding<@m, [{"a"},
        {"b"}]>},
    %y: tensor<8x8xf32>, %w: tensor<8x16xf32>) -> tensor<8x16xf32> {
  %zero = arith.constant dense<0.0> : tensor<8x16xf32>
  %sum = arith.addf %x, %y : tensor<8x8xf32>
  %z = linalg.matmul ins(%sum, %w : tensor<8x8xf32>, tensor<8x16xf32>)
    outs(%zero : tensor<8x16xf32>) -> tensor<8x16xf32>
  return %z : tensor<8x16xf32>
}

// The result's closed dim refuses 'a', so the rows are gathered: 8x8 of x, or
// 8x8 of the result.
// AT MOST: @closed_dim_refuses 128
func.func @closed_dim_refuses(
    %x: tensor<8x8xf32> {cleave.sharding = #cleave.sharding<@m, [{"a"}, {}]>},
    %w: tensor<8x16xf32> {cleave.sharding = #cleave.sharding<@m, [{}, {"b"}]>})
    -> (tensor<8x16xf32> {cleave.sharding = #cleave.sharding<@m, [{}, {?}]>}) {
  %zero = arith.constant dense<0.0> : tensor<8x16xf32>
  %z = linalg.matmul ins(%x, %w : tensor<8x8xf32>, tensor<8x16xf32>)
    outs(%zero : tensor<8x16xf32>) -> tensor<8x16xf32>
  return %z : tensor<8x16xf32>
}

// Both have 'b' first: each gathers its minor axis, or one takes the other's.
// AT MOST: @common_prefix 128
func.func @common_prefix(
    %x: tensor<8x8xf32> {cleave.sharding = #cleave.sharding<@m, [{"b", "a"},
        {}]>},
    %y: tensor<8x8xf32> {cleave.sharding = #cleave.sharding<@m, [{"b", "c"},
        {}]>})
    -> tensor<8x8xf32> {
  %z = arith.addf %x, %y : tensor<8x8xf32>
  return %z : tensor<8x8xf32>
}

// The same axes in another order: one permute of a block does it, where two
// full gathers would move 384.
// AT MOST: @other_order 64
func.func @other_order(
    %x: tensor<8x8xf32> {cleave.sharding = #cleave.sharding<@m, [{"b", "a"},
        {}]>},
    %y: tensor<8x8xf32> {cleave.sharding = #cleave.sharding<@m, [{"a", "b"},
        {}]>})
    -> tensor<8x8xf32> {
  %z = arith.addf %x, %y : tensor<8x8xf32>
  return %z : tensor<8x8xf32>
}

// One dim that splits keeps both axes: major to the first, minor to the second.
// MOVES: @split nothing
func.func @split(
    %x: tensor<8xf32> {cleave.sharding = #cleave.sharding<@m, [{"b", "a"}]>})
    -> tensor<2x4xf32> {
  %y = tensor.expand_shape %x [[0, 1]] output_shape [2, 4]
    : tensor<8xf32> into tensor<2x4xf32>
  return %y : tensor<2x4xf32>
}

// Both axes fit the major part.
// MOVES: @split_major nothing
func.func @split_major(
    %x: tensor<16xf32> {cleave.sharding = #cleave.sharding<@m, [{"b", "a"}]>})
    -> tensor<4x4xf32> {
  %y = tensor.expand_shape %x [[0, 1]] output_shape [4, 4]
    : tensor<16xf32> into tensor<4x4xf32>
  return %y : tensor<4x4xf32>
}

// MOVES: @merge nothing
func.func @merge(
    %x: tensor<2x4xf32> {cleave.sharding = #cleave.sharding<@m, [{"a"},
        {"b"}]>})
    -> tensor<8xf32> {
  %y = tensor.collapse_shape %x [[0, 1]] : tensor<2x4xf32> into tensor<8xf32>
  return %y : tensor<8xf32>
}

// The major dim is not cut to the end, so the minor one is gathered: 2x4.
// AT MOST: @merge_drops_minor 16
func.func @merge_drops_minor(
    %x: tensor<4x4xf32> {cleave.sharding = #cleave.sharding<@m, [{"a"},
        {"b"}]>})
    -> tensor<16xf32> {
  %y = tensor.collapse_shape %x [[0, 1]] : tensor<4x4xf32> into tensor<16xf32>
  return %y : tensor<16xf32>
}

// A barrier lets only the side it allows through; the rest is gathered.
// AT MOST: @barrier_backward 32
func.func @barrier_backward(
    %x: tensor<8x8xf32>
      {cleave.sharding = #cleave.sharding<@m, [{"a", ?}, {"c", ?}]>})
    -> (tensor<8x8xf32>
      {cleave.sharding = #cleave.sharding<@m, [{"a", "b", ?}, {?}]>}) {
  %y = cleave.barrier %x allowed_direction=BACKWARD : tensor<8x8xf32>
  return %y : tensor<8x8xf32>
}

// Rows of one meet columns of the other: one of them changes sides.
// AT MOST: @rows_meet_columns 64
func.func @rows_meet_columns(
    %x: tensor<8x8xf32> {cleave.sharding = #cleave.sharding<@m, [{"a"}, {?}]>},
    %y: tensor<8x8xf32> {cleave.sharding = #cleave.sharding<@m, [{?}, {"a"}]>})
    -> tensor<8x8xf32> {
  %z = arith.addf %x, %y : tensor<8x8xf32>
  return %z : tensor<8x8xf32>
}

// The larger factor keeps its cut; the other gathers 8x4.
// AT MOST: @larger_factor_wins 96
func.func @larger_factor_wins(
    %x: tensor<8x4xf32>
      {cleave.sharding = #cleave.sharding<@m, [{"a", "b"}, {?}]>},
    %w: tensor<4x16xf32>
      {cleave.sharding = #cleave.sharding<@m, [{?}, {"a", "c"}]>})
    -> tensor<8x16xf32> {
  %zero = arith.constant dense<0.0> : tensor<8x16xf32>
  %z = linalg.matmul ins(%x, %w : tensor<8x4xf32>, tensor<4x16xf32>)
    outs(%zero : tensor<8x16xf32>) -> tensor<8x16xf32>
  return %z : tensor<8x16xf32>
}

// The result's columns have 'a': the rows of x are gathered at most.
// AT MOST: @columns_of_result 262144
func.func @columns_of_result(
    %x: tensor<256x512xf32>
      {cleave.sharding = #cleave.sharding<@m, [{"a", ?}, {?}]>},
    %w: tensor<128x512xf32>)
    -> (tensor<256x128xf32>
      {cleave.sharding = #cleave.sharding<@m, [{?}, {"a", ?}]>}) {
  %zero = arith.constant dense<0.0> : tensor<256x128xf32>
  %z = linalg.contract
    indexing_maps = [affine_map<(m, n, k) -> (m, k)>,
                     affine_map<(m, n, k) -> (n, k)>,
                     affine_map<(m, n, k) -> (m, n)>]
    ins(%x, %w : tensor<256x512xf32>, tensor<128x512xf32>)
    outs(%zero : tensor<256x128xf32>) -> tensor<256x128xf32>
  return %z : tensor<256x128xf32>
}

// Sums after the product want columns; the product follows them.
// AT MOST: @sums_after_product 128
func.func @sums_after_product(
    %x: tensor<8x8xf32> {cleave.sharding = #cleave.sharding<@m, [{"a", ?},
        {?}]>},
    %w: tensor<8x8xf32>, %u: tensor<8x8xf32>, %v: tensor<8x8xf32>)
    -> (tensor<8x8xf32> {cleave.sharding = #cleave.sharding<@m, [{?},
        {"a", ?}]>}) {
  %zero = arith.constant dense<0.0> : tensor<8x8xf32>
  %p = linalg.matmul ins(%x, %w : tensor<8x8xf32>, tensor<8x8xf32>)
    outs(%zero : tensor<8x8xf32>) -> tensor<8x8xf32>
  %q = arith.addf %p, %u : tensor<8x8xf32>
  %r = arith.addf %q, %v : tensor<8x8xf32>
  return %r : tensor<8x8xf32>
}

// The result has rows over 'a', so the second factor gathers its own.
// AT MOST: @rows_before_reduction 16384
func.func @rows_before_reduction(
    %x: tensor<32x1024xf32>,
    %w: tensor<1024x16xf32>
      {cleave.sharding = #cleave.sharding<@m, [{"a"}, {"b"}]>})
    -> (tensor<32x16xf32>
      {cleave.sharding = #cleave.sharding<@m, [{"a"}, {"b"}]>}) {
  %zero = arith.constant dense<0.0> : tensor<32x16xf32>
  %z = linalg.matmul ins(%x, %w : tensor<32x1024xf32>, tensor<1024x16xf32>)
    outs(%zero : tensor<32x16xf32>) -> tensor<32x16xf32>
  return %z : tensor<32x16xf32>
}
