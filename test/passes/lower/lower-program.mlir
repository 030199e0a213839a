// RUN: cleave-opt %s --cleave-memory-pipeline --cleave-lower-pipeline \
// RUN:   | FileCheck %s

cleave.mesh @two = <["tp"=2]>

// What users read in a trace and in messages.
// CHECK-DAG: @[[NAME:text.[0-9]+]]("double\00")
// CHECK-DAG: ("all_reduce over 'tp'\00")
// The table that the runtime finds.
// CHECK-DAG: llvm.mlir.global external constant @cleave_program_avx512()

// Kernels stay, and have a symbol that says what they compute.
// CHECK: func.func private @double
// CHECK-SAME: dispatch.symbol = "[[KERNEL:cleave.[0-9a-f]+.avx512]]"
func.func private @double(%x: tensor<40xf32>, %out: tensor<40xf32>)
    -> tensor<40xf32> attributes {dispatch.kernel} {
  %0 = linalg.add ins(%x, %x : tensor<40xf32>, tensor<40xf32>)
    outs(%out : tensor<40xf32>) -> tensor<40xf32>
  return %0 : tensor<40xf32>
}

// Context, frame, resident area; a tensor and an index; then one pointer for
// the tensor and two for the scalars.
// CHECK: llvm.func internal @cleave.twice.avx512(
// CHECK-SAME: %[[CONTEXT:.*]]: !llvm.ptr, %{{.*}}: !llvm.ptr, %{{.*}}: !llvm.ptr, %[[X:.*]]: !llvm.ptr, %[[I:.*]]: i64, %[[Y:.*]]: !llvm.ptr, %[[J:.*]]: !llvm.ptr, %[[B:.*]]: !llvm.ptr) -> i32
// CHECK: %[[NEXT:.*]] = llvm.add %[[I]]
// CHECK: %[[LESS:.*]] = llvm.icmp "slt" %[[I]]
// CHECK: llvm.call @cleave_rt_trace_begin(%[[CONTEXT]]
// CHECK: llvm.call @[[KERNEL]](%[[X]], %[[Y]])
// CHECK: llvm.call @cleave_rt_trace_end(%[[CONTEXT]])
// CHECK: llvm.store %[[NEXT]], %[[J]] : i64
// CHECK: llvm.store %[[LESS]], %[[B]] : i1
// CHECK: llvm.return
func.func private @twice(%x: tensor<40xf32>, %i: index)
    -> (tensor<40xf32>, index, i1) {
  %one = arith.constant 1 : index
  %j = arith.addi %i, %one : index
  %b = arith.cmpi slt, %i, %one : index
  %0 = tensor.empty() : tensor<40xf32>
  %1 = dispatch.call @double(%x) into (%0)
    : (tensor<40xf32>) into (tensor<40xf32>)
  return %1, %j, %b : tensor<40xf32>, index, i1
}

// An entry finds its inputs in its frame. Room for scalars is taken once, not
// in each iteration; a status that is not 0 leaves the function.
// CHECK: llvm.func internal @cleave.main.avx512(
// CHECK-SAME: %[[CONTEXT:.*]]: !llvm.ptr, %[[FRAME:.*]]: !llvm.ptr, %{{.*}}: !llvm.ptr) -> i32
// CHECK-COUNT-2: llvm.alloca
// CHECK: llvm.br ^[[HEADER:bb[0-9]+]]
// CHECK: ^[[EXIT:bb[0-9]+]](%[[STATUS:.*]]: i32)
// CHECK-NEXT: llvm.return %[[STATUS]] : i32
// CHECK: ^[[HEADER]](
// CHECK-NOT: llvm.alloca
// CHECK: %[[CALLED:.*]] = llvm.call @cleave.twice.avx512(
// CHECK: %[[BAD:.*]] = llvm.icmp "ne" %[[CALLED]]
// CHECK: llvm.cond_br %[[BAD]], ^[[EXIT]](%[[CALLED]] : i32)
// CHECK: %[[SENT:.*]] = llvm.call @cleave_rt_comm(%[[CONTEXT]],
// CHECK: %[[LOST:.*]] = llvm.icmp "ne" %[[SENT]]
// CHECK: llvm.cond_br %[[LOST]], ^[[EXIT]](%[[SENT]] : i32)
func.func @main(%x: tensor<40xf32> {dispatch.name = "x",
      cleave.sharding = #cleave.sharding<@two, [{}]>})
    -> (tensor<40xf32> {dispatch.name = "y",
      cleave.sharding = #cleave.sharding<@two, [{}]>}) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %nine = arith.constant 9 : index
  %0, %n = scf.for %i = %zero to %nine step %one
      iter_args(%v = %x, %k = %zero) -> (tensor<40xf32>, index) {
    %1:3 = func.call @twice(%v, %k)
      : (tensor<40xf32>, index) -> (tensor<40xf32>, index, i1)
    %2 = comm.all_reduce sum %1#0 over @two ["tp"] : tensor<40xf32>
    scf.yield %2, %1#1 : tensor<40xf32>, index
  }
  return %0 : tensor<40xf32>
}
