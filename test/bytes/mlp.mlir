// Two products around an activation, cut in the usual ways.
// REQUIRES: plan
// RUN: cleave plan %s --json | %python %S/bytes.py %s

cleave.mesh @m = <["tp"=4]>

// By columns, then by rows: one all-reduce of 8x16 floats, 2 * 3/4 * 512.
// MOVES: @columns_then_rows all_reduce tp 768
func.func @columns_then_rows(%x: tensor<8x16xf32>,
    %up: tensor<16x64xf32>
        {cleave.weight = "up", cleave.sharding = #cleave.sharding<@m, [{},
        {"tp"}]>},
    %down: tensor<64x16xf32>
        {cleave.weight = "down", cleave.sharding = #cleave.sharding<@m, [{"tp"}, {}]>})
    -> (tensor<8x16xf32> {cleave.sharding = #cleave.sharding<@m, [{}, {}]>}) {
  %zero_h = arith.constant dense<0.0> : tensor<8x64xf32>
  %zero_y = arith.constant dense<0.0> : tensor<8x16xf32>
  %h = linalg.matmul ins(%x, %up : tensor<8x16xf32>, tensor<16x64xf32>)
    outs(%zero_h : tensor<8x64xf32>) -> tensor<8x64xf32>
  %a = arith.maximumf %h, %zero_h : tensor<8x64xf32>
  %y = linalg.matmul ins(%a, %down : tensor<8x64xf32>, tensor<64x16xf32>)
    outs(%zero_y : tensor<8x16xf32>) -> tensor<8x16xf32>
  return %y : tensor<8x16xf32>
}

// By batch: the weights lie whole everywhere, nothing moves.
// MOVES: @by_batch nothing
func.func @by_batch(
    %x: tensor<8x16xf32> {cleave.sharding = #cleave.sharding<@m, [{"tp"}, {}]>},
    %up2: tensor<16x64xf32> {cleave.weight = "up2"},
    %down2: tensor<64x16xf32> {cleave.weight = "down2"})
    -> (tensor<8x16xf32> {cleave.sharding = #cleave.sharding<@m, [{"tp"},
        {}]>}) {
  %zero_h = arith.constant dense<0.0> : tensor<8x64xf32>
  %zero_y = arith.constant dense<0.0> : tensor<8x16xf32>
  %h = linalg.matmul ins(%x, %up2 : tensor<8x16xf32>, tensor<16x64xf32>)
    outs(%zero_h : tensor<8x64xf32>) -> tensor<8x64xf32>
  %a = arith.maximumf %h, %zero_h : tensor<8x64xf32>
  %y = linalg.matmul ins(%a, %down2 : tensor<8x64xf32>, tensor<64x16xf32>)
    outs(%zero_y : tensor<8x16xf32>) -> tensor<8x16xf32>
  return %y : tensor<8x16xf32>
}

// Batch and weights over the same axis (FSDP): each weight is gathered where it
// is used, 3/4 of its 4096 bytes, and the activations stay. A batch of 256 rows
// makes moving activations dearer.
// MOVES: @weights_gathered all_gather tp 3072 x2
func.func @weights_gathered(
    %x: tensor<256x16xf32> {cleave.sharding = #cleave.sharding<@m, [{"tp"},
        {}]>},
    %up3: tensor<16x64xf32>
        {cleave.weight = "up3", cleave.sharding = #cleave.sharding<@m, [{"tp"}, {}]>},
    %down3: tensor<64x16xf32>
        {cleave.weight = "down3", cleave.sharding = #cleave.sharding<@m, [{"tp"}, {}]>})
    -> (tensor<256x16xf32> {cleave.sharding = #cleave.sharding<@m, [{"tp"},
        {}]>}) {
  %zero_h = arith.constant dense<0.0> : tensor<256x64xf32>
  %zero_y = arith.constant dense<0.0> : tensor<256x16xf32>
  %h = linalg.matmul ins(%x, %up3 : tensor<256x16xf32>, tensor<16x64xf32>)
    outs(%zero_h : tensor<256x64xf32>) -> tensor<256x64xf32>
  %a = arith.maximumf %h, %zero_h : tensor<256x64xf32>
  %y = linalg.matmul ins(%a, %down3 : tensor<256x64xf32>, tensor<64x16xf32>)
    outs(%zero_y : tensor<256x16xf32>) -> tensor<256x16xf32>
  return %y : tensor<256x16xf32>
}

// Used twice, gathered once.
// MOVES: @weight_gathered_once all_gather tp 768
func.func @weight_gathered_once(
    %x: tensor<64x16xf32> {cleave.sharding = #cleave.sharding<@m, [{"tp"},
        {}]>},
    %w: tensor<16x16xf32>
        {cleave.weight = "w", cleave.sharding = #cleave.sharding<@m, [{"tp"},
        {}]>})
    -> (tensor<64x16xf32> {cleave.sharding = #cleave.sharding<@m, [{"tp"},
        {}]>}) {
  %zero = arith.constant dense<0.0> : tensor<64x16xf32>
  %h = linalg.matmul ins(%x, %w : tensor<64x16xf32>, tensor<16x16xf32>)
    outs(%zero : tensor<64x16xf32>) -> tensor<64x16xf32>
  %y = linalg.matmul ins(%h, %w : tensor<64x16xf32>, tensor<16x16xf32>)
    outs(%zero : tensor<64x16xf32>) -> tensor<64x16xf32>
  return %y : tensor<64x16xf32>
}

// A vocabulary over the ranks: each looks up what it has, the 4x16 rows are
// added; the table stays.
// MOVES: @lookup all_reduce tp 384
func.func @lookup(%tokens: tensor<4xi32>,
    %table: tensor<64x16xf32>
        {cleave.weight = "table", cleave.sharding = #cleave.sharding<@m, [{"tp"}, {}]>})
    -> (tensor<4x16xf32> {cleave.sharding = #cleave.sharding<@m, [{}, {}]>}) {
  %e = tensor.empty() : tensor<4x16xf32>
  %y = linalg.generic {
      indexing_maps = [affine_map<(i, j) -> (i)>, affine_map<(i, j) -> (i, j)>],
      iterator_types = ["parallel", "parallel"]}
      ins(%tokens : tensor<4xi32>) outs(%e : tensor<4x16xf32>) {
    ^bb0(%token: i32, %old: f32):
      %row = arith.index_cast %token : i32 to index
      %column = linalg.index 1 : index
      %value = tensor.extract %table[%row, %column] : tensor<64x16xf32>
      linalg.yield %value : f32
  } -> tensor<4x16xf32>
  return %y : tensor<4x16xf32>
}
