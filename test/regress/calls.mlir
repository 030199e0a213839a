// One private function, called with two different cuts.
// REQUIRES: run
// RUN: cleave check %s

cleave.mesh @m = <["a"=2]>

func.func private @twice(%x: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %empty = tensor.empty() : tensor<8x8xf32>
  %y = linalg.add ins(%x, %x : tensor<8x8xf32>, tensor<8x8xf32>)
    outs(%empty : tensor<8x8xf32>) -> tensor<8x8xf32>
  return %y : tensor<8x8xf32>
}

func.func @forward(%x: tensor<8x8xf32> {cleave.sharding = #cleave.sharding<@m, [{"a"}, {}]>},
                   %y: tensor<8x8xf32> {cleave.sharding = #cleave.sharding<@m, [{}, {"a"}]>})
    -> (tensor<8x8xf32>, tensor<8x8xf32>) {
  %0 = call @twice(%x) : (tensor<8x8xf32>) -> tensor<8x8xf32>
  %1 = call @twice(%y) : (tensor<8x8xf32>) -> tensor<8x8xf32>
  return %0, %1 : tensor<8x8xf32>, tensor<8x8xf32>
}
