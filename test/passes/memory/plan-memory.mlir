// RUN: cleave-opt %s --cleave-plan-memory=isa=avx2 --cleave-verify-planned \
// RUN:   | FileCheck %s

// One weight of 12 bytes, then the state of 160 at the next 64.
// CHECK: module attributes {dispatch.resident_bytes = 224 : i64}

func.func private @double(%x: tensor<40xf32>, %out: tensor<40xf32>)
    -> tensor<40xf32> attributes {dispatch.kernel} {
  %0 = linalg.add ins(%x, %x : tensor<40xf32>, tensor<40xf32>)
    outs(%out : tensor<40xf32>) -> tensor<40xf32>
  return %0 : tensor<40xf32>
}

// Each result takes the place of the operand that dies.
// CHECK-LABEL: func.func @chain
// CHECK-SAME: %arg0: tensor<40xf32> {dispatch.at = #dispatch.at<frame, 0>}
// CHECK-SAME: -> (tensor<40xf32> {dispatch.at = #dispatch.at<frame, 0>})
// CHECK-SAME: dispatch.frame_bytes = 160
// CHECK-NOT: dispatch.copy
// CHECK: return
func.func @chain(%x: tensor<40xf32>) -> tensor<40xf32> {
  %0 = tensor.empty() : tensor<40xf32>
  %1 = dispatch.call @double(%x) into (%0)
    : (tensor<40xf32>) into (tensor<40xf32>)
  %2 = tensor.empty() : tensor<40xf32>
  %3 = dispatch.call @double(%1) into (%2)
    : (tensor<40xf32>) into (tensor<40xf32>)
  return %3 : tensor<40xf32>
}

// An update of what is read at the same time needs a copy.
// CHECK-LABEL: func.func @update_while_read
// CHECK: %[[COPY:.*]] = dispatch.copy %arg0 {dispatch.at = [#dispatch.at<frame, [[AT:[0-9]+]]>]}
// CHECK: dispatch.call @double(%arg0) into (%[[COPY]]) {dispatch.at = [#dispatch.at<frame, [[AT]]>]}
func.func @update_while_read(%x: tensor<40xf32>) -> tensor<40xf32> {
  %0 = dispatch.call @double(%x) into (%x)
    : (tensor<40xf32>) into (tensor<40xf32>)
  return %0 : tensor<40xf32>
}

// A state is updated where it lies.
// CHECK-LABEL: func.func @step
// CHECK-SAME: %arg1: tensor<3xf32> {cleave.weight = "w", dispatch.at = #dispatch.at<resident, 0>}
// CHECK-SAME: %arg2: tensor<40xf32> {cleave.state = "s", dispatch.at = #dispatch.at<resident, 64>}
// CHECK-SAME: -> (tensor<40xf32> {cleave.state = "s", dispatch.at = #dispatch.at<resident, 64>})
// CHECK-NOT: dispatch.copy
// CHECK: dispatch.call @double(%arg0) into (%arg2) {dispatch.at = [#dispatch.at<resident, 64>]}
func.func @step(%x: tensor<40xf32>, %w: tensor<3xf32> {cleave.weight = "w"},
    %s: tensor<40xf32> {cleave.state = "s"})
    -> (tensor<40xf32> {cleave.state = "s"}) {
  %0 = dispatch.call @double(%x) into (%s)
    : (tensor<40xf32>) into (tensor<40xf32>)
  return %0 : tensor<40xf32>
}

// A function says which argument it updates; scalars have no place.
// CHECK-LABEL: func.func private @callee
// CHECK-SAME: %arg1: tensor<40xf32> {dispatch.at = #dispatch.at<arg, 1>}
// CHECK-SAME: -> (tensor<40xf32> {dispatch.at = #dispatch.at<arg, 1>}, tensor<40xf32> {dispatch.at = #dispatch.at<result, 1>}, index)
// CHECK-SAME: dispatch.ties = [array<i64: 1, 0>]
func.func private @callee(%x: tensor<40xf32>, %y: tensor<40xf32>)
    -> (tensor<40xf32>, tensor<40xf32>, index) {
  %c = arith.constant 1 : index
  %0 = dispatch.call @double(%x) into (%y)
    : (tensor<40xf32>) into (tensor<40xf32>)
  %1 = tensor.empty() : tensor<40xf32>
  %2 = dispatch.call @double(%0) into (%1)
    : (tensor<40xf32>) into (tensor<40xf32>)
  return %0, %2, %c : tensor<40xf32>, tensor<40xf32>, index
}

// The call takes it over, unless it is read later.
// CHECK-LABEL: func.func @calls
// CHECK-NOT: dispatch.copy
// CHECK: call @callee(%arg0, %arg1) {dispatch.at = [#dispatch.at<frame, 192>, #dispatch.at<frame, 384>, #dispatch.at<none, 0>]}
func.func @calls(%x: tensor<40xf32>, %y: tensor<40xf32>)
    -> (tensor<40xf32>, tensor<40xf32>) {
  %0:3 = call @callee(%x, %y) : (tensor<40xf32>, tensor<40xf32>)
    -> (tensor<40xf32>, tensor<40xf32>, index)
  return %0#0, %0#1 : tensor<40xf32>, tensor<40xf32>
}

// CHECK-LABEL: func.func @calls_and_keeps
// CHECK: %[[COPY:.*]] = dispatch.copy %arg1
// CHECK: call @callee(%arg0, %[[COPY]])
func.func @calls_and_keeps(%x: tensor<40xf32>, %y: tensor<40xf32>)
    -> (tensor<40xf32>, tensor<40xf32>, tensor<40xf32>) {
  %0:3 = call @callee(%x, %y) : (tensor<40xf32>, tensor<40xf32>)
    -> (tensor<40xf32>, tensor<40xf32>, index)
  return %0#0, %0#1, %y : tensor<40xf32>, tensor<40xf32>, tensor<40xf32>
}

// A loop updates what it carries; what it reads lives until it ends.
// CHECK-LABEL: func.func @loop
// CHECK-SAME: %arg0: tensor<40xf32> {dispatch.at = #dispatch.at<frame, [[CARRIED:[0-9]+]]>}
// CHECK-NOT: dispatch.copy
// CHECK: scf.for
// CHECK: dispatch.call @double(%arg1) into (%{{.*}}) {dispatch.at = [#dispatch.at<frame, [[CARRIED]]>]}
// CHECK: } {dispatch.at = [#dispatch.at<frame, [[CARRIED]]>]}
func.func @loop(%x: tensor<40xf32>, %y: tensor<40xf32>) -> tensor<40xf32> {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %nine = arith.constant 9 : index
  %0 = scf.for %i = %zero to %nine step %one iter_args(%v = %x)
      -> tensor<40xf32> {
    %1 = dispatch.call @double(%y) into (%v)
      : (tensor<40xf32>) into (tensor<40xf32>)
    scf.yield %1 : tensor<40xf32>
  }
  return %0 : tensor<40xf32>
}

// Slices of whole rows are views of their source, at an aligned offset.
// CHECK-LABEL: func.func @views
// CHECK: tensor.extract_slice %arg0[16] [20] [1] {dispatch.at = [#dispatch.at<frame, 64>]}
func.func private @half(%x: tensor<20xf32>, %out: tensor<20xf32>)
    -> tensor<20xf32> attributes {dispatch.kernel} {
  %0 = linalg.add ins(%x, %x : tensor<20xf32>, tensor<20xf32>)
    outs(%out : tensor<20xf32>) -> tensor<20xf32>
  return %0 : tensor<20xf32>
}
func.func @views(%x: tensor<40xf32>) -> tensor<20xf32> {
  %0 = tensor.extract_slice %x[16] [20] [1] : tensor<40xf32> to tensor<20xf32>
  %1 = tensor.empty() : tensor<20xf32>
  %2 = dispatch.call @half(%0) into (%1)
    : (tensor<20xf32>) into (tensor<20xf32>)
  return %2 : tensor<20xf32>
}
