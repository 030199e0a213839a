// A reduction waits while ops are linear, and happens where it moves least.
// REQUIRES: plan
// RUN: cleave plan %s --json | %python %S/bytes.py %s

cleave.mesh @m = <["tp"=2]>

// Two products are added as summands: one reduction of 8x16 instead of two.
// MOVES: @adds_summands all_reduce tp 512
func.func @adds_summands(
    %a: tensor<8x32xf32> {cleave.sharding = #cleave.sharding<@m, [{}, {"tp"}]>},
    %b: tensor<32x16xf32> {cleave.sharding = #cleave.sharding<@m, [{"tp"},
        {}]>},
    %c: tensor<8x64xf32> {cleave.sharding = #cleave.sharding<@m, [{}, {"tp"}]>},
    %d: tensor<64x16xf32> {cleave.sharding = #cleave.sharding<@m, [{"tp"},
        {}]>})
    -> (tensor<8x16xf32> {cleave.sharding = #cleave.sharding<@m, [{}, {}]>}) {
  %zero = arith.constant dense<0.0> : tensor<8x16xf32>
  %p = linalg.matmul ins(%a, %b : tensor<8x32xf32>, tensor<32x16xf32>)
    outs(%zero : tensor<8x16xf32>) -> tensor<8x16xf32>
  %q = linalg.matmul ins(%c, %d : tensor<8x64xf32>, tensor<64x16xf32>)
    outs(%zero : tensor<8x16xf32>) -> tensor<8x16xf32>
  %sum = arith.addf %p, %q : tensor<8x16xf32>
  return %sum : tensor<8x16xf32>
}

// Only two of the rows are wanted: they are reduced, not all.
// MOVES: @past_slice all_reduce tp 128
func.func @past_slice(
    %a: tensor<8x32xf32> {cleave.sharding = #cleave.sharding<@m, [{}, {"tp"}]>},
    %b: tensor<32x16xf32> {cleave.sharding = #cleave.sharding<@m, [{"tp"},
        {}]>})
    -> (tensor<2x16xf32> {cleave.sharding = #cleave.sharding<@m, [{}, {}]>}) {
  %zero = arith.constant dense<0.0> : tensor<8x16xf32>
  %p = linalg.matmul ins(%a, %b : tensor<8x32xf32>, tensor<32x16xf32>)
    outs(%zero : tensor<8x16xf32>) -> tensor<8x16xf32>
  %s = tensor.extract_slice %p[3, 0] [2, 16] [1, 1]
    : tensor<8x16xf32> to tensor<2x16xf32>
  return %s : tensor<2x16xf32>
}

// Scaled, turned and then sliced.
// MOVES: @past_scale_transpose_slice all_reduce tp 128
func.func @past_scale_transpose_slice(
    %a: tensor<8x32xf32> {cleave.sharding = #cleave.sharding<@m, [{}, {"tp"}]>},
    %b: tensor<32x16xf32> {cleave.sharding = #cleave.sharding<@m, [{"tp"},
        {}]>})
    -> (tensor<4x8xf32> {cleave.sharding = #cleave.sharding<@m, [{}, {}]>}) {
  %zero = arith.constant dense<0.0> : tensor<8x16xf32>
  %half = arith.constant dense<0.5> : tensor<8x16xf32>
  %p = linalg.matmul ins(%a, %b : tensor<8x32xf32>, tensor<32x16xf32>)
    outs(%zero : tensor<8x16xf32>) -> tensor<8x16xf32>
  %scaled = arith.mulf %p, %half : tensor<8x16xf32>
  %e = tensor.empty() : tensor<16x8xf32>
  %t = linalg.transpose ins(%scaled : tensor<8x16xf32>)
    outs(%e : tensor<16x8xf32>) permutation = [1, 0]
  %s = tensor.extract_slice %t[0, 0] [4, 8] [1, 1]
    : tensor<16x8xf32> to tensor<4x8xf32>
  return %s : tensor<4x8xf32>
}

// Summed over its rows as well: the small sum is reduced.
// MOVES: @past_sum all_reduce tp 64
func.func @past_sum(
    %a: tensor<8x32xf32> {cleave.sharding = #cleave.sharding<@m, [{}, {"tp"}]>},
    %b: tensor<32x16xf32> {cleave.sharding = #cleave.sharding<@m, [{"tp"},
        {}]>})
    -> (tensor<16xf32> {cleave.sharding = #cleave.sharding<@m, [{}]>}) {
  %zero = arith.constant dense<0.0> : tensor<8x16xf32>
  %zero_sum = arith.constant dense<0.0> : tensor<16xf32>
  %p = linalg.matmul ins(%a, %b : tensor<8x32xf32>, tensor<32x16xf32>)
    outs(%zero : tensor<8x16xf32>) -> tensor<8x16xf32>
  %s = linalg.reduce { arith.addf } ins(%p : tensor<8x16xf32>)
    outs(%zero_sum : tensor<16xf32>) dimensions = [0]
  return %s : tensor<16xf32>
}

// A non-linear op needs the sum: reduced before it, and not twice.
// MOVES: @before_nonlinear all_reduce tp 512
func.func @before_nonlinear(
    %a: tensor<8x32xf32> {cleave.sharding = #cleave.sharding<@m, [{}, {"tp"}]>},
    %b: tensor<32x16xf32> {cleave.sharding = #cleave.sharding<@m, [{"tp"},
        {}]>})
    -> (tensor<8x16xf32> {cleave.sharding = #cleave.sharding<@m, [{}, {}]>}) {
  %zero = arith.constant dense<0.0> : tensor<8x16xf32>
  %p = linalg.matmul ins(%a, %b : tensor<8x32xf32>, tensor<32x16xf32>)
    outs(%zero : tensor<8x16xf32>) -> tensor<8x16xf32>
  %e = math.exp %p : tensor<8x16xf32>
  %f = math.absf %p : tensor<8x16xf32>
  %g = arith.addf %e, %f : tensor<8x16xf32>
  return %g : tensor<8x16xf32>
}

// A loop that adds a product in each trip reduces once after it.
// MOVES: @after_loop all_reduce tp 512
func.func @after_loop(
    %a: tensor<8x32xf32> {cleave.sharding = #cleave.sharding<@m, [{}, {"tp"}]>},
    %b: tensor<5x32x16xf32> {cleave.sharding = #cleave.sharding<@m, [{},
        {"tp"}, {}]>})
    -> (tensor<8x16xf32> {cleave.sharding = #cleave.sharding<@m, [{}, {}]>}) {
  %zero = arith.constant dense<0.0> : tensor<8x16xf32>
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c5 = arith.constant 5 : index
  %sum = scf.for %i = %c0 to %c5 step %c1 iter_args(%acc = %zero)
      -> (tensor<8x16xf32>) {
    %w = tensor.extract_slice %b[%i, 0, 0] [1, 32, 16] [1, 1, 1]
      : tensor<5x32x16xf32> to tensor<32x16xf32>
    %p = linalg.matmul ins(%a, %w : tensor<8x32xf32>, tensor<32x16xf32>)
      outs(%zero : tensor<8x16xf32>) -> tensor<8x16xf32>
    %next = arith.addf %acc, %p : tensor<8x16xf32>
    scf.yield %next : tensor<8x16xf32>
  }
  return %sum : tensor<8x16xf32>
}

// A weight that does not change is gathered before the loop, once.
// MOVES: @gathers_before_loop all_gather tp 512
func.func @gathers_before_loop(
    %x: tensor<64x16xf32> {cleave.sharding = #cleave.sharding<@m, [{"tp"},
        {}]>},
    %w: tensor<16x16xf32>
        {cleave.weight = "w", cleave.sharding = #cleave.sharding<@m, [{"tp"},
        {}]>})
    -> (tensor<64x16xf32> {cleave.sharding = #cleave.sharding<@m, [{"tp"},
        {}]>}) {
  %zero = arith.constant dense<0.0> : tensor<64x16xf32>
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c5 = arith.constant 5 : index
  %y = scf.for %i = %c0 to %c5 step %c1 iter_args(%v = %x)
      -> (tensor<64x16xf32>) {
    %p = linalg.matmul ins(%v, %w : tensor<64x16xf32>, tensor<16x16xf32>)
      outs(%zero : tensor<64x16xf32>) -> tensor<64x16xf32>
    scf.yield %p : tensor<64x16xf32>
  }
  return %y : tensor<64x16xf32>
}

// The sum meets a residual that is cut by rows: reduced to those rows.
// MOVES: @residual_rows reduce_scatter tp 256
func.func @residual_rows(%x: tensor<8x64xf32>
    {cleave.sharding = #cleave.sharding<@m, [{}, {"tp"}]>},
    %w: tensor<64x16xf32> {cleave.sharding = #cleave.sharding<@m, [{"tp"},
    {}]>}, %r: tensor<8x16xf32>
    {cleave.sharding = #cleave.sharding<@m, [{"tp"}, {}]>})
    -> (tensor<8x16xf32> {cleave.sharding = #cleave.sharding<@m, [{"tp"},
    {}]>}) {
  %z = arith.constant dense<0.0> : tensor<8x16xf32>
  %y = linalg.matmul ins(%x, %w : tensor<8x64xf32>, tensor<64x16xf32>)
      outs(%z : tensor<8x16xf32>) -> tensor<8x16xf32>
  %t = arith.addf %y, %r : tensor<8x16xf32>
  return %t : tensor<8x16xf32>
}

// Three summands, one taken away: one reduction.
// MOVES: @three all_reduce tp 512
func.func @three(%x: tensor<8x64xf32>
    {cleave.sharding = #cleave.sharding<@m, [{}, {"tp"}]>},
    %w: tensor<64x16xf32> {cleave.sharding = #cleave.sharding<@m, [{"tp"},
    {}]>}, %v: tensor<64x16xf32>
    {cleave.sharding = #cleave.sharding<@m, [{"tp"}, {}]>},
    %u: tensor<64x16xf32> {cleave.sharding = #cleave.sharding<@m, [{"tp"},
    {}]>}) -> (tensor<8x16xf32> {cleave.sharding = #cleave.sharding<@m, [{},
    {}]>}) {
  %z = arith.constant dense<0.0> : tensor<8x16xf32>
  %a = linalg.matmul ins(%x, %w : tensor<8x64xf32>, tensor<64x16xf32>)
      outs(%z : tensor<8x16xf32>) -> tensor<8x16xf32>
  %b = linalg.matmul ins(%x, %v : tensor<8x64xf32>, tensor<64x16xf32>)
      outs(%z : tensor<8x16xf32>) -> tensor<8x16xf32>
  %c = linalg.matmul ins(%x, %u : tensor<8x64xf32>, tensor<64x16xf32>)
      outs(%z : tensor<8x16xf32>) -> tensor<8x16xf32>
  %s = arith.addf %a, %b : tensor<8x16xf32>
  %d = arith.subf %s, %c : tensor<8x16xf32>
  return %d : tensor<8x16xf32>
}

// A maximum of maxima, too.
// MOVES: @two_maxima all_reduce tp 32
func.func @two_maxima(%x: tensor<8x64xf32>
    {cleave.sharding = #cleave.sharding<@m, [{}, {"tp"}]>},
    %y: tensor<8x64xf32> {cleave.sharding = #cleave.sharding<@m, [{},
    {"tp"}]>}) -> (tensor<8xf32>
    {cleave.sharding = #cleave.sharding<@m, [{}]>}) {
  %z = arith.constant dense<0xFF800000> : tensor<8xf32>
  %a = linalg.reduce {arith.maximumf} ins(%x : tensor<8x64xf32>) outs(%z
      : tensor<8xf32>) dimensions = [1]
  %b = linalg.reduce {arith.maximumf} ins(%y : tensor<8x64xf32>) outs(%z
      : tensor<8xf32>) dimensions = [1]
  %c = arith.maximumf %a, %b : tensor<8xf32>
  return %c : tensor<8xf32>
}

// A sum in bf16 moves half the bytes.
// MOVES: @cast all_reduce tp 256
func.func @cast(%x: tensor<8x64xbf16>
    {cleave.sharding = #cleave.sharding<@m, [{}, {"tp"}]>},
    %w: tensor<64x16xbf16> {cleave.sharding = #cleave.sharding<@m, [{"tp"},
    {}]>}) -> (tensor<8x16xbf16> {cleave.sharding = #cleave.sharding<@m, [{},
    {}]>}) {
  %z = arith.constant dense<0.0> : tensor<8x16xbf16>
  %a = linalg.matmul ins(%x, %w : tensor<8x64xbf16>, tensor<64x16xbf16>)
      outs(%z : tensor<8x16xbf16>) -> tensor<8x16xbf16>
  return %a : tensor<8x16xbf16>
}

// The second product adds to the first one's summands: one reduction.
// MOVES: @accumulated all_reduce tp 512
func.func @accumulated(%x: tensor<8x64xf32>
    {cleave.sharding = #cleave.sharding<@m, [{}, {"tp"}]>},
    %y: tensor<8x64xf32> {cleave.sharding = #cleave.sharding<@m, [{}, {"tp"}]>},
    %w: tensor<64x16xf32> {cleave.sharding = #cleave.sharding<@m, [{"tp"},
    {}]>}) -> (tensor<8x16xf32> {cleave.sharding = #cleave.sharding<@m, [{},
    {}]>}) {
  %z = arith.constant dense<0.0> : tensor<8x16xf32>
  %a = linalg.matmul ins(%x, %w : tensor<8x64xf32>, tensor<64x16xf32>)
      outs(%z : tensor<8x16xf32>) -> tensor<8x16xf32>
  %b = linalg.matmul ins(%y, %w : tensor<8x64xf32>, tensor<64x16xf32>)
      outs(%a : tensor<8x16xf32>) -> tensor<8x16xf32>
  return %b : tensor<8x16xf32>
}
