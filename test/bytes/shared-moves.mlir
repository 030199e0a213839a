// A value that several ops read moves once where that is less than what each of
// them would move by itself.
// REQUIRES: plan
// RUN: cleave plan %s --json | %python %S/bytes.py %s

cleave.mesh @m = <["tp"=2]>

// Each product alone would rather gather its weight, 8x8, than x, which is as
// large; and the last one reads the rows that this gives: three gathers of 128.
// With x gathered, once for both, the columns stay cut, and the last product
// leaves summands: twice 128.
// MOVES: @moves_once all_gather tp 128
// MOVES: @moves_once reduce_scatter tp 128
func.func @moves_once(
    %x: tensor<8x8xf32> {cleave.sharding = #cleave.sharding<@m, [{"tp"}, {}]>},
    %a: tensor<8x8xf32> {cleave.sharding = #cleave.sharding<@m, [{}, {"tp"}]>},
    %b: tensor<8x8xf32> {cleave.sharding = #cleave.sharding<@m, [{}, {"tp"}]>},
    %c: tensor<8x8xf32> {cleave.sharding = #cleave.sharding<@m, [{"tp"}, {}]>})
    -> (tensor<8x8xf32>
        {cleave.sharding = #cleave.sharding<@m, [{"tp"}, {}]>}) {
  %zero = arith.constant dense<0.0> : tensor<8x8xf32>
  %p = linalg.matmul ins(%x, %a : tensor<8x8xf32>, tensor<8x8xf32>)
    outs(%zero : tensor<8x8xf32>) -> tensor<8x8xf32>
  %q = linalg.matmul ins(%x, %b : tensor<8x8xf32>, tensor<8x8xf32>)
    outs(%zero : tensor<8x8xf32>) -> tensor<8x8xf32>
  %g = arith.mulf %p, %q : tensor<8x8xf32>
  %y = linalg.matmul ins(%g, %c : tensor<8x8xf32>, tensor<8x8xf32>)
    outs(%zero : tensor<8x8xf32>) -> tensor<8x8xf32>
  return %y : tensor<8x8xf32>
}

// Of 32 rows the weights are the smaller part, also in sum.
// MOVES: @moves_weights all_gather tp 128 x3
func.func @moves_weights(
    %x: tensor<32x8xf32> {cleave.sharding = #cleave.sharding<@m, [{"tp"}, {}]>},
    %a: tensor<8x8xf32> {cleave.sharding = #cleave.sharding<@m, [{}, {"tp"}]>},
    %b: tensor<8x8xf32> {cleave.sharding = #cleave.sharding<@m, [{}, {"tp"}]>},
    %c: tensor<8x8xf32> {cleave.sharding = #cleave.sharding<@m, [{"tp"}, {}]>})
    -> (tensor<32x8xf32>
        {cleave.sharding = #cleave.sharding<@m, [{"tp"}, {}]>}) {
  %zero = arith.constant dense<0.0> : tensor<32x8xf32>
  %p = linalg.matmul ins(%x, %a : tensor<32x8xf32>, tensor<8x8xf32>)
    outs(%zero : tensor<32x8xf32>) -> tensor<32x8xf32>
  %q = linalg.matmul ins(%x, %b : tensor<32x8xf32>, tensor<8x8xf32>)
    outs(%zero : tensor<32x8xf32>) -> tensor<32x8xf32>
  %g = arith.mulf %p, %q : tensor<32x8xf32>
  %y = linalg.matmul ins(%g, %c : tensor<32x8xf32>, tensor<8x8xf32>)
    outs(%zero : tensor<32x8xf32>) -> tensor<32x8xf32>
  return %y : tensor<32x8xf32>
}

// The products are declared by rows, and so it stays: with columns they would
// be exchanged, each of them.
// MOVES: @declared_rows all_gather tp 128 x2
func.func @declared_rows(
    %x: tensor<8x8xf32> {cleave.sharding = #cleave.sharding<@m, [{"tp"}, {}]>},
    %a: tensor<8x8xf32> {cleave.sharding = #cleave.sharding<@m, [{}, {"tp"}]>},
    %b: tensor<8x8xf32> {cleave.sharding = #cleave.sharding<@m, [{}, {"tp"}]>})
    -> (tensor<8x8xf32> {cleave.sharding = #cleave.sharding<@m, [{"tp"}, {}]>},
        tensor<8x8xf32>
        {cleave.sharding = #cleave.sharding<@m, [{"tp"}, {}]>}) {
  %zero = arith.constant dense<0.0> : tensor<8x8xf32>
  %p = linalg.matmul ins(%x, %a : tensor<8x8xf32>, tensor<8x8xf32>)
    outs(%zero : tensor<8x8xf32>) -> tensor<8x8xf32>
  %q = linalg.matmul ins(%x, %b : tensor<8x8xf32>, tensor<8x8xf32>)
    outs(%zero : tensor<8x8xf32>) -> tensor<8x8xf32>
  return %p, %q : tensor<8x8xf32>, tensor<8x8xf32>
}

// The weights' rows, which are summed over, are cut. Alone each gathers them,
// 8x3 floats: 48. To exchange x, 4x8, sends 32, once for three; then each
// scatters its 4x3: 24, the three together.
// MOVES: @exchanges_once all_to_all tp 32
// MOVES: @exchanges_once reduce_scatter tp 72
func.func @exchanges_once(
    %x: tensor<4x8xf32> {cleave.sharding = #cleave.sharding<@m, [{"tp"}, {}]>},
    %a: tensor<8x3xf32> {cleave.sharding = #cleave.sharding<@m, [{"tp"}, {}]>},
    %b: tensor<8x3xf32> {cleave.sharding = #cleave.sharding<@m, [{"tp"}, {}]>},
    %c: tensor<8x3xf32> {cleave.sharding = #cleave.sharding<@m, [{"tp"}, {}]>})
    -> (tensor<4x3xf32> {cleave.sharding = #cleave.sharding<@m, [{"tp"}, {}]>},
        tensor<4x3xf32> {cleave.sharding = #cleave.sharding<@m, [{"tp"}, {}]>},
        tensor<4x3xf32>
        {cleave.sharding = #cleave.sharding<@m, [{"tp"}, {}]>}) {
  %zero = arith.constant dense<0.0> : tensor<4x3xf32>
  %p = linalg.matmul ins(%x, %a : tensor<4x8xf32>, tensor<8x3xf32>)
    outs(%zero : tensor<4x3xf32>) -> tensor<4x3xf32>
  %q = linalg.matmul ins(%x, %b : tensor<4x8xf32>, tensor<8x3xf32>)
    outs(%zero : tensor<4x3xf32>) -> tensor<4x3xf32>
  %r = linalg.matmul ins(%x, %c : tensor<4x8xf32>, tensor<8x3xf32>)
    outs(%zero : tensor<4x3xf32>) -> tensor<4x3xf32>
  return %p, %q, %r : tensor<4x3xf32>, tensor<4x3xf32>, tensor<4x3xf32>
}

// Weights that lie outside of a loop are gathered before it, once; what the
// loop carries would be gathered in each of its 4 trips: the products stay as
// they are although one trip alone would be less with x moved.
// MOVES: @loop_gathers_weights all_gather tp 128 x3
func.func @loop_gathers_weights(
    %x: tensor<8x8xf32> {cleave.sharding = #cleave.sharding<@m, [{"tp"}, {}]>},
    %a: tensor<8x8xf32> {cleave.sharding = #cleave.sharding<@m, [{}, {"tp"}]>},
    %b: tensor<8x8xf32> {cleave.sharding = #cleave.sharding<@m, [{}, {"tp"}]>},
    %c: tensor<8x8xf32> {cleave.sharding = #cleave.sharding<@m, [{"tp"}, {}]>})
    -> (tensor<8x8xf32>
        {cleave.sharding = #cleave.sharding<@m, [{"tp"}, {}]>}) {
  %zero = arith.constant dense<0.0> : tensor<8x8xf32>
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %z = scf.for %i = %c0 to %c4 step %c1 iter_args(%v = %x)
      -> (tensor<8x8xf32>) {
    %p = linalg.matmul ins(%v, %a : tensor<8x8xf32>, tensor<8x8xf32>)
      outs(%zero : tensor<8x8xf32>) -> tensor<8x8xf32>
    %q = linalg.matmul ins(%v, %b : tensor<8x8xf32>, tensor<8x8xf32>)
      outs(%zero : tensor<8x8xf32>) -> tensor<8x8xf32>
    %g = arith.mulf %p, %q : tensor<8x8xf32>
    %y = linalg.matmul ins(%g, %c : tensor<8x8xf32>, tensor<8x8xf32>)
      outs(%zero : tensor<8x8xf32>) -> tensor<8x8xf32>
    scf.yield %y : tensor<8x8xf32>
  }
  return %z : tensor<8x8xf32>
}

// The sum is partial and stays so on the way to its two readers, which only
// turn and scale it: what they give is added and reduced once.
// MOVES: @shared_summands all_reduce tp 256
func.func @shared_summands(
    %x: tensor<8x8xf32> {cleave.sharding = #cleave.sharding<@m, [{}, {"tp"}]>},
    %w: tensor<8x8xf32> {cleave.sharding = #cleave.sharding<@m, [{"tp"}, {}]>},
    %b: tensor<8x8xf32> {cleave.sharding = #cleave.sharding<@m, [{}, {}]>})
    -> (tensor<8x8xf32> {cleave.sharding = #cleave.sharding<@m, [{}, {}]>}) {
  %zero = arith.constant dense<0.0> : tensor<8x8xf32>
  %e = tensor.empty() : tensor<8x8xf32>
  %s = linalg.matmul ins(%x, %w : tensor<8x8xf32>, tensor<8x8xf32>)
    outs(%zero : tensor<8x8xf32>) -> tensor<8x8xf32>
  %t = linalg.transpose ins(%s : tensor<8x8xf32>) outs(%e : tensor<8x8xf32>)
    permutation = [1, 0]
  %u = arith.mulf %s, %b : tensor<8x8xf32>
  %y = arith.addf %t, %u : tensor<8x8xf32>
  return %y : tensor<8x8xf32>
}
