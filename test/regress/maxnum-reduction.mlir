// The combiner says the kind: maxnumf over a dim that is cut is a maximum that
// skips NaN, on the ranks' results too.
// REQUIRES: run
// RUN: cleave check %s

cleave.mesh @m = <["a"=4]>

func.func @forward(%x: tensor<6x20xf32> {cleave.sharding = #cleave.sharding<@m, [{}, {"a"}]>})
    -> (tensor<6xf32> {cleave.sharding = #cleave.sharding<@m, [{}]>}) {
  %lowest = arith.constant 0xFF800000 : f32
  %empty = tensor.empty() : tensor<6xf32>
  %init = linalg.fill ins(%lowest : f32) outs(%empty : tensor<6xf32>)
    -> tensor<6xf32>
  %y = linalg.reduce { arith.maxnumf }
    ins(%x : tensor<6x20xf32>) outs(%init : tensor<6xf32>) dimensions = [1]
  return %y : tensor<6xf32>
}
