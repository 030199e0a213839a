// Two entries share a state; only one of them writes it.
// REQUIRES: run
// RUN: cleave check %s

cleave.mesh @m = <["a"=2]>

func.func @prefill(
    %x: tensor<4x6xf32>,
    %c: tensor<4x6xf32>
      {cleave.state = "c", cleave.sharding = #cleave.sharding<@m, [{"a"}, {}]>})
    -> (tensor<4x6xf32>, tensor<4x6xf32> {cleave.state = "c"}) {
  %e = tensor.empty() : tensor<4x6xf32>
  %y = linalg.add ins(%x, %c : tensor<4x6xf32>, tensor<4x6xf32>) outs(%e :
    tensor<4x6xf32>) -> tensor<4x6xf32>
  return %y, %x : tensor<4x6xf32>, tensor<4x6xf32>
}
func.func @decode(
    %x: tensor<4x6xf32>,
    %c: tensor<4x6xf32> {cleave.state = "c"})
    -> (tensor<4x6xf32>) {
  %e = tensor.empty() : tensor<4x6xf32>
  %y = linalg.mul ins(%x, %c : tensor<4x6xf32>, tensor<4x6xf32>) outs(%e :
    tensor<4x6xf32>) -> tensor<4x6xf32>
  return %y : tensor<4x6xf32>
}
