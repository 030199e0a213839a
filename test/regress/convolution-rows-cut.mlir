// A convolution whose image is cut by rows: neighbours exchange rows, or the
// dim is gathered; both are right.
// REQUIRES: run
// RUN: cleave check %s

cleave.mesh @m = <["a"=2]>

func.func @forward(%image: tensor<10x8xf32> {cleave.sharding = #cleave.sharding<@m, [{"a"}, {}]>},
                   %kernel: tensor<3x3xf32>) -> tensor<8x6xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<8x6xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<8x6xf32>)
    -> tensor<8x6xf32>
  %y = linalg.conv_2d ins(%image, %kernel : tensor<10x8xf32>, tensor<3x3xf32>)
    outs(%init : tensor<8x6xf32>) -> tensor<8x6xf32>
  return %y : tensor<8x6xf32>
}
