// RUN: cleave-opt %s --cleave-share-collectives | FileCheck %s

cleave.mesh @m = <["a"=2]>

#first = #comm.cause<op = "matmul", value = "%x", why = "k is cut", remedy = "">
#second = #comm.cause<op = "add", value = "%x", why = "k is cut", remedy = "">

// The one that is left answers for both.
// CHECK-LABEL: @shares_despite_causes
// CHECK: %[[R:.+]] = comm.all_reduce
// CHECK-SAME: cause = <op = "matmul; add", value = "%x", why = "k is cut",
// CHECK-NOT: comm.all_reduce
// CHECK: return %[[R]], %[[R]]
func.func @shares_despite_causes(%x: tensor<2xf32>)
    -> (tensor<2xf32>, tensor<2xf32>) {
  %0 = comm.all_reduce sum %x over @m ["a"] cause = #first : tensor<2xf32>
  %1 = comm.all_reduce sum %x over @m ["a"] cause = #second : tensor<2xf32>
  return %0, %1 : tensor<2xf32>, tensor<2xf32>
}

// CHECK-LABEL: @shares_with_outer_block
// CHECK: %[[R:.+]] = comm.all_reduce
// CHECK: scf.for
// CHECK-NOT: comm
// CHECK: tensor.extract %[[R]]
func.func @shares_with_outer_block(%x: tensor<2xf32>, %n: index)
    -> (tensor<2xf32>, f32) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  %0 = comm.all_reduce sum %x over @m ["a"] : tensor<2xf32>
  %1 = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero) -> f32 {
    %2 = comm.all_reduce sum %x over @m ["a"] : tensor<2xf32>
    %3 = tensor.extract %2[%c0] : tensor<2xf32>
    scf.yield %3 : f32
  }
  return %0, %1 : tensor<2xf32>, f32
}

// CHECK-LABEL: @keeps_other_kinds
// CHECK-DAG: comm.all_reduce sum
// CHECK-DAG: comm.all_reduce max
func.func @keeps_other_kinds(%x: tensor<2xf32>)
    -> (tensor<2xf32>, tensor<2xf32>) {
  %0 = comm.all_reduce sum %x over @m ["a"] : tensor<2xf32>
  %1 = comm.all_reduce max %x over @m ["a"] : tensor<2xf32>
  return %0, %1 : tensor<2xf32>, tensor<2xf32>
}

// What is in the loop comes first only if the loop runs.
// CHECK-LABEL: @keeps_what_an_inner_block_has
// CHECK: scf.for
// CHECK: comm.all_reduce
// CHECK: comm.all_reduce
func.func @keeps_what_an_inner_block_has(%x: tensor<2xf32>, %n: index)
    -> (tensor<2xf32>, tensor<2xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %1 = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %x) -> tensor<2xf32> {
    %2 = comm.all_reduce sum %x over @m ["a"] : tensor<2xf32>
    scf.yield %2 : tensor<2xf32>
  }
  %0 = comm.all_reduce sum %x over @m ["a"] : tensor<2xf32>
  return %0, %1 : tensor<2xf32>, tensor<2xf32>
}
