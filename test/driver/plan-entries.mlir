// The collectives of each entry stand together, with what a call of it sends.
// RUN: cleave plan %s | FileCheck %s

// CHECK: collective      over          ranks  times      value       sent
// CHECK-NEXT: in 'prefill':
// CHECK-NEXT: all_reduce      tp                2      1       96 B       96 B  'y'
// CHECK: each rank sends at most 96 B a step of 'prefill'
// CHECK-NEXT: in 'decode':
// CHECK-NEXT: all_reduce      tp                2      1       24 B       24 B  'y'
// CHECK: each rank sends at most 24 B a step of 'decode'
// CHECK-NEXT: memory of each of 2 ranks

cleave.mesh @pair = <["tp"=2]>

func.func @prefill(
    %x: tensor<4x8xf32> {cleave.sharding = #cleave.sharding<@pair, [{}, {"tp"}]>},
    %w: tensor<8x6xf32> {cleave.sharding = #cleave.sharding<@pair, [{"tp"}, {}]>})
    -> (tensor<4x6xf32> {cleave.sharding = #cleave.sharding<@pair, [{}, {}]>}) {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<4x6xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<4x6xf32>) -> tensor<4x6xf32>
  %y = linalg.matmul ins(%x, %w : tensor<4x8xf32>, tensor<8x6xf32>)
    outs(%init : tensor<4x6xf32>) -> tensor<4x6xf32> loc("y")
  return %y : tensor<4x6xf32>
}

func.func @decode(
    %x: tensor<1x8xf32> {cleave.sharding = #cleave.sharding<@pair, [{}, {"tp"}]>},
    %w: tensor<8x6xf32> {cleave.sharding = #cleave.sharding<@pair, [{"tp"}, {}]>})
    -> (tensor<1x6xf32> {cleave.sharding = #cleave.sharding<@pair, [{}, {}]>}) {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<1x6xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<1x6xf32>) -> tensor<1x6xf32>
  %y = linalg.matmul ins(%x, %w : tensor<1x8xf32>, tensor<8x6xf32>)
    outs(%init : tensor<1x6xf32>) -> tensor<1x6xf32> loc("y")
  return %y : tensor<1x6xf32>
}
