// Dims of size 0 and 1, cut over more ranks than they have indices.
// REQUIRES: run
// RUN: cleave check %s

cleave.mesh @m = <["a"=3]>

func.func @forward(%none: tensor<0x4xf32> {cleave.sharding = #cleave.sharding<@m, [{"a"}, {}]>},
                   %one: tensor<1x4xf32> {cleave.sharding = #cleave.sharding<@m, [{"a"}, {}]>})
    -> (tensor<0x4xf32>, tensor<4xf32>) {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<0x4xf32>
  %y = linalg.add ins(%none, %none : tensor<0x4xf32>, tensor<0x4xf32>)
    outs(%empty : tensor<0x4xf32>) -> tensor<0x4xf32>
  %row = tensor.empty() : tensor<4xf32>
  %init = linalg.fill ins(%zero : f32) outs(%row : tensor<4xf32>)
    -> tensor<4xf32>
  %z = linalg.reduce { arith.addf }
    ins(%one : tensor<1x4xf32>) outs(%init : tensor<4xf32>) dimensions = [0]
  return %y, %z : tensor<0x4xf32>, tensor<4xf32>
}
