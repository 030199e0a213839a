// A partial sum declared into an op that is not linear is refused: the absolute
// value of a sum is not the sum of absolute values.
// REQUIRES: plan
// RUN: not cleave plan %s 2>&1 | FileCheck %s
// CHECK: error:{{.*}}partial

cleave.mesh @m = <["a"=2]>

func.func @forward(%x: tensor<8xf32>
      {cleave.sharding = #cleave.sharding<@m, [{}], partial=sum{"a"}>})
    -> tensor<8xf32> {
  %empty = tensor.empty() : tensor<8xf32>
  %y = linalg.abs
    {cleave.sharding = #cleave.sharding<@m, [{}], partial=sum{"a"}>}
    ins(%x : tensor<8xf32>) outs(%empty : tensor<8xf32>) -> tensor<8xf32>
  return %y : tensor<8xf32>
}
