// Pooling whose image is cut by rows: the window needs them whole; the batch
// stays cut.
// REQUIRES: run
// RUN: cleave check %s

cleave.mesh @m = <["a"=2, "b"=2]>

func.func @forward(
    %x: tensor<3x8x8x5xf32>
      {cleave.sharding = #cleave.sharding<@m, [{"a"}, {"b"}, {}, {}]>})
    -> (tensor<3x4x4x5xf32>, tensor<3x7x7x5xf32>) {
  %l = arith.constant 0xFF800000 : f32
  %z = arith.constant 0.0 : f32
  %k = tensor.empty() : tensor<2x2xf32>
  %e = tensor.empty() : tensor<3x4x4x5xf32>
  %i = linalg.fill ins(%l : f32) outs(%e : tensor<3x4x4x5xf32>) ->
    tensor<3x4x4x5xf32>
  %y = linalg.pooling_nhwc_max {strides = dense<2> : tensor<2xi64>} ins(%x, %k :
    tensor<3x8x8x5xf32>, tensor<2x2xf32>) outs(%i : tensor<3x4x4x5xf32>) ->
    tensor<3x4x4x5xf32>
  %e2 = tensor.empty() : tensor<3x7x7x5xf32>
  %i2 = linalg.fill ins(%z : f32) outs(%e2 : tensor<3x7x7x5xf32>) ->
    tensor<3x7x7x5xf32>
  %y2 = linalg.pooling_nhwc_sum ins(%x, %k : tensor<3x8x8x5xf32>,
    tensor<2x2xf32>) outs(%i2 : tensor<3x7x7x5xf32>) -> tensor<3x7x7x5xf32>
  return %y, %y2 : tensor<3x4x4x5xf32>, tensor<3x7x7x5xf32>
}
