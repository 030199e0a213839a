// A private function that is only declared, and that nobody calls, is no reason
// to refuse a model.
// REQUIRES: run
// RUN: cleave check %s

cleave.mesh @m = <["a"=2]>

func.func private @elsewhere(tensor<8xf32>) -> tensor<8xf32>

func.func @forward(%x: tensor<8xf32> {cleave.sharding = #cleave.sharding<@m, [{"a"}]>}) -> tensor<8xf32> {
  %empty = tensor.empty() : tensor<8xf32>
  %y = linalg.add ins(%x, %x : tensor<8xf32>, tensor<8xf32>)
    outs(%empty : tensor<8xf32>) -> tensor<8xf32>
  return %y : tensor<8xf32>
}
