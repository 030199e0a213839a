// RUN: cleave-opt %s --cleave-combine-collectives | FileCheck %s

cleave.mesh @m = <["a"=2]>

#first = #comm.cause<op = "matmul", value = "%x", why = "k", remedy = "">
#second = #comm.cause<op = "add", value = "%y", why = "k", remedy = "">

// CHECK-LABEL: @joins_reductions
// CHECK: %[[X:.+]] = tensor.collapse_shape %arg0
// CHECK: %[[ROW:.+]] = tensor.expand_shape %[[X]]{{.*}} into tensor<1x4xf32>
// CHECK: %[[Y:.+]] = tensor.expand_shape %arg1{{.*}} into tensor<1xf32>
// CHECK: %[[CELL:.+]] = tensor.expand_shape %[[Y]]
// CHECK: %[[IN:.+]] = tensor.concat dim(1) %[[ROW]], %[[CELL]]
// CHECK: %[[R:.+]] = comm.all_reduce sum %[[IN]] over @m ["a"]
// CHECK-SAME: cause = <op = "matmul; add", value = "%x; %y", why = "k",
// CHECK-SAME: tensor<1x5xf32>
// CHECK-NOT: comm
// CHECK: tensor.extract_slice %[[R]][0, 0] [1, 4] [1, 1]
// CHECK: tensor.extract_slice %[[R]][0, 4] [1, 1] [1, 1]
func.func @joins_reductions(%x: tensor<2x2xf32>, %y: tensor<f32>)
    -> (tensor<2x2xf32>, tensor<f32>) {
  %0 = comm.all_reduce sum %x over @m ["a"] cause = #first : tensor<2x2xf32>
  %1 = comm.all_reduce sum %y over @m ["a"] cause = #second : tensor<f32>
  return %0, %1 : tensor<2x2xf32>, tensor<f32>
}

// A row of each member.
// CHECK-LABEL: @joins_gathers
// CHECK: comm.all_gather %{{.+}} dim 0 over @m ["a"]
// CHECK-SAME: tensor<1x5xf32> -> tensor<2x5xf32>
// CHECK: tensor.extract_slice %{{.+}}[0, 0] [2, 2] [1, 1]
// CHECK: tensor.extract_slice %{{.+}}[0, 2] [2, 3] [1, 1]
func.func @joins_gathers(%x: tensor<2xf32>, %y: tensor<1x3xf32>)
    -> (tensor<4xf32>, tensor<2x3xf32>) {
  %0 = comm.all_gather %x dim 0 over @m ["a"] : tensor<2xf32> -> tensor<4xf32>
  %1 = comm.all_gather %y dim 0 over @m ["a"]
      : tensor<1x3xf32> -> tensor<2x3xf32>
  return %0, %1 : tensor<4xf32>, tensor<2x3xf32>
}

// CHECK-LABEL: @joins_scatters
// CHECK: comm.reduce_scatter sum %{{.+}} dim 0 over @m ["a"]
// CHECK-SAME: tensor<2x5xf32> -> tensor<1x5xf32>
func.func @joins_scatters(%x: tensor<4xf32>, %y: tensor<2x3xf32>)
    -> (tensor<2xf32>, tensor<1x3xf32>) {
  %0 = comm.reduce_scatter sum %x dim 0 over @m ["a"]
      : tensor<4xf32> -> tensor<2xf32>
  %1 = comm.reduce_scatter sum %y dim 0 over @m ["a"]
      : tensor<2x3xf32> -> tensor<1x3xf32>
  return %0, %1 : tensor<2xf32>, tensor<1x3xf32>
}

// The first is read before the second's operand is there.
// CHECK-LABEL: @keeps_dependent_ones
// CHECK: comm.all_reduce sum %arg0 over @m ["a"] : tensor<2xf32>
// CHECK: comm.all_reduce sum %{{.+}} over @m ["a"] : tensor<2xf32>
func.func @keeps_dependent_ones(%x: tensor<2xf32>) -> tensor<2xf32> {
  %0 = comm.all_reduce sum %x over @m ["a"] : tensor<2xf32>
  %1 = arith.mulf %0, %0 : tensor<2xf32>
  %2 = comm.all_reduce sum %1 over @m ["a"] : tensor<2xf32>
  return %2 : tensor<2xf32>
}

// Copying a megabyte takes longer than starting.
// CHECK-LABEL: @keeps_large_ones
// CHECK-NOT: tensor.concat
func.func @keeps_large_ones(%x: tensor<262144xf32>, %y: tensor<262144xf32>)
    -> (tensor<262144xf32>, tensor<262144xf32>) {
  %0 = comm.all_reduce sum %x over @m ["a"] : tensor<262144xf32>
  %1 = comm.all_reduce sum %y over @m ["a"] : tensor<262144xf32>
  return %0, %1 : tensor<262144xf32>, tensor<262144xf32>
}

// Blocks of columns don't lie one after another.
// CHECK-LABEL: @keeps_inner_dims
// CHECK-COUNT-2: comm.all_gather
func.func @keeps_inner_dims(%x: tensor<2x2xf32>, %y: tensor<2x3xf32>)
    -> (tensor<2x4xf32>, tensor<2x6xf32>) {
  %0 = comm.all_gather %x dim 1 over @m ["a"]
      : tensor<2x2xf32> -> tensor<2x4xf32>
  %1 = comm.all_gather %y dim 1 over @m ["a"]
      : tensor<2x3xf32> -> tensor<2x6xf32>
  return %0, %1 : tensor<2x4xf32>, tensor<2x6xf32>
}

// CHECK-LABEL: @keeps_other_element_types
// CHECK-NOT: tensor.concat
func.func @keeps_other_element_types(%x: tensor<2xf32>, %y: tensor<2xf64>)
    -> (tensor<2xf32>, tensor<2xf64>) {
  %0 = comm.all_reduce sum %x over @m ["a"] : tensor<2xf32>
  %1 = comm.all_reduce sum %y over @m ["a"] : tensor<2xf64>
  return %0, %1 : tensor<2xf32>, tensor<2xf64>
}
