// A two-layer perceptron as Megatron cuts it: `up` by columns, `down` by rows.
// The hidden dim stays cut from the first product to the second, which leaves
// one partial sum: one all-reduce over 'tp' for the whole layer. The batch is
// cut over 'dp' and needs nothing.
cleave.mesh @pod = <["dp"=2, "tp"=4]>

#row = affine_map<(b, f) -> (b, f)>
#col = affine_map<(b, f) -> (f)>

func.func @forward(
    %x: tensor<16x32xf32>
      {cleave.sharding = #cleave.sharding<@pod, [{"dp"}, {}]>} loc("x"),
    %up: tensor<32x64xf32>
      {cleave.weight = "up",
       cleave.sharding = #cleave.sharding<@pod, [{}, {"tp"}]>} loc("up"),
    %up_bias: tensor<64xf32> {cleave.weight = "up_bias"} loc("up_bias"),
    %down: tensor<64x32xf32>
      {cleave.weight = "down",
       cleave.sharding = #cleave.sharding<@pod, [{"tp"}, {}]>} loc("down"),
    %down_bias: tensor<32xf32> {cleave.weight = "down_bias"} loc("down_bias"))
    -> (tensor<16x32xf32>
          {cleave.sharding = #cleave.sharding<@pod, [{"dp"}, {}]>}) {
  %zero = arith.constant 0.0 : f32
  %half = arith.constant 0.5 : f32
  %one = arith.constant 1.0 : f32
  %c0 = arith.constant 0.7978845608 : f32
  %c1 = arith.constant 0.044715 : f32

  // h = x up
  %h_empty = tensor.empty() : tensor<16x64xf32>
  %h_init = linalg.fill ins(%zero : f32) outs(%h_empty : tensor<16x64xf32>)
    -> tensor<16x64xf32>
  %h = linalg.matmul
    ins(%x, %up : tensor<16x32xf32>, tensor<32x64xf32>)
    outs(%h_init : tensor<16x64xf32>) -> tensor<16x64xf32> loc("h")

  // a = gelu(h + up_bias)
  %a = linalg.generic {
      indexing_maps = [#row, #col, #row],
      iterator_types = ["parallel", "parallel"]}
      ins(%h, %up_bias : tensor<16x64xf32>, tensor<64xf32>)
      outs(%h_empty : tensor<16x64xf32>) {
    ^bb0(%value: f32, %bias: f32, %out: f32):
      %v = arith.addf %value, %bias : f32
      %v2 = arith.mulf %v, %v : f32
      %v3 = arith.mulf %v2, %v : f32
      %s = arith.mulf %v3, %c1 : f32
      %t = arith.addf %v, %s : f32
      %u = arith.mulf %t, %c0 : f32
      %w = math.tanh %u : f32
      %p = arith.addf %w, %one : f32
      %q = arith.mulf %p, %v : f32
      %r = arith.mulf %q, %half : f32
      linalg.yield %r : f32
  } -> tensor<16x64xf32> loc("a")

  // y = a down + down_bias
  %y_empty = tensor.empty() : tensor<16x32xf32>
  %y_init = linalg.fill ins(%zero : f32) outs(%y_empty : tensor<16x32xf32>)
    -> tensor<16x32xf32>
  %product = linalg.matmul
    ins(%a, %down : tensor<16x64xf32>, tensor<64x32xf32>)
    outs(%y_init : tensor<16x32xf32>) -> tensor<16x32xf32> loc("product")
  %y = linalg.generic {
      indexing_maps = [#row, #col, #row],
      iterator_types = ["parallel", "parallel"]}
      ins(%product, %down_bias : tensor<16x32xf32>, tensor<32xf32>)
      outs(%y_empty : tensor<16x32xf32>) {
    ^bb0(%value: f32, %bias: f32, %out: f32):
      %v = arith.addf %value, %bias : f32
      linalg.yield %v : f32
  } -> tensor<16x32xf32> loc("y")
  return %y : tensor<16x32xf32>
}
