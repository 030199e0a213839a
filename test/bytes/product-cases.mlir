// Products and reductions over a cut dim, with the result wanted somewhere
// else.
// REQUIRES: plan
// RUN: cleave plan %s --json | %python %S/bytes.py %s

cleave.mesh @m = <["x"=4, "y"=2]>

// All-reduce of the 2x16 block: 2 * 1/2 * 128.
// MOVES: @reduced all_reduce y 128
func.func @reduced(
    %l: tensor<8x32xf32> {cleave.sharding = #cleave.sharding<@m, [{"x"},
        {"y"}]>},
    %r: tensor<32x16xf32> {cleave.sharding = #cleave.sharding<@m, [{"y"}, {}]>})
    -> (tensor<8x16xf32> {cleave.sharding = #cleave.sharding<@m, [{"x"},
        {}]>}) {
  %zero = arith.constant dense<0.0> : tensor<8x16xf32>
  %z = linalg.matmul ins(%l, %r : tensor<8x32xf32>, tensor<32x16xf32>)
    outs(%zero : tensor<8x16xf32>) -> tensor<8x16xf32>
  return %z : tensor<8x16xf32>
}

// Cut again at once: half of it.
// MOVES: @reduced_to_columns reduce_scatter y 64
func.func @reduced_to_columns(
    %l: tensor<8x32xf32> {cleave.sharding = #cleave.sharding<@m, [{"x"},
        {"y"}]>},
    %r: tensor<32x16xf32> {cleave.sharding = #cleave.sharding<@m, [{"y"}, {}]>})
    -> (tensor<8x16xf32> {cleave.sharding = #cleave.sharding<@m, [{"x"},
        {"y"}]>}) {
  %zero = arith.constant dense<0.0> : tensor<8x16xf32>
  %z = linalg.matmul ins(%l, %r : tensor<8x32xf32>, tensor<32x16xf32>)
    outs(%zero : tensor<8x16xf32>) -> tensor<8x16xf32>
  return %z : tensor<8x16xf32>
}

// MOVES: @reduced_to_rows reduce_scatter y 64
func.func @reduced_to_rows(
    %l: tensor<8x32xf32> {cleave.sharding = #cleave.sharding<@m, [{"x"},
        {"y"}]>},
    %r: tensor<32x16xf32> {cleave.sharding = #cleave.sharding<@m, [{"y"}, {}]>})
    -> (tensor<8x16xf32> {cleave.sharding = #cleave.sharding<@m, [{"x", "y"},
        {}]>}) {
  %zero = arith.constant dense<0.0> : tensor<8x16xf32>
  %z = linalg.matmul ins(%l, %r : tensor<8x32xf32>, tensor<32x16xf32>)
    outs(%zero : tensor<8x16xf32>) -> tensor<8x16xf32>
  return %z : tensor<8x16xf32>
}

// 'y' is the major axis now: a reduction and a permute of a 1x16 block.
// AT MOST: @reduced_to_other_order 192
func.func @reduced_to_other_order(
    %l: tensor<8x32xf32> {cleave.sharding = #cleave.sharding<@m, [{"x"},
        {"y"}]>},
    %r: tensor<32x16xf32> {cleave.sharding = #cleave.sharding<@m, [{"y"}, {}]>})
    -> (tensor<8x16xf32> {cleave.sharding = #cleave.sharding<@m, [{"y", "x"},
        {}]>}) {
  %zero = arith.constant dense<0.0> : tensor<8x16xf32>
  %z = linalg.matmul ins(%l, %r : tensor<8x32xf32>, tensor<32x16xf32>)
    outs(%zero : tensor<8x16xf32>) -> tensor<8x16xf32>
  return %z : tensor<8x16xf32>
}

// One value is both factors: gathered along its rows and along its columns.
// AT MOST: @square 512
func.func @square(
    %v: tensor<16x16xf32> {cleave.sharding = #cleave.sharding<@m, [{"x"},
        {"y"}]>})
    -> (tensor<16x16xf32> {cleave.sharding = #cleave.sharding<@m, [{"x"},
        {"y"}]>}) {
  %zero = arith.constant dense<0.0> : tensor<16x16xf32>
  %z = linalg.matmul ins(%v, %v : tensor<16x16xf32>, tensor<16x16xf32>)
    outs(%zero : tensor<16x16xf32>) -> tensor<16x16xf32>
  return %z : tensor<16x16xf32>
}

// The axes change places at the result: a permute and an exchange of 16384.
// AT MOST: @transposed_result 24576
func.func @transposed_result(
    %l: tensor<128x64xf32> {cleave.sharding = #cleave.sharding<@m, [{"x"},
        {}]>},
    %r: tensor<64x256xf32> {cleave.sharding = #cleave.sharding<@m, [{},
        {"y"}]>})
    -> (tensor<128x256xf32> {cleave.sharding = #cleave.sharding<@m, [{"y"},
        {"x"}]>}) {
  %zero = arith.constant dense<0.0> : tensor<128x256xf32>
  %z = linalg.matmul ins(%l, %r : tensor<128x64xf32>, tensor<64x256xf32>)
    outs(%zero : tensor<128x256xf32>) -> tensor<128x256xf32>
  return %z : tensor<128x256xf32>
}

// A short contraction: the factors are smaller than the result, so they move.
// AT MOST: @small_factors_move 2048
func.func @small_factors_move(
    %l: tensor<128x4xf32> {cleave.sharding = #cleave.sharding<@m, [{"x"}, {}]>},
    %r: tensor<4x256xf32> {cleave.sharding = #cleave.sharding<@m, [{}, {"y"}]>})
    -> (tensor<128x256xf32> {cleave.sharding = #cleave.sharding<@m, [{"y"},
        {"x"}]>}) {
  %zero = arith.constant dense<0.0> : tensor<128x256xf32>
  %z = linalg.matmul ins(%l, %r : tensor<128x4xf32>, tensor<4x256xf32>)
    outs(%zero : tensor<128x256xf32>) -> tensor<128x256xf32>
  return %z : tensor<128x256xf32>
}

// 2 * 3/4 of the 2x13 result.
// MOVES: @sum_over_cut all_reduce x 156
func.func @sum_over_cut(
    %v: tensor<2x64x13xf32>
      {cleave.sharding = #cleave.sharding<@m, [{}, {"x"}, {}]>})
    -> (tensor<2x13xf32> {cleave.sharding = #cleave.sharding<@m, [{}, {}]>}) {
  %zero = arith.constant dense<0.0> : tensor<2x13xf32>
  %z = linalg.reduce { arith.addf } ins(%v : tensor<2x64x13xf32>)
    outs(%zero : tensor<2x13xf32>) dimensions = [1]
  return %z : tensor<2x13xf32>
}

// The kind is the body's; the bytes are a sum's.
// MOVES: @max_over_cut all_reduce x 156
func.func @max_over_cut(
    %v: tensor<2x64x13xf32>
      {cleave.sharding = #cleave.sharding<@m, [{}, {"x"}, {}]>})
    -> (tensor<2x13xf32> {cleave.sharding = #cleave.sharding<@m, [{}, {}]>}) {
  %lowest = arith.constant dense<0xFF800000> : tensor<2x13xf32>
  %z = linalg.reduce { arith.maximumf } ins(%v : tensor<2x64x13xf32>)
    outs(%lowest : tensor<2x13xf32>) dimensions = [1]
  return %z : tensor<2x13xf32>
}

// One reduction over everything that cuts the two dims: 2 * 7/8 of 52 bytes,
// rounded up.
// AT MOST: @sum_over_sub_axes 92
func.func @sum_over_sub_axes(
    %v: tensor<2x64x13xf32>
      {cleave.sharding = #cleave.sharding<@m, [{"x":(2)2}, {"y", "x":(1)2},
          {}]>})
    -> (tensor<13xf32> {cleave.sharding = #cleave.sharding<@m, [{}]>}) {
  %zero = arith.constant dense<0.0> : tensor<13xf32>
  %z = linalg.reduce { arith.addf } ins(%v : tensor<2x64x13xf32>)
    outs(%zero : tensor<13xf32>) dimensions = [0, 1]
  return %z : tensor<13xf32>
}

// Two values reduced by one op: the whole one is cut like the other.
// AT MOST: @two_sums 312
func.func @two_sums(
    %v: tensor<2x64x13xf32>
      {cleave.sharding = #cleave.sharding<@m, [{}, {"x"}, {}]>},
    %w: tensor<2x64x13xf32>
      {cleave.sharding = #cleave.sharding<@m, [{}, {}, {}]>})
    -> (tensor<2x13xf32> {cleave.sharding = #cleave.sharding<@m, [{}, {}]>},
        tensor<2x13xf32> {cleave.sharding = #cleave.sharding<@m, [{}, {}]>}) {
  %zero = arith.constant dense<0.0> : tensor<2x13xf32>
  %z:2 = linalg.reduce
    ins(%v, %w : tensor<2x64x13xf32>, tensor<2x64x13xf32>)
    outs(%zero, %zero : tensor<2x13xf32>, tensor<2x13xf32>) dimensions = [1]
    (%a: f32, %b: f32, %ia: f32, %ib: f32) {
      %s = arith.addf %a, %ia : f32
      %t = arith.addf %b, %ib : f32
      linalg.yield %s, %t : f32, f32
    }
  return %z#0, %z#1 : tensor<2x13xf32>, tensor<2x13xf32>
}
