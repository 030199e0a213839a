// REQUIRES: run
// RUN: cleave check %s --trials=3
// RUN: cleave build --until=lower --emit=mlir -o - %s | FileCheck %s

// Scalars of bf16 and f16 go from functions through arithmetic and a loop into
// kernels, whatever registers the CPU would pass them in.
// CHECK-NOT: llvm.func @cleave.{{.*}} bf16
// CHECK: llvm.func @cleave.{{.*}}(!llvm.ptr, i16, !llvm.ptr)
// CHECK: llvm.func internal @cleave.second
// CHECK: llvm.store %{{.*}} : i16, !llvm.ptr
cleave.mesh @two = <["tp"=2]>
#same = affine_map<(i) -> (i)>

func.func private @second(%x: tensor<6xbf16>, %y: tensor<6xf16>)
    -> (bf16, f16) {
  %one = arith.constant 1 : index
  %a = tensor.extract %x[%one] : tensor<6xbf16>
  %b = tensor.extract %y[%one] : tensor<6xf16>
  return %a, %b : bf16, f16
}

func.func @main(
    %x: tensor<6xbf16> {cleave.sharding = #cleave.sharding<@two, [{"tp"}]>},
    %y: tensor<6xf16> {cleave.sharding = #cleave.sharding<@two, [{"tp"}]>})
    -> (tensor<6xbf16> {cleave.sharding = #cleave.sharding<@two, [{"tp"}]>},
        tensor<6xf16>) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %three = arith.constant 3 : index
  %half = arith.constant 0.5 : bf16
  %a, %b = call @second(%x, %y) : (tensor<6xbf16>, tensor<6xf16>) -> (bf16, f16)
  %more = arith.addf %a, %half : bf16
  %wide = arith.extf %a : bf16 to f64
  %narrow = arith.truncf %wide : f64 to f16
  %mixed = arith.mulf %b, %narrow : f16
  %last = scf.for %i = %zero to %three step %one
      iter_args(%s = %more) -> (bf16) {
    %next = arith.addf %s, %half : bf16
    scf.yield %next : bf16
  }
  %empty = tensor.empty() : tensor<6xbf16>
  %p = linalg.generic {indexing_maps = [#same, #same],
                       iterator_types = ["parallel"]}
      ins(%x : tensor<6xbf16>) outs(%empty : tensor<6xbf16>) {
    ^bb0(%v: bf16, %old: bf16):
      %w = arith.addf %v, %last : bf16
      linalg.yield %w : bf16
  } -> tensor<6xbf16>
  %empty_f16 = tensor.empty() : tensor<6xf16>
  %q = linalg.generic {indexing_maps = [#same, #same],
                       iterator_types = ["parallel"]}
      ins(%y : tensor<6xf16>) outs(%empty_f16 : tensor<6xf16>) {
    ^bb0(%v: f16, %old: f16):
      %w = arith.addf %v, %mixed : f16
      linalg.yield %w : f16
  } -> tensor<6xf16>
  return %p, %q : tensor<6xbf16>, tensor<6xf16>
}
