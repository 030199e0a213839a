// RUN: cleave-opt %s --cleave-delay-reductions | FileCheck %s

cleave.mesh @m = <["a"=2]>

// CHECK-LABEL: @adds_before_reducing
// CHECK: %[[SUM:.+]] = linalg.add ins(%arg0, %arg1
// CHECK: %[[R:.+]] = comm.all_reduce sum %[[SUM]]
// CHECK: return %[[R]]
func.func @adds_before_reducing(%x: tensor<4xf32>, %y: tensor<4xf32>)
    -> tensor<4xf32> {
  %e = tensor.empty() : tensor<4xf32>
  %0 = comm.all_reduce sum %x over @m ["a"] : tensor<4xf32>
  %1 = comm.all_reduce sum %y over @m ["a"] : tensor<4xf32>
  %2 = linalg.add ins(%0, %1 : tensor<4xf32>, tensor<4xf32>)
      outs(%e : tensor<4xf32>) -> tensor<4xf32>
  return %2 : tensor<4xf32>
}

// A product of sums is no sum of products.
// CHECK-LABEL: @keeps_products
// CHECK-COUNT-2: comm.all_reduce
// CHECK: linalg.mul
func.func @keeps_products(%x: tensor<4xf32>, %y: tensor<4xf32>)
    -> tensor<4xf32> {
  %e = tensor.empty() : tensor<4xf32>
  %0 = comm.all_reduce sum %x over @m ["a"] : tensor<4xf32>
  %1 = comm.all_reduce sum %y over @m ["a"] : tensor<4xf32>
  %2 = linalg.mul ins(%0, %1 : tensor<4xf32>, tensor<4xf32>)
      outs(%e : tensor<4xf32>) -> tensor<4xf32>
  return %2 : tensor<4xf32>
}

// Negated, it is as large as before.
// CHECK-LABEL: @keeps_what_does_not_shrink
// CHECK: comm.all_reduce sum %arg0
func.func @keeps_what_does_not_shrink(%x: tensor<4xf32>) -> tensor<4xf32> {
  %e = tensor.empty() : tensor<4xf32>
  %0 = comm.all_reduce sum %x over @m ["a"] : tensor<4xf32>
  %1 = linalg.negf ins(%0 : tensor<4xf32>) outs(%e : tensor<4xf32>)
      -> tensor<4xf32>
  return %1 : tensor<4xf32>
}

// The initial value counts once.
// CHECK-LABEL: @reduces_after_the_loop
// CHECK: %[[C:.+]] = comm.coordinate over @m ["a"]
// CHECK: %[[FIRST:.+]] = arith.cmpi eq, %[[C]]
// CHECK: %[[INIT:.+]] = linalg.generic {{.*}} ins(%arg1
// CHECK: arith.select %[[FIRST]]
// CHECK: %[[L:.+]] = scf.for {{.*}} iter_args(%[[ACC:.+]] = %[[INIT]])
// CHECK-NOT: comm
// CHECK: linalg.add ins(%[[ACC]], %arg0
// CHECK: scf.yield
// CHECK: %[[R:.+]] = comm.all_reduce sum %[[L]]
// CHECK: return %[[R]]
func.func @reduces_after_the_loop(%x: tensor<4xf32>, %init: tensor<4xf32>,
                                  %n: index) -> tensor<4xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %e = tensor.empty() : tensor<4xf32>
  %0 = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %init)
      -> tensor<4xf32> {
    %1 = comm.all_reduce sum %x over @m ["a"] : tensor<4xf32>
    %2 = linalg.add ins(%acc, %1 : tensor<4xf32>, tensor<4xf32>)
        outs(%e : tensor<4xf32>) -> tensor<4xf32>
    scf.yield %2 : tensor<4xf32>
  }
  return %0 : tensor<4xf32>
}

// Each trip reads what the one before has reduced.
// CHECK-LABEL: @keeps_what_the_loop_reads
// CHECK: scf.for
// CHECK: comm.all_reduce
// CHECK: scf.yield
// CHECK-NOT: comm
func.func @keeps_what_the_loop_reads(%x: tensor<4xf32>, %init: tensor<4xf32>,
                                     %n: index) -> tensor<4xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %e = tensor.empty() : tensor<4xf32>
  %0 = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %init)
      -> tensor<4xf32> {
    %y = linalg.exp ins(%acc : tensor<4xf32>) outs(%e : tensor<4xf32>)
        -> tensor<4xf32>
    %1 = comm.all_reduce sum %y over @m ["a"] : tensor<4xf32>
    %2 = linalg.add ins(%acc, %1 : tensor<4xf32>, tensor<4xf32>)
        outs(%e : tensor<4xf32>) -> tensor<4xf32>
    scf.yield %2 : tensor<4xf32>
  }
  return %0 : tensor<4xf32>
}

// A loop that runs once has nothing to save.
// CHECK-LABEL: @keeps_single_trips
// CHECK: scf.for
// CHECK: comm.all_reduce
// CHECK: scf.yield
func.func @keeps_single_trips(%x: tensor<4xf32>, %init: tensor<4xf32>)
    -> tensor<4xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %e = tensor.empty() : tensor<4xf32>
  %0 = scf.for %i = %c0 to %c1 step %c1 iter_args(%acc = %init)
      -> tensor<4xf32> {
    %1 = comm.all_reduce sum %x over @m ["a"] : tensor<4xf32>
    %2 = linalg.add ins(%acc, %1 : tensor<4xf32>, tensor<4xf32>)
        outs(%e : tensor<4xf32>) -> tensor<4xf32>
    scf.yield %2 : tensor<4xf32>
  }
  return %0 : tensor<4xf32>
}

// Each rank keeps another part of the sum: the summands of that part are with
// the others.
// CHECK-LABEL: @keeps_what_ranks_read_differently
// CHECK: comm.all_reduce sum %arg0 over @m ["a"] : tensor<4xf32>
// CHECK: linalg.generic
// CHECK-NOT: comm.all_reduce
func.func @keeps_what_ranks_read_differently(%x: tensor<4xf32>)
    -> tensor<f32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<f32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<f32>) -> tensor<f32>
  %rank = comm.coordinate over @m ["a"]
  %0 = comm.all_reduce sum %x over @m ["a"] : tensor<4xf32>
  %1 = linalg.generic {
      indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> ()>],
      iterator_types = ["reduction"]}
      ins(%0 : tensor<4xf32>) outs(%init : tensor<f32>) {
  ^bb0(%in: f32, %out: f32):
    %i = linalg.index 0 : index
    %own = arith.cmpi eq, %i, %rank : index
    %kept = arith.select %own, %in, %zero : f32
    %sum = arith.addf %out, %kept : f32
    linalg.yield %sum : f32
  } -> tensor<f32>
  return %1 : tensor<f32>
}
