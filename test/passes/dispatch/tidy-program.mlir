// RUN: cleave-opt %s --cleave-tidy-program | FileCheck %s

// The second fill is the first one, the third is read by nobody.
// CHECK-LABEL: @shares_and_drops
// CHECK: linalg.fill
// CHECK-NOT: linalg.fill
// CHECK: return
func.func @shares_and_drops(%v: f32) -> (tensor<4xf32>, tensor<4xf32>) {
  %e0 = tensor.empty() : tensor<4xf32>
  %a = linalg.fill ins(%v : f32) outs(%e0 : tensor<4xf32>) -> tensor<4xf32>
  %e1 = tensor.empty() : tensor<4xf32>
  %b = linalg.fill ins(%v : f32) outs(%e1 : tensor<4xf32>) -> tensor<4xf32>
  %e2 = tensor.empty() : tensor<5xf32>
  %c = linalg.fill ins(%v : f32) outs(%e2 : tensor<5xf32>) -> tensor<5xf32>
  return %a, %b : tensor<4xf32>, tensor<4xf32>
}

// The reshapes undo each other; what is left of the two sums is equal.
// CHECK-LABEL: @shares_what_folding_made_equal
// CHECK: arith.addf
// CHECK-NOT: arith.addf
// CHECK: return
func.func @shares_what_folding_made_equal(%x: tensor<2x3xf32>)
    -> (tensor<2x3xf32>, tensor<2x3xf32>) {
  %flat = tensor.collapse_shape %x [[0, 1]]
      : tensor<2x3xf32> into tensor<6xf32>
  %again = tensor.expand_shape %flat [[0, 1]] output_shape [2, 3]
      : tensor<6xf32> into tensor<2x3xf32>
  %a = arith.addf %x, %x : tensor<2x3xf32>
  %b = arith.addf %again, %again : tensor<2x3xf32>
  return %a, %b : tensor<2x3xf32>, tensor<2x3xf32>
}
