// A tensor of no elements is asked for in another sharding: nothing moves.
// REQUIRES: run
// RUN: cleave check %s
// RUN: cleave build --until=partition --emit=mlir -o - %s | FileCheck %s

// CHECK-NOT: comm.
cleave.mesh @m = <["a"=2, "b"=3]>
#id = affine_map<(d0, d1) -> (d0, d1)>

func.func @forward(%none: tensor<0x4xf32> {cleave.sharding = #cleave.sharding<@m, [{"a"}, {}]>})
    -> tensor<0x4xf32> {
  %rows = cleave.constraint %none <@m, [{}, {"b"}]> : tensor<0x4xf32>
  %init = tensor.empty() : tensor<0x4xf32>
  %twice = linalg.generic {
      indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"],
      cleave.sharding = #cleave.sharding<@m, [{"b"}, {"a"}]>}
      ins(%rows : tensor<0x4xf32>) outs(%init : tensor<0x4xf32>) {
    ^bb0(%x: f32, %old: f32):
      %sum = arith.addf %x, %x : f32
      linalg.yield %sum : f32
  } -> tensor<0x4xf32>
  return %twice : tensor<0x4xf32>
}
