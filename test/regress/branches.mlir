// A body of several blocks is refused with a word about it: models have
// structured loops, not jumps.
// RUN: cleave-opt %s --cleave-check-model -verify-diagnostics

cleave.mesh @m = <["a"=2]>

// expected-error@+1 {{'func.func' op has 3 blocks; a model's functions have one: use scf.for for loops}}
func.func @forward(%x: tensor<8xf32>, %bits: tensor<i1>) -> tensor<8xf32> {
  %flag = tensor.extract %bits[] : tensor<i1>
  cf.cond_br %flag, ^left, ^right
^left:
  return %x : tensor<8xf32>
^right:
  %empty = tensor.empty() : tensor<8xf32>
  %y = linalg.add ins(%x, %x : tensor<8xf32>, tensor<8xf32>)
    outs(%empty : tensor<8xf32>) -> tensor<8xf32>
  return %y : tensor<8xf32>
}
