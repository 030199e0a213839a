// What parts of models move, in the words of those who cut them by hand.
// REQUIRES: plan
// RUN: cleave plan %s --json | %python %S/bytes.py %s

cleave.mesh @m = <["tp"=4]>

// Logits over a cut vocabulary: a maximum and a sum a row, 2 * 3/4 * 32 bytes
// each; the logits stay.
// MOVES: @vocab_softmax all_reduce tp 48 x2
func.func @vocab_softmax(%h: tensor<8x16xf32>, %w: tensor<16x64xf32>
    {cleave.weight = "w", cleave.sharding = #cleave.sharding<@m, [{},
    {"tp"}]>}) -> (tensor<8x64xf32>
    {cleave.sharding = #cleave.sharding<@m, [{}, {"tp"}]>}) {
  %z = arith.constant dense<0.0> : tensor<8x64xf32>
  %e = tensor.empty() : tensor<8x64xf32>
  %l = linalg.matmul ins(%h, %w : tensor<8x16xf32>, tensor<16x64xf32>)
      outs(%z : tensor<8x64xf32>) -> tensor<8x64xf32>
  %p = linalg.softmax dimension(1) ins(%l : tensor<8x64xf32>) outs(%e
      : tensor<8x64xf32>) -> tensor<8x64xf32>
  return %p : tensor<8x64xf32>
}

// Halves of whole heads change places.
// MOVES: @rope nothing
func.func @rope(%x: tensor<8x4x16xf32>
    {cleave.sharding = #cleave.sharding<@m, [{}, {"tp"}, {}]>})
    -> tensor<8x4x16xf32> {
  %a = tensor.extract_slice %x[0, 0, 0] [8, 4, 8] [1, 1, 1]
      : tensor<8x4x16xf32> to tensor<8x4x8xf32>
  %b = tensor.extract_slice %x[0, 0, 8] [8, 4, 8] [1, 1, 1]
      : tensor<8x4x16xf32> to tensor<8x4x8xf32>
  %n = arith.negf %b : tensor<8x4x8xf32>
  %c = tensor.concat dim(2) %n, %a : (tensor<8x4x8xf32>, tensor<8x4x8xf32>)
      -> tensor<8x4x16xf32>
  return %c : tensor<8x4x16xf32>
}

// One position of a cache that is cut by heads.
// MOVES: @cache nothing
func.func @cache(%k: tensor<32x4x8xf32>
    {cleave.state = "k", cleave.sharding = #cleave.sharding<@m, [{}, {"tp"},
    {}]>}, %new: tensor<1x4x8xf32>, %at: tensor<index>)
    -> (tensor<32x4x8xf32> {cleave.state = "k"}) {
  %i = tensor.extract %at[] : tensor<index>
  %y = tensor.insert_slice %new into %k[%i, 0, 0] [1, 4, 8] [1, 1, 1]
      : tensor<1x4x8xf32> into tensor<32x4x8xf32>
  return %y : tensor<32x4x8xf32>
}

// Queries, keys and values in one weight, cut by heads.
// MOVES: @fused_qkv nothing
func.func @fused_qkv(%x: tensor<8x16xf32>, %w: tensor<16x3x4x4xf32>
    {cleave.weight = "wqkv", cleave.sharding = #cleave.sharding<@m, [{}, {},
    {"tp"}, {}]>}) -> (tensor<8x4x4xf32>
    {cleave.sharding = #cleave.sharding<@m, [{}, {"tp"}, {}]>}) {
  %z = arith.constant dense<0.0> : tensor<8x3x4x4xf32>
  %e = tensor.empty() : tensor<8x4x4xf32>
  %y = linalg.contract indexing_maps = [affine_map<(b, t, h, e, d)
      -> (b, d)>, affine_map<(b, t, h, e, d) -> (d, t, h, e)>,
      affine_map<(b, t, h, e, d) -> (b, t, h, e)>] ins(%x, %w
      : tensor<8x16xf32>, tensor<16x3x4x4xf32>) outs(%z
      : tensor<8x3x4x4xf32>) -> tensor<8x3x4x4xf32>
  %q = tensor.extract_slice %y[0, 0, 0, 0] [8, 1, 4, 4] [1, 1, 1, 1]
      : tensor<8x3x4x4xf32> to tensor<8x4x4xf32>
  %k = tensor.extract_slice %y[0, 1, 0, 0] [8, 1, 4, 4] [1, 1, 1, 1]
      : tensor<8x3x4x4xf32> to tensor<8x4x4xf32>
  %s = linalg.mul ins(%q, %k : tensor<8x4x4xf32>, tensor<8x4x4xf32>) outs(%e
      : tensor<8x4x4xf32>) -> tensor<8x4x4xf32>
  return %s : tensor<8x4x4xf32>
}

// A bias and a residual around the sum: one all-reduce.
// MOVES: @bias_residual all_reduce tp 768
func.func @bias_residual(%x: tensor<8x64xf32>
    {cleave.sharding = #cleave.sharding<@m, [{}, {"tp"}]>},
    %w: tensor<64x16xf32>
    {cleave.weight = "wd", cleave.sharding = #cleave.sharding<@m, [{"tp"},
    {}]>}, %b: tensor<16xf32> {cleave.weight = "bd"}, %r: tensor<8x16xf32>)
    -> (tensor<8x16xf32> {cleave.sharding = #cleave.sharding<@m, [{}, {}]>}) {
  %z = arith.constant dense<0.0> : tensor<8x16xf32>
  %e = tensor.empty() : tensor<8x16xf32>
  %y = linalg.matmul ins(%x, %w : tensor<8x64xf32>, tensor<64x16xf32>)
      outs(%z : tensor<8x16xf32>) -> tensor<8x16xf32>
  %bb = linalg.broadcast ins(%b : tensor<16xf32>) outs(%e
      : tensor<8x16xf32>) dimensions = [0]
  %s = arith.addf %y, %bb : tensor<8x16xf32>
  %t = arith.addf %s, %r : tensor<8x16xf32>
  return %t : tensor<8x16xf32>
}

// Read twice, reduced once.
// MOVES: @two_linear_users all_reduce tp 768
func.func @two_linear_users(%x: tensor<8x64xf32>
    {cleave.sharding = #cleave.sharding<@m, [{}, {"tp"}]>},
    %w: tensor<64x16xf32>
    {cleave.weight = "we", cleave.sharding = #cleave.sharding<@m, [{"tp"},
    {}]>}) -> (tensor<8x16xf32> {cleave.sharding = #cleave.sharding<@m, [{},
    {}]>}, tensor<16x8xf32> {cleave.sharding = #cleave.sharding<@m, [{},
    {}]>}) {
  %z = arith.constant dense<0.0> : tensor<8x16xf32>
  %e = tensor.empty() : tensor<16x8xf32>
  %y = linalg.matmul ins(%x, %w : tensor<8x64xf32>, tensor<64x16xf32>)
      outs(%z : tensor<8x16xf32>) -> tensor<8x16xf32>
  %n = arith.negf %y : tensor<8x16xf32>
  %t = linalg.transpose ins(%y : tensor<8x16xf32>) outs(%e
      : tensor<16x8xf32>) permutation = [1, 0]
  return %n, %t : tensor<8x16xf32>, tensor<16x8xf32>
}

// The gradient of a weight over a cut batch.
// MOVES: @gradient all_reduce tp 1536
func.func @gradient(%x: tensor<64x16xf32>
    {cleave.sharding = #cleave.sharding<@m, [{"tp"}, {}]>},
    %g: tensor<64x16xf32> {cleave.sharding = #cleave.sharding<@m, [{"tp"},
    {}]>}) -> (tensor<16x16xf32> {cleave.sharding = #cleave.sharding<@m, [{},
    {}]>}) {
  %z = arith.constant dense<0.0> : tensor<16x16xf32>
  %y = linalg.contract indexing_maps = [affine_map<(i, j, b)
      -> (b, i)>, affine_map<(i, j, b) -> (b, j)>, affine_map<(i, j, b)
      -> (i, j)>] ins(%x, %g : tensor<64x16xf32>, tensor<64x16xf32>) outs(%z
      : tensor<16x16xf32>) -> tensor<16x16xf32>
  return %y : tensor<16x16xf32>
}

// Each rank keeps the rows that it updates: half of it.
// MOVES: @gradient_zero reduce_scatter tp 768
func.func @gradient_zero(%x: tensor<64x16xf32>
    {cleave.sharding = #cleave.sharding<@m, [{"tp"}, {}]>},
    %g: tensor<64x16xf32> {cleave.sharding = #cleave.sharding<@m, [{"tp"},
    {}]>}) -> (tensor<16x16xf32>
    {cleave.sharding = #cleave.sharding<@m, [{"tp"}, {}]>}) {
  %z = arith.constant dense<0.0> : tensor<16x16xf32>
  %y = linalg.contract indexing_maps = [affine_map<(i, j, b)
      -> (b, i)>, affine_map<(i, j, b) -> (b, j)>, affine_map<(i, j, b)
      -> (i, j)>] ins(%x, %g : tensor<64x16xf32>, tensor<64x16xf32>) outs(%z
      : tensor<16x16xf32>) -> tensor<16x16xf32>
  return %y : tensor<16x16xf32>
}

// Divided after the sum of eight floats.
// MOVES: @mean all_reduce tp 48
func.func @mean(%x: tensor<8x64xf32>
    {cleave.sharding = #cleave.sharding<@m, [{}, {"tp"}]>}) -> (tensor<8xf32>
    {cleave.sharding = #cleave.sharding<@m, [{}]>}) {
  %z = arith.constant dense<0.0> : tensor<8xf32>
  %c = arith.constant dense<64.0> : tensor<8xf32>
  %y = linalg.reduce {arith.addf} ins(%x : tensor<8x64xf32>) outs(%z
      : tensor<8xf32>) dimensions = [1]
  %m = arith.divf %y, %c : tensor<8xf32>
  return %m : tensor<8xf32>
}

// Two small sums travel together.
// MOVES: @layernorm all_reduce tp 96
func.func @layernorm(%x: tensor<8x64xf32>
    {cleave.sharding = #cleave.sharding<@m, [{}, {"tp"}]>}) -> (tensor<8xf32>
    {cleave.sharding = #cleave.sharding<@m, [{}]>}, tensor<8xf32>
    {cleave.sharding = #cleave.sharding<@m, [{}]>}) {
  %z = arith.constant dense<0.0> : tensor<8xf32>
  %y = linalg.reduce {arith.addf} ins(%x : tensor<8x64xf32>) outs(%z
      : tensor<8xf32>) dimensions = [1]
  %q = arith.mulf %x, %x : tensor<8x64xf32>
  %s = linalg.reduce {arith.addf} ins(%q : tensor<8x64xf32>) outs(%z
      : tensor<8xf32>) dimensions = [1]
  return %y, %s : tensor<8xf32>, tensor<8xf32>
}

// Two heads over four ranks: half a head each.
// MOVES: @few_heads nothing
func.func @few_heads(%x: tensor<8x32xf32>
    {cleave.sharding = #cleave.sharding<@m, [{}, {"tp"}]>})
    -> tensor<8x2x16xf32> {
  %y = tensor.expand_shape %x [[0], [1, 2]] output_shape [8, 2, 16]
      : tensor<8x32xf32> into tensor<8x2x16xf32>
  return %y : tensor<8x2x16xf32>
}

// A table cut by columns is looked up where it is.
// MOVES: @lookup_columns nothing
func.func @lookup_columns(%tokens: tensor<4xi32>, %table: tensor<64x16xf32>
    {cleave.weight = "t2", cleave.sharding = #cleave.sharding<@m, [{},
    {"tp"}]>}) -> (tensor<4x16xf32>
    {cleave.sharding = #cleave.sharding<@m, [{}, {"tp"}]>}) {
  %e = tensor.empty() : tensor<4x16xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i)>,
      affine_map<(i, j)
      -> (i, j)>], iterator_types = ["parallel", "parallel"]} ins(%tokens
      : tensor<4xi32>) outs(%e : tensor<4x16xf32>) {
    ^bb0(%token: i32, %old: f32):
      %row = arith.index_cast %token : i32 to index
      %column = linalg.index 1 : index
      %value = tensor.extract %table[%row, %column] : tensor<64x16xf32>
      linalg.yield %value : f32
  } -> tensor<4x16xf32>
  return %y : tensor<4x16xf32>
}

// A combiner of no known kind, but rows are free: an exchange, 3/4 of a block of
// 512 bytes, and never a gather of the 2048. The eight results may be gathered.
// AT MOST: @unreadable 408
func.func @unreadable(%x: tensor<8x64xf32>
    {cleave.sharding = #cleave.sharding<@m, [{}, {"tp"}]>}) -> tensor<8xf32> {
  %z = arith.constant dense<0.0> : tensor<8xf32>
  %y = linalg.reduce ins(%x : tensor<8x64xf32>) outs(%z
      : tensor<8xf32>) dimensions = [1] (%in: f32, %acc: f32) {
    %n = arith.subf %in, %acc : f32
    linalg.yield %n : f32
  }
  return %y : tensor<8xf32>
}
