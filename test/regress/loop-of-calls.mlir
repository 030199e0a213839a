// A loop over layers: each trip takes its weights out of a stack, calls a
// function, and keeps its result in a stack.
// REQUIRES: run
// RUN: cleave check %s

cleave.mesh @m = <["a"=2]>

func.func private @g(
    %h: tensor<4x6xf32>,
    %w: tensor<6x6xf32>)
    -> tensor<4x6xf32> {
  %z = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4x6xf32>
  %i = linalg.fill ins(%z : f32) outs(%e : tensor<4x6xf32>) -> tensor<4x6xf32>
  %y = linalg.matmul ins(%h, %w : tensor<4x6xf32>, tensor<6x6xf32>) outs(%i :
    tensor<4x6xf32>) -> tensor<4x6xf32>
  %t = linalg.tanh ins(%y : tensor<4x6xf32>) outs(%e : tensor<4x6xf32>) ->
    tensor<4x6xf32>
  return %t : tensor<4x6xf32>
}
func.func @forward(
    %x: tensor<4x6xf32> {cleave.sharding = #cleave.sharding<@m, [{}, {"a"}]>},
    %ws: tensor<5x6x6xf32>
      {cleave.weight = "ws", cleave.sharding = #cleave.sharding<@m, [{}, {"a"}, {}]>})
    -> (tensor<4x6xf32>, tensor<5x4x6xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c5 = arith.constant 5 : index
  %e = tensor.empty() : tensor<5x4x6xf32>
  %r:2 = scf.for %i = %c0 to %c5 step %c1 iter_args(%h = %x, %acc = %e) ->
    (tensor<4x6xf32>, tensor<5x4x6xf32>) {
    %w = tensor.extract_slice %ws[%i, 0, 0] [1, 6, 6] [1, 1, 1] :
      tensor<5x6x6xf32> to tensor<6x6xf32>
    %n = func.call @g(%h, %w) : (tensor<4x6xf32>, tensor<6x6xf32>) ->
      tensor<4x6xf32>
    %a = tensor.insert_slice %n into %acc[%i, 0, 0] [1, 4, 6] [1, 1, 1] :
      tensor<4x6xf32> into tensor<5x4x6xf32>
    scf.yield %n, %a : tensor<4x6xf32>, tensor<5x4x6xf32>
  }
  return %r#0, %r#1 : tensor<4x6xf32>, tensor<5x4x6xf32>
}
