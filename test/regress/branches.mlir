// A body of several blocks is refused with a word about it: models have
// structured loops, not jumps.
// REQUIRES: driver
// RUN: not cleave check %s 2>&1 | FileCheck %s
// CHECK: error:{{.*}}block

cleave.mesh @m = <["a"=2]>

func.func @forward(%x: tensor<8xf32>, %flag: i1) -> tensor<8xf32> {
  cf.cond_br %flag, ^left, ^right
^left:
  return %x : tensor<8xf32>
^right:
  %empty = tensor.empty() : tensor<8xf32>
  %y = linalg.add ins(%x, %x : tensor<8xf32>, tensor<8xf32>)
    outs(%empty : tensor<8xf32>) -> tensor<8xf32>
  return %y : tensor<8xf32>
}
