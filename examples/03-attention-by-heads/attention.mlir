// Causal attention whose 4 heads lie on 4 ranks. Written as usual: products,
// reshapes into heads, a mask made from indices, a softmax. The cut of the
// weights' columns passes through the reshapes to the heads; each rank works on
// its own head, and one all-reduce adds what the ranks give to the output.
cleave.mesh @quad = <["tp"=4]>

#x = affine_map<(b, s, n, d) -> (b, s, d)>
#w = affine_map<(b, s, n, d) -> (d, n)>
#xw = affine_map<(b, s, n, d) -> (b, s, n)>
#q = affine_map<(b, h, s, t, e) -> (b, s, h, e)>
#k = affine_map<(b, h, s, t, e) -> (b, t, h, e)>
#scores = affine_map<(b, h, s, t, e) -> (b, h, s, t)>
#p = affine_map<(b, h, s, e, t) -> (b, h, s, t)>
#v = affine_map<(b, h, s, e, t) -> (b, t, h, e)>
#mixed = affine_map<(b, h, s, e, t) -> (b, s, h, e)>
#all = affine_map<(b, h, s, t) -> (b, h, s, t)>
#row = affine_map<(b, h, s, t) -> (b, h, s)>

func.func @forward(
    %x: tensor<2x8x16xf32> loc("x"),
    %wq: tensor<16x16xf32>
      {cleave.weight = "wq",
       cleave.sharding = #cleave.sharding<@quad, [{}, {"tp"}]>} loc("wq"),
    %wk: tensor<16x16xf32>
      {cleave.weight = "wk",
       cleave.sharding = #cleave.sharding<@quad, [{}, {"tp"}]>} loc("wk"),
    %wv: tensor<16x16xf32>
      {cleave.weight = "wv",
       cleave.sharding = #cleave.sharding<@quad, [{}, {"tp"}]>} loc("wv"),
    %wo: tensor<16x16xf32>
      {cleave.weight = "wo",
       cleave.sharding = #cleave.sharding<@quad, [{"tp"}, {}]>} loc("wo"))
    -> (tensor<2x8x16xf32>
          {cleave.sharding = #cleave.sharding<@quad, [{}, {}, {}]>}) {
  %zero = arith.constant 0.0 : f32
  %half = arith.constant 0.5 : f32
  %lowest = arith.constant 0xFF800000 : f32

  // Queries, keys and values: [b, s, d] x [d, he], then he is split into heads.
  %qkv_empty = tensor.empty() : tensor<2x8x16xf32>
  %qkv_init = linalg.fill ins(%zero : f32)
    outs(%qkv_empty : tensor<2x8x16xf32>) -> tensor<2x8x16xf32>
  %q_flat = linalg.contract indexing_maps = [#x, #w, #xw]
    ins(%x, %wq : tensor<2x8x16xf32>, tensor<16x16xf32>)
    outs(%qkv_init : tensor<2x8x16xf32>) -> tensor<2x8x16xf32> loc("q_flat")
  %q = tensor.expand_shape %q_flat [[0], [1], [2, 3]]
    output_shape [2, 8, 4, 4]
    : tensor<2x8x16xf32> into tensor<2x8x4x4xf32> loc("q")
  %k_flat = linalg.contract indexing_maps = [#x, #w, #xw]
    ins(%x, %wk : tensor<2x8x16xf32>, tensor<16x16xf32>)
    outs(%qkv_init : tensor<2x8x16xf32>) -> tensor<2x8x16xf32> loc("k_flat")
  %k = tensor.expand_shape %k_flat [[0], [1], [2, 3]]
    output_shape [2, 8, 4, 4]
    : tensor<2x8x16xf32> into tensor<2x8x4x4xf32> loc("k")
  %v_flat = linalg.contract indexing_maps = [#x, #w, #xw]
    ins(%x, %wv : tensor<2x8x16xf32>, tensor<16x16xf32>)
    outs(%qkv_init : tensor<2x8x16xf32>) -> tensor<2x8x16xf32> loc("v_flat")
  %v = tensor.expand_shape %v_flat [[0], [1], [2, 3]]
    output_shape [2, 8, 4, 4]
    : tensor<2x8x16xf32> into tensor<2x8x4x4xf32> loc("v")

  // scores[b, h, s, t] = sum over e of q[b, s, h, e] k[b, t, h, e]
  %scores_empty = tensor.empty() : tensor<2x4x8x8xf32>
  %scores_init = linalg.fill ins(%zero : f32)
    outs(%scores_empty : tensor<2x4x8x8xf32>) -> tensor<2x4x8x8xf32>
  %scores = linalg.contract indexing_maps = [#q, #k, #scores]
    ins(%q, %k : tensor<2x8x4x4xf32>, tensor<2x8x4x4xf32>)
    outs(%scores_init : tensor<2x4x8x8xf32>)
    -> tensor<2x4x8x8xf32> loc("scores")

  // Scaled by 1/sqrt(4); a key after its query is masked.
  %masked = linalg.generic {
      indexing_maps = [#all, #all],
      iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%scores : tensor<2x4x8x8xf32>)
      outs(%scores_empty : tensor<2x4x8x8xf32>) {
    ^bb0(%value: f32, %old: f32):
      %s = linalg.index 2 : index
      %t = linalg.index 3 : index
      %seen = arith.cmpi sle, %t, %s : index
      %scaled = arith.mulf %value, %half : f32
      %kept = arith.select %seen, %scaled, %lowest : f32
      linalg.yield %kept : f32
  } -> tensor<2x4x8x8xf32> loc("masked")

  // Softmax over t.
  %row_empty = tensor.empty() : tensor<2x4x8xf32>
  %row_lowest = linalg.fill ins(%lowest : f32)
    outs(%row_empty : tensor<2x4x8xf32>) -> tensor<2x4x8xf32>
  %row_zero = linalg.fill ins(%zero : f32)
    outs(%row_empty : tensor<2x4x8xf32>) -> tensor<2x4x8xf32>
  %largest = linalg.reduce { arith.maximumf }
    ins(%masked : tensor<2x4x8x8xf32>) outs(%row_lowest : tensor<2x4x8xf32>)
    dimensions = [3] loc("largest")
  %powers = linalg.generic {
      indexing_maps = [#all, #row, #all],
      iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%masked, %largest : tensor<2x4x8x8xf32>, tensor<2x4x8xf32>)
      outs(%scores_empty : tensor<2x4x8x8xf32>) {
    ^bb0(%value: f32, %max: f32, %old: f32):
      %d = arith.subf %value, %max : f32
      %e = math.exp %d : f32
      linalg.yield %e : f32
  } -> tensor<2x4x8x8xf32> loc("powers")
  %total = linalg.reduce { arith.addf }
    ins(%powers : tensor<2x4x8x8xf32>) outs(%row_zero : tensor<2x4x8xf32>)
    dimensions = [3] loc("total")
  %probs = linalg.generic {
      indexing_maps = [#all, #row, #all],
      iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%powers, %total : tensor<2x4x8x8xf32>, tensor<2x4x8xf32>)
      outs(%scores_empty : tensor<2x4x8x8xf32>) {
    ^bb0(%value: f32, %sum: f32, %old: f32):
      %p = arith.divf %value, %sum : f32
      linalg.yield %p : f32
  } -> tensor<2x4x8x8xf32> loc("probs")

  // mixed[b, s, h, e] = sum over t of probs[b, h, s, t] v[b, t, h, e]
  %mixed_empty = tensor.empty() : tensor<2x8x4x4xf32>
  %mixed_init = linalg.fill ins(%zero : f32)
    outs(%mixed_empty : tensor<2x8x4x4xf32>) -> tensor<2x8x4x4xf32>
  %mixed = linalg.contract indexing_maps = [#p, #v, #mixed]
    ins(%probs, %v : tensor<2x4x8x8xf32>, tensor<2x8x4x4xf32>)
    outs(%mixed_init : tensor<2x8x4x4xf32>)
    -> tensor<2x8x4x4xf32> loc("mixed")

  // The heads side by side again, and the last product.
  %merged = tensor.collapse_shape %mixed [[0], [1], [2, 3]]
    : tensor<2x8x4x4xf32> into tensor<2x8x16xf32> loc("merged")
  %y = linalg.contract indexing_maps = [#x, #w, #xw]
    ins(%merged, %wo : tensor<2x8x16xf32>, tensor<16x16xf32>)
    outs(%qkv_init : tensor<2x8x16xf32>) -> tensor<2x8x16xf32> loc("y")
  return %y : tensor<2x8x16xf32>
}
