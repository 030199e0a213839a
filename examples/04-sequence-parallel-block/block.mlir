// A whole transformer block: norm, attention, add, norm, perceptron, add. The
// two heavy parts are cut by heads and columns over 'tp'; between them, where
// each position is by itself, the sequence is cut over the same axis. So where
// a plain block all-reduces twice, this one gathers before each heavy part and
// reduce-scatters after it: the same bytes, and a quarter of the activations.
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
#hidden = affine_map<(b, s, d) -> (b, s, d)>
#position = affine_map<(b, s, d) -> (b, s)>
#gain = affine_map<(b, s, d) -> (d)>

func.func @forward(
    %x: tensor<1x8x32xf32>
      {cleave.sharding = #cleave.sharding<@quad, [{}, {"tp"}, {}]>} loc("x"),
    %wq: tensor<32x32xf32>
      {cleave.weight = "wq",
       cleave.sharding = #cleave.sharding<@quad, [{}, {"tp"}]>} loc("wq"),
    %wk: tensor<32x32xf32>
      {cleave.weight = "wk",
       cleave.sharding = #cleave.sharding<@quad, [{}, {"tp"}]>} loc("wk"),
    %wv: tensor<32x32xf32>
      {cleave.weight = "wv",
       cleave.sharding = #cleave.sharding<@quad, [{}, {"tp"}]>} loc("wv"),
    %wo: tensor<32x32xf32>
      {cleave.weight = "wo",
       cleave.sharding = #cleave.sharding<@quad, [{"tp"}, {}]>} loc("wo"),
    %up: tensor<32x64xf32>
      {cleave.weight = "up",
       cleave.sharding = #cleave.sharding<@quad, [{}, {"tp"}]>} loc("up"),
    %down: tensor<64x32xf32>
      {cleave.weight = "down",
       cleave.sharding = #cleave.sharding<@quad, [{"tp"}, {}]>} loc("down"),
    %gain1: tensor<32xf32> {cleave.weight = "gain1"} loc("gain1"),
    %gain2: tensor<32xf32> {cleave.weight = "gain2"} loc("gain2"))
    -> (tensor<1x8x32xf32>
          {cleave.sharding = #cleave.sharding<@quad, [{}, {"tp"}, {}]>}) {
  %zero = arith.constant 0.0 : f32
  %scale = arith.constant 0.3535533906 : f32
  %width = arith.constant 32.0 : f32
  %eps = arith.constant 1.0e-5 : f32
  %lowest = arith.constant 0xFF800000 : f32
  %hidden_empty = tensor.empty() : tensor<1x8x32xf32>
  %position_empty = tensor.empty() : tensor<1x8xf32>
  %position_zero = linalg.fill ins(%zero : f32)
    outs(%position_empty : tensor<1x8xf32>) -> tensor<1x8xf32>

  // norm1 = rms_norm(x), each position by itself
  %norm1_squares = linalg.generic {
      indexing_maps = [#hidden, #position],
      iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x : tensor<1x8x32xf32>) outs(%position_zero : tensor<1x8xf32>) {
    ^bb0(%value: f32, %acc: f32):
      %sq = arith.mulf %value, %value : f32
      %sum = arith.addf %sq, %acc : f32
      linalg.yield %sum : f32
  } -> tensor<1x8xf32> loc("norm1_squares")
  %norm1_free = linalg.generic {
      indexing_maps = [#hidden, #position, #gain, #hidden],
      iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%x, %norm1_squares, %gain1
          : tensor<1x8x32xf32>, tensor<1x8xf32>, tensor<32xf32>)
      outs(%hidden_empty : tensor<1x8x32xf32>) {
    ^bb0(%value: f32, %squares: f32, %g: f32, %old: f32):
      %mean = arith.divf %squares, %width : f32
      %safe = arith.addf %mean, %eps : f32
      %factor = math.rsqrt %safe : f32
      %unit = arith.mulf %value, %factor : f32
      %gained = arith.mulf %unit, %g : f32
      linalg.yield %gained : f32
  } -> tensor<1x8x32xf32> loc("norm1_free")
  %norm1 = cleave.constraint %norm1_free <@quad, [{}, {"tp"}, {}]>
    : tensor<1x8x32xf32> loc("norm1")

  // Queries, keys and values: [b, s, d] x [d, he], then he is split into heads.
  %qkv_empty = tensor.empty() : tensor<1x8x32xf32>
  %qkv_init = linalg.fill ins(%zero : f32)
    outs(%qkv_empty : tensor<1x8x32xf32>) -> tensor<1x8x32xf32>
  %q_flat = linalg.contract indexing_maps = [#x, #w, #xw]
    ins(%norm1, %wq : tensor<1x8x32xf32>, tensor<32x32xf32>)
    outs(%qkv_init : tensor<1x8x32xf32>) -> tensor<1x8x32xf32> loc("q_flat")
  %q = tensor.expand_shape %q_flat [[0], [1], [2, 3]]
    output_shape [1, 8, 4, 8]
    : tensor<1x8x32xf32> into tensor<1x8x4x8xf32> loc("q")
  %k_flat = linalg.contract indexing_maps = [#x, #w, #xw]
    ins(%norm1, %wk : tensor<1x8x32xf32>, tensor<32x32xf32>)
    outs(%qkv_init : tensor<1x8x32xf32>) -> tensor<1x8x32xf32> loc("k_flat")
  %k = tensor.expand_shape %k_flat [[0], [1], [2, 3]]
    output_shape [1, 8, 4, 8]
    : tensor<1x8x32xf32> into tensor<1x8x4x8xf32> loc("k")
  %v_flat = linalg.contract indexing_maps = [#x, #w, #xw]
    ins(%norm1, %wv : tensor<1x8x32xf32>, tensor<32x32xf32>)
    outs(%qkv_init : tensor<1x8x32xf32>) -> tensor<1x8x32xf32> loc("v_flat")
  %v = tensor.expand_shape %v_flat [[0], [1], [2, 3]]
    output_shape [1, 8, 4, 8]
    : tensor<1x8x32xf32> into tensor<1x8x4x8xf32> loc("v")

  // scores[b, h, s, t] = sum over e of q[b, s, h, e] k[b, t, h, e]
  %scores_empty = tensor.empty() : tensor<1x4x8x8xf32>
  %scores_init = linalg.fill ins(%zero : f32)
    outs(%scores_empty : tensor<1x4x8x8xf32>) -> tensor<1x4x8x8xf32>
  %scores = linalg.contract indexing_maps = [#q, #k, #scores]
    ins(%q, %k : tensor<1x8x4x8xf32>, tensor<1x8x4x8xf32>)
    outs(%scores_init : tensor<1x4x8x8xf32>)
    -> tensor<1x4x8x8xf32> loc("scores")

  // Scaled by 1/sqrt(8); a key after its query is masked.
  %masked = linalg.generic {
      indexing_maps = [#all, #all],
      iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%scores : tensor<1x4x8x8xf32>)
      outs(%scores_empty : tensor<1x4x8x8xf32>) {
    ^bb0(%value: f32, %old: f32):
      %s = linalg.index 2 : index
      %t = linalg.index 3 : index
      %seen = arith.cmpi sle, %t, %s : index
      %scaled = arith.mulf %value, %scale : f32
      %kept = arith.select %seen, %scaled, %lowest : f32
      linalg.yield %kept : f32
  } -> tensor<1x4x8x8xf32> loc("masked")

  // Softmax over t.
  %row_empty = tensor.empty() : tensor<1x4x8xf32>
  %row_lowest = linalg.fill ins(%lowest : f32)
    outs(%row_empty : tensor<1x4x8xf32>) -> tensor<1x4x8xf32>
  %row_zero = linalg.fill ins(%zero : f32)
    outs(%row_empty : tensor<1x4x8xf32>) -> tensor<1x4x8xf32>
  %largest = linalg.reduce { arith.maximumf }
    ins(%masked : tensor<1x4x8x8xf32>) outs(%row_lowest : tensor<1x4x8xf32>)
    dimensions = [3] loc("largest")
  %powers = linalg.generic {
      indexing_maps = [#all, #row, #all],
      iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%masked, %largest : tensor<1x4x8x8xf32>, tensor<1x4x8xf32>)
      outs(%scores_empty : tensor<1x4x8x8xf32>) {
    ^bb0(%value: f32, %max: f32, %old: f32):
      %d = arith.subf %value, %max : f32
      %e = math.exp %d : f32
      linalg.yield %e : f32
  } -> tensor<1x4x8x8xf32> loc("powers")
  %total = linalg.reduce { arith.addf }
    ins(%powers : tensor<1x4x8x8xf32>) outs(%row_zero : tensor<1x4x8xf32>)
    dimensions = [3] loc("total")
  %probs = linalg.generic {
      indexing_maps = [#all, #row, #all],
      iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%powers, %total : tensor<1x4x8x8xf32>, tensor<1x4x8xf32>)
      outs(%scores_empty : tensor<1x4x8x8xf32>) {
    ^bb0(%value: f32, %sum: f32, %old: f32):
      %p = arith.divf %value, %sum : f32
      linalg.yield %p : f32
  } -> tensor<1x4x8x8xf32> loc("probs")

  // mixed[b, s, h, e] = sum over t of probs[b, h, s, t] v[b, t, h, e]
  %mixed_empty = tensor.empty() : tensor<1x8x4x8xf32>
  %mixed_init = linalg.fill ins(%zero : f32)
    outs(%mixed_empty : tensor<1x8x4x8xf32>) -> tensor<1x8x4x8xf32>
  %mixed = linalg.contract indexing_maps = [#p, #v, #mixed]
    ins(%probs, %v : tensor<1x4x8x8xf32>, tensor<1x8x4x8xf32>)
    outs(%mixed_init : tensor<1x8x4x8xf32>)
    -> tensor<1x8x4x8xf32> loc("mixed")

  // The heads side by side again, and the last product.
  %merged = tensor.collapse_shape %mixed [[0], [1], [2, 3]]
    : tensor<1x8x4x8xf32> into tensor<1x8x32xf32> loc("merged")
  %attention = linalg.contract indexing_maps = [#x, #w, #xw]
    ins(%merged, %wo : tensor<1x8x32xf32>, tensor<32x32xf32>)
    outs(%qkv_init : tensor<1x8x32xf32>) -> tensor<1x8x32xf32> loc("attention")

  %middle_free = linalg.add
    ins(%x, %attention : tensor<1x8x32xf32>, tensor<1x8x32xf32>)
    outs(%hidden_empty : tensor<1x8x32xf32>)
    -> tensor<1x8x32xf32> loc("middle_free")
  %middle = cleave.constraint %middle_free <@quad, [{}, {"tp"}, {}]>
    : tensor<1x8x32xf32> loc("middle")

  // norm2 = rms_norm(middle), each position by itself
  %norm2_squares = linalg.generic {
      indexing_maps = [#hidden, #position],
      iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%middle : tensor<1x8x32xf32>) outs(%position_zero : tensor<1x8xf32>) {
    ^bb0(%value: f32, %acc: f32):
      %sq = arith.mulf %value, %value : f32
      %sum = arith.addf %sq, %acc : f32
      linalg.yield %sum : f32
  } -> tensor<1x8xf32> loc("norm2_squares")
  %norm2_free = linalg.generic {
      indexing_maps = [#hidden, #position, #gain, #hidden],
      iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%middle, %norm2_squares, %gain2
          : tensor<1x8x32xf32>, tensor<1x8xf32>, tensor<32xf32>)
      outs(%hidden_empty : tensor<1x8x32xf32>) {
    ^bb0(%value: f32, %squares: f32, %g: f32, %old: f32):
      %mean = arith.divf %squares, %width : f32
      %safe = arith.addf %mean, %eps : f32
      %factor = math.rsqrt %safe : f32
      %unit = arith.mulf %value, %factor : f32
      %gained = arith.mulf %unit, %g : f32
      linalg.yield %gained : f32
  } -> tensor<1x8x32xf32> loc("norm2_free")
  %norm2 = cleave.constraint %norm2_free <@quad, [{}, {"tp"}, {}]>
    : tensor<1x8x32xf32> loc("norm2")

  // relu(norm2 up) down
  %inner_empty = tensor.empty() : tensor<1x8x64xf32>
  %inner_init = linalg.fill ins(%zero : f32)
    outs(%inner_empty : tensor<1x8x64xf32>) -> tensor<1x8x64xf32>
  %inner = linalg.contract indexing_maps = [#x, #w, #xw]
    ins(%norm2, %up : tensor<1x8x32xf32>, tensor<32x64xf32>)
    outs(%inner_init : tensor<1x8x64xf32>) -> tensor<1x8x64xf32> loc("inner")
  %active = linalg.max
    ins(%inner, %inner_init : tensor<1x8x64xf32>, tensor<1x8x64xf32>)
    outs(%inner_empty : tensor<1x8x64xf32>) -> tensor<1x8x64xf32> loc("active")
  %mlp = linalg.contract indexing_maps = [#x, #w, #xw]
    ins(%active, %down : tensor<1x8x64xf32>, tensor<64x32xf32>)
    outs(%qkv_init : tensor<1x8x32xf32>) -> tensor<1x8x32xf32> loc("mlp")

  %y_free = linalg.add
    ins(%middle, %mlp : tensor<1x8x32xf32>, tensor<1x8x32xf32>)
    outs(%hidden_empty : tensor<1x8x32xf32>)
    -> tensor<1x8x32xf32> loc("y_free")
  %y = cleave.constraint %y_free <@quad, [{}, {"tp"}, {}]>
    : tensor<1x8x32xf32> loc("y")

  return %y : tensor<1x8x32xf32>
}
