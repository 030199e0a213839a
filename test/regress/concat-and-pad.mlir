// A join and a pad along a dim that is cut.
// REQUIRES: run
// RUN: cleave check %s

cleave.mesh @m = <["a"=4]>

func.func @forward(%x: tensor<9x4xf32> {cleave.sharding = #cleave.sharding<@m, [{"a"}, {}]>},
                   %y: tensor<4x4xf32> {cleave.sharding = #cleave.sharding<@m, [{"a"}, {}]>})
    -> tensor<18x4xf32> {
  %one = arith.constant 1.0 : f32
  %joined = tensor.concat dim(0) %x, %y
    : (tensor<9x4xf32>, tensor<4x4xf32>) -> tensor<13x4xf32>
  %z = tensor.pad %joined low[2, 0] high[3, 0] {
    ^bb0(%i: index, %j: index):
      tensor.yield %one : f32
  } : tensor<13x4xf32> to tensor<18x4xf32>
  return %z : tensor<18x4xf32>
}
