// RUN: cleave-opt %s | cleave-opt | FileCheck %s
// RUN: cleave-opt %s --mlir-print-op-generic | cleave-opt | FileCheck %s

func.func private @double(%x: tensor<4xf32>, %out: tensor<4xf32>)
    -> tensor<4xf32> attributes {dispatch.kernel} {
  %0 = linalg.add ins(%x, %x : tensor<4xf32>, tensor<4xf32>)
    outs(%out : tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

func.func private @part(%x: tensor<4xf32>, %at: index, %sum: tensor<f32>,
    %rest: tensor<2xf32>) -> (tensor<f32>, tensor<2xf32>)
    attributes {dispatch.kernel} {
  return %sum, %rest : tensor<f32>, tensor<2xf32>
}

// One destination and result, an attribute of the plan kept as it is.
// CHECK-LABEL: func.func @one
// CHECK: dispatch.call @double(%arg0) into (%{{.*}}) {dispatch.at = [#dispatch.at<frame, 128>]} : (tensor<4xf32>) into (tensor<4xf32>)
func.func @one(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = tensor.empty() : tensor<4xf32>
  %1 = dispatch.call @double(%x) into (%0) {dispatch.at = [#dispatch.at<frame, 128>]}
    : (tensor<4xf32>) into (tensor<4xf32>)
  return %1 : tensor<4xf32>
}

// Several, and a scalar.
// CHECK-LABEL: func.func @several
// CHECK: %{{.*}}:2 = dispatch.call @part(%arg0, %arg1) into (%{{.*}}, %{{.*}}) : (tensor<4xf32>, index) into (tensor<f32>, tensor<2xf32>)
func.func @several(%x: tensor<4xf32>, %at: index)
    -> (tensor<f32>, tensor<2xf32>) {
  %0 = tensor.empty() : tensor<f32>
  %1 = tensor.empty() : tensor<2xf32>
  %2:2 = dispatch.call @part(%x, %at) into (%0, %1)
    : (tensor<4xf32>, index) into (tensor<f32>, tensor<2xf32>)
  return %2#0, %2#1 : tensor<f32>, tensor<2xf32>
}

// CHECK-LABEL: func.func @copies
// CHECK: dispatch.copy %arg0 {dispatch.at = [#dispatch.at<resident, 0>]} : tensor<4xf32>
func.func @copies(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = dispatch.copy %x {dispatch.at = [#dispatch.at<resident, 0>]} : tensor<4xf32>
  return %0 : tensor<4xf32>
}
