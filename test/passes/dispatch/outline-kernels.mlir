// RUN: cleave-opt %s --cleave-dispatch-pipeline | FileCheck %s

#id = affine_map<(a) -> (a)>

// A chain of element-wise ops is one kernel.
// CHECK-LABEL: func.func @chain
// CHECK: dispatch.call @map(%arg0)
// CHECK-NOT: dispatch.call
// CHECK: return
func.func @chain(%x: tensor<8xf32>) -> tensor<8xf32> {
  %e = tensor.empty() : tensor<8xf32>
  %y = linalg.exp ins(%x : tensor<8xf32>) outs(%e : tensor<8xf32>) -> tensor<8xf32>
  %z = linalg.abs ins(%y : tensor<8xf32>) outs(%e : tensor<8xf32>) -> tensor<8xf32>
  return %z : tensor<8xf32>
}

// A product takes its epilogue along, and its zeros.
// CHECK-LABEL: func.func @epilogue
// CHECK: dispatch.call @product(%arg0, %arg1)
// CHECK-NOT: dispatch.call
// CHECK: return
func.func @epilogue(%a: tensor<4x8xf32>, %b: tensor<8x4xf32>) -> tensor<4x4xf32> {
  %c = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4x4xf32>
  %f = linalg.fill ins(%c : f32) outs(%e : tensor<4x4xf32>) -> tensor<4x4xf32>
  %p = linalg.matmul ins(%a, %b : tensor<4x8xf32>, tensor<8x4xf32>) outs(%f : tensor<4x4xf32>) -> tensor<4x4xf32>
  %z = linalg.exp ins(%p : tensor<4x4xf32>) outs(%e : tensor<4x4xf32>) -> tensor<4x4xf32>
  return %z : tensor<4x4xf32>
}
