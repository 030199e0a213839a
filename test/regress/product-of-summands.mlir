// A product over a dim of summands: they are added first. The first trip alone
// would be linear in them.
// REQUIRES: run
// RUN: cleave check %s --trials=3
// RUN: cleave build --until=comm --emit=mlir -o - %s | FileCheck %s

// CHECK: %[[SUM:.*]] = comm.all_reduce sum
// CHECK: linalg.generic {{.*}} ins(%[[SUM]]
cleave.mesh @m = <["tp"=2]>
#x = affine_map<(i, j) -> (i, j)>
#y = affine_map<(i, j) -> (i)>

func.func @forward(
    %x: tensor<3x4xf32> {cleave.sharding = #cleave.sharding<@m, [{}, {"tp"}]>},
    %w: tensor<4x3xf32> {cleave.sharding = #cleave.sharding<@m, [{"tp"}, {}]>},
    %a: tensor<3x3xf32>, %start: tensor<3xf32>) -> tensor<3xf32> {
  %p = linalg.matmul ins(%x, %w : tensor<3x4xf32>, tensor<4x3xf32>)
    outs(%a : tensor<3x3xf32>) -> tensor<3x3xf32>
  %y = linalg.generic {indexing_maps = [#x, #y],
                       iterator_types = ["parallel", "reduction"]}
      ins(%p : tensor<3x3xf32>) outs(%start : tensor<3xf32>) {
    ^bb0(%v: f32, %acc: f32):
      %z = arith.mulf %v, %acc : f32
      linalg.yield %z : f32
  } -> tensor<3xf32>
  return %y : tensor<3xf32>
}
