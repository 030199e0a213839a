// What a loop carries may be summands: they are reduced once behind it, not in
// each trip.
// REQUIRES: plan
// RUN: cleave plan %s --json | %python %S/bytes.py %s

cleave.mesh @m = <["tp"=2]>

// The product adds to what the loop carries: 8x16 floats, once.
// MOVES: @accumulates all_reduce tp 512
func.func @accumulates(
    %x: tensor<4x8x32xf32>
        {cleave.sharding = #cleave.sharding<@m, [{}, {}, {"tp"}]>},
    %w: tensor<4x32x16xf32>
        {cleave.sharding = #cleave.sharding<@m, [{}, {"tp"}, {}]>},
    %bias: tensor<8x16xf32>
        {cleave.sharding = #cleave.sharding<@m, [{}, {}]>})
    -> (tensor<8x16xf32> {cleave.sharding = #cleave.sharding<@m, [{}, {}]>}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %sum = scf.for %i = %c0 to %c4 step %c1 iter_args(%acc = %bias)
      -> (tensor<8x16xf32>) {
    %xi = tensor.extract_slice %x[%i, 0, 0] [1, 8, 32] [1, 1, 1]
      : tensor<4x8x32xf32> to tensor<8x32xf32>
    %wi = tensor.extract_slice %w[%i, 0, 0] [1, 32, 16] [1, 1, 1]
      : tensor<4x32x16xf32> to tensor<32x16xf32>
    %next = linalg.matmul ins(%xi, %wi : tensor<8x32xf32>, tensor<32x16xf32>)
      outs(%acc : tensor<8x16xf32>) -> tensor<8x16xf32>
    scf.yield %next : tensor<8x16xf32>
  }
  return %sum : tensor<8x16xf32>
}

// Through several linear ops, and the result scaled and sliced: its two rows
// are reduced.
// MOVES: @scaled_and_sliced all_reduce tp 128
func.func @scaled_and_sliced(
    %x: tensor<8x32xf32> {cleave.sharding = #cleave.sharding<@m, [{}, {"tp"}]>},
    %w: tensor<32x16xf32> {cleave.sharding = #cleave.sharding<@m, [{"tp"},
        {}]>})
    -> (tensor<2x16xf32> {cleave.sharding = #cleave.sharding<@m, [{}, {}]>}) {
  %zero = arith.constant dense<0.0> : tensor<8x16xf32>
  %half = arith.constant dense<0.5> : tensor<8x16xf32>
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %sum = scf.for %i = %c0 to %c3 step %c1 iter_args(%acc = %zero)
      -> (tensor<8x16xf32>) {
    %p = linalg.matmul ins(%x, %w : tensor<8x32xf32>, tensor<32x16xf32>)
      outs(%zero : tensor<8x16xf32>) -> tensor<8x16xf32>
    %decayed = arith.mulf %acc, %half : tensor<8x16xf32>
    %next = arith.addf %decayed, %p : tensor<8x16xf32>
    scf.yield %next : tensor<8x16xf32>
  }
  %rows = tensor.extract_slice %sum[0, 0] [2, 16] [1, 1]
    : tensor<8x16xf32> to tensor<2x16xf32>
  return %rows : tensor<2x16xf32>
}

// A loop in a loop: one reduction behind both. How often they run does not
// matter, nor whether it is known.
// MOVES: @nested all_reduce tp 512
func.func @nested(
    %x: tensor<8x32xf32> {cleave.sharding = #cleave.sharding<@m, [{}, {"tp"}]>},
    %w: tensor<32x16xf32> {cleave.sharding = #cleave.sharding<@m, [{"tp"},
        {}]>}, %trips: tensor<index>)
    -> (tensor<8x16xf32> {cleave.sharding = #cleave.sharding<@m, [{}, {}]>}) {
  %zero = arith.constant dense<0.0> : tensor<8x16xf32>
  %n = tensor.extract %trips[] : tensor<index>
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %sum = scf.for %i = %c0 to %n step %c1 iter_args(%outer = %zero)
      -> (tensor<8x16xf32>) {
    %part = scf.for %k = %c0 to %c3 step %c1 iter_args(%acc = %outer)
        -> (tensor<8x16xf32>) {
      %next = linalg.matmul ins(%x, %w : tensor<8x32xf32>, tensor<32x16xf32>)
        outs(%acc : tensor<8x16xf32>) -> tensor<8x16xf32>
      scf.yield %next : tensor<8x16xf32>
    }
    scf.yield %part : tensor<8x16xf32>
  }
  return %sum : tensor<8x16xf32>
}

// The first value is a sum itself, which nobody else reads: it is not reduced
// before the loop.
// MOVES: @starts_with_summands all_reduce tp 512
func.func @starts_with_summands(
    %x: tensor<8x32xf32> {cleave.sharding = #cleave.sharding<@m, [{}, {"tp"}]>},
    %w: tensor<32x16xf32> {cleave.sharding = #cleave.sharding<@m, [{"tp"},
        {}]>})
    -> (tensor<8x16xf32> {cleave.sharding = #cleave.sharding<@m, [{}, {}]>}) {
  %zero = arith.constant dense<0.0> : tensor<8x16xf32>
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %first = linalg.matmul ins(%x, %w : tensor<8x32xf32>, tensor<32x16xf32>)
    outs(%zero : tensor<8x16xf32>) -> tensor<8x16xf32>
  %sum = scf.for %i = %c0 to %c3 step %c1 iter_args(%acc = %first)
      -> (tensor<8x16xf32>) {
    %next = linalg.matmul ins(%x, %w : tensor<8x32xf32>, tensor<32x16xf32>)
      outs(%acc : tensor<8x16xf32>) -> tensor<8x16xf32>
    scf.yield %next : tensor<8x16xf32>
  }
  return %sum : tensor<8x16xf32>
}

// Each trip needs the sum for a function that is not linear.
// MOVES: @reduces_in_each_trip all_reduce tp 512 x3
func.func @reduces_in_each_trip(
    %x: tensor<8x32xf32> {cleave.sharding = #cleave.sharding<@m, [{}, {"tp"}]>},
    %w: tensor<32x16xf32> {cleave.sharding = #cleave.sharding<@m, [{"tp"},
        {}]>})
    -> (tensor<8x16xf32> {cleave.sharding = #cleave.sharding<@m, [{}, {}]>}) {
  %zero = arith.constant dense<0.0> : tensor<8x16xf32>
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %sum = scf.for %i = %c0 to %c3 step %c1 iter_args(%acc = %zero)
      -> (tensor<8x16xf32>) {
    %p = linalg.matmul ins(%x, %w : tensor<8x32xf32>, tensor<32x16xf32>)
      outs(%acc : tensor<8x16xf32>) -> tensor<8x16xf32>
    %next = math.absf %p : tensor<8x16xf32>
    scf.yield %next : tensor<8x16xf32>
  }
  return %sum : tensor<8x16xf32>
}

// Two values change places: both are summands, or neither; 16 columns and 16
// are reduced together.
// MOVES: @change_places all_reduce tp 1024
func.func @change_places(
    %x: tensor<8x32xf32> {cleave.sharding = #cleave.sharding<@m, [{}, {"tp"}]>},
    %w: tensor<32x16xf32> {cleave.sharding = #cleave.sharding<@m, [{"tp"},
        {}]>})
    -> (tensor<8x16xf32> {cleave.sharding = #cleave.sharding<@m, [{}, {}]>},
        tensor<8x16xf32> {cleave.sharding = #cleave.sharding<@m, [{}, {}]>}) {
  %zero = arith.constant dense<0.0> : tensor<8x16xf32>
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %sums:2 = scf.for %i = %c0 to %c3 step %c1
      iter_args(%a = %zero, %b = %zero)
      -> (tensor<8x16xf32>, tensor<8x16xf32>) {
    %next = linalg.matmul ins(%x, %w : tensor<8x32xf32>, tensor<32x16xf32>)
      outs(%a : tensor<8x16xf32>) -> tensor<8x16xf32>
    scf.yield %b, %next : tensor<8x16xf32>, tensor<8x16xf32>
  }
  return %sums#0, %sums#1 : tensor<8x16xf32>, tensor<8x16xf32>
}

// A maximum over the trips, too.
// MOVES: @largest all_reduce tp 32
func.func @largest(%x: tensor<8x64xf32>
    {cleave.sharding = #cleave.sharding<@m, [{}, {"tp"}]>})
    -> (tensor<8xf32> {cleave.sharding = #cleave.sharding<@m, [{}]>}) {
  %low = arith.constant dense<0xFF800000> : tensor<8xf32>
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %top = scf.for %i = %c0 to %c3 step %c1 iter_args(%acc = %low)
      -> (tensor<8xf32>) {
    %next = linalg.reduce {arith.maximumf} ins(%x : tensor<8x64xf32>)
      outs(%acc : tensor<8xf32>) dimensions = [1]
    scf.yield %next : tensor<8xf32>
  }
  return %top : tensor<8xf32>
}
