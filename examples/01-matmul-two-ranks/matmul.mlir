// y = x w on two ranks. The dim that is summed over, 8 long, is cut: each rank
// multiplies its 4 columns of x with its 4 rows of w, and one all-reduce of y
// adds the two partial results.
cleave.mesh @pair = <["tp"=2]>

func.func @forward(
    %x: tensor<4x8xf32>
      {cleave.sharding = #cleave.sharding<@pair, [{}, {"tp"}]>} loc("x"),
    %w: tensor<8x6xf32>
      {cleave.sharding = #cleave.sharding<@pair, [{"tp"}, {}]>} loc("w"))
    -> (tensor<4x6xf32>
          {cleave.sharding = #cleave.sharding<@pair, [{}, {}]>}) {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<4x6xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<4x6xf32>)
    -> tensor<4x6xf32>
  %y = linalg.matmul
    ins(%x, %w : tensor<4x8xf32>, tensor<8x6xf32>)
    outs(%init : tensor<4x6xf32>) -> tensor<4x6xf32> loc("y")
  return %y : tensor<4x6xf32>
}
