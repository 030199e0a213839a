// A table of 96 words whose rows are cut over four ranks, used at both ends of
// a model. Looking a word up: the rank that has the row gives it, the others
// give zero, and one all-reduce adds them. The scores of all words: each rank
// computes those of its own 24 words, and they stay where they are.
cleave.mesh @quad = <["tp"=4]>

#token = affine_map<(b, s, d) -> (b, s)>
#hidden = affine_map<(b, s, d) -> (b, s, d)>

func.func @forward(
    %tokens: tensor<2x5xi32> loc("tokens"),
    %table: tensor<96x8xf32>
      {cleave.weight = "table",
       cleave.sharding = #cleave.sharding<@quad, [{"tp"}, {}]>} loc("table"))
    -> (tensor<2x5x96xf32>
          {cleave.sharding = #cleave.sharding<@quad, [{}, {}, {"tp"}]>}) {
  %zero = arith.constant 0.0 : f32

  // hidden[b, s, d] = table[tokens[b, s], d]
  %empty = tensor.empty() : tensor<2x5x8xf32>
  %hidden = linalg.generic {
      indexing_maps = [#token, #hidden],
      iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%tokens : tensor<2x5xi32>) outs(%empty : tensor<2x5x8xf32>) {
    ^bb0(%token: i32, %out: f32):
      %row = arith.index_cast %token : i32 to index
      %col = linalg.index 2 : index
      %value = tensor.extract %table[%row, %col] : tensor<96x8xf32>
      linalg.yield %value : f32
  } -> tensor<2x5x8xf32> loc("hidden")

  // scores[b, s, v] = sum over d of hidden[b, s, d] table[v, d]
  %scores_empty = tensor.empty() : tensor<2x5x96xf32>
  %scores_init = linalg.fill ins(%zero : f32)
    outs(%scores_empty : tensor<2x5x96xf32>) -> tensor<2x5x96xf32>
  %scores = linalg.generic {
      indexing_maps = [affine_map<(b, s, v, d) -> (b, s, d)>,
                       affine_map<(b, s, v, d) -> (v, d)>,
                       affine_map<(b, s, v, d) -> (b, s, v)>],
      iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%hidden, %table : tensor<2x5x8xf32>, tensor<96x8xf32>)
      outs(%scores_init : tensor<2x5x96xf32>) {
    ^bb0(%h: f32, %t: f32, %acc: f32):
      %p = arith.mulf %h, %t : f32
      %s = arith.addf %p, %acc : f32
      linalg.yield %s : f32
  } -> tensor<2x5x96xf32> loc("scores")
  return %scores : tensor<2x5x96xf32>
}
