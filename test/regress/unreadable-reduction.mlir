// A combiner that is no known kind, acc = value - acc, keeps its order: the dim
// stays whole, whatever the annotation of the operand.
// REQUIRES: run
// RUN: cleave check %s

cleave.mesh @m = <["a"=4]>

func.func @forward(%x: tensor<6x10xf32> {cleave.sharding = #cleave.sharding<@m, [{}, {"a"}]>})
    -> tensor<6xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<6xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<6xf32>)
    -> tensor<6xf32>
  %y = linalg.reduce ins(%x : tensor<6x10xf32>) outs(%init : tensor<6xf32>)
    dimensions = [1]
    (%value: f32, %acc: f32) {
      %s = arith.subf %value, %acc : f32
      linalg.yield %s : f32
    }
  return %y : tensor<6xf32>
}
