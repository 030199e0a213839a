// Every op and attribute parses, prints, and parses again to the same text.
// RUN: cleave-opt %s | cleave-opt | FileCheck %s
// RUN: cleave-opt %s --mlir-print-op-generic | cleave-opt | FileCheck %s

cleave.mesh @pod = <["pp"=2, "tp"=4]>
cleave.mesh @big = <["a"=12, "b"=6]>

// CHECK-LABEL: func.func @all_reduce
// CHECK: comm.all_reduce sum %{{.+}} over @pod ["tp"] : tensor<8x16xf32>
// CHECK: comm.all_reduce maxnum %{{.+}} over @pod ["pp", "tp"] : tensor<8x16xf32>
func.func @all_reduce(%x: tensor<8x16xf32>) -> tensor<8x16xf32> {
  // [all_reduce]
  %0 = comm.all_reduce sum %x over @pod ["tp"] : tensor<8x16xf32>
  // [/all_reduce]
  %1 = comm.all_reduce maxnum %0 over @pod ["pp", "tp"] : tensor<8x16xf32>
  return %1 : tensor<8x16xf32>
}

// Bitwise and unsigned kinds are for integers.
// CHECK-LABEL: func.func @all_reduce_integers
// CHECK: comm.all_reduce and
// CHECK: comm.all_reduce or
// CHECK: comm.all_reduce xor
// CHECK: comm.all_reduce umax
// CHECK: comm.all_reduce umin
// CHECK: comm.all_reduce prod
// CHECK: comm.all_reduce min
func.func @all_reduce_integers(%x: tensor<i32>) -> tensor<i32> {
  %0 = comm.all_reduce and %x over @pod ["tp"] : tensor<i32>
  %1 = comm.all_reduce or %0 over @pod ["tp"] : tensor<i32>
  %2 = comm.all_reduce xor %1 over @pod ["tp"] : tensor<i32>
  %3 = comm.all_reduce umax %2 over @pod ["tp"] : tensor<i32>
  %4 = comm.all_reduce umin %3 over @pod ["tp"] : tensor<i32>
  %5 = comm.all_reduce prod %4 over @pod ["tp"] : tensor<i32>
  %6 = comm.all_reduce min %5 over @pod ["tp"] : tensor<i32>
  return %6 : tensor<i32>
}

// CHECK-LABEL: func.func @all_gather
// CHECK: comm.all_gather %{{.+}} dim 1 over @pod ["tp"] : tensor<8x4xf32> -> tensor<8x16xf32>
func.func @all_gather(%x: tensor<8x4xf32>) -> tensor<8x16xf32> {
  // [all_gather]
  %0 = comm.all_gather %x dim 1 over @pod ["tp"]
    : tensor<8x4xf32> -> tensor<8x16xf32>
  // [/all_gather]
  return %0 : tensor<8x16xf32>
}

// CHECK-LABEL: func.func @reduce_scatter
// CHECK: comm.reduce_scatter sum %{{.+}} dim 0 over @pod ["tp"] : tensor<8x16xf32> -> tensor<2x16xf32>
func.func @reduce_scatter(%x: tensor<8x16xf32>) -> tensor<2x16xf32> {
  // [reduce_scatter]
  %0 = comm.reduce_scatter sum %x dim 0 over @pod ["tp"]
    : tensor<8x16xf32> -> tensor<2x16xf32>
  // [/reduce_scatter]
  return %0 : tensor<2x16xf32>
}

// CHECK-LABEL: func.func @all_to_all
// CHECK: comm.all_to_all %{{.+}} split 0 concat 1 over @pod ["tp"] : tensor<8x4xf32> -> tensor<2x16xf32>
func.func @all_to_all(%x: tensor<8x4xf32>) -> tensor<2x16xf32> {
  // [all_to_all]
  %0 = comm.all_to_all %x split 0 concat 1 over @pod ["tp"]
    : tensor<8x4xf32> -> tensor<2x16xf32>
  // [/all_to_all]
  return %0 : tensor<2x16xf32>
}

// CHECK-LABEL: func.func @permute
// CHECK: comm.permute %{{.+}} from ["pp", "tp"] over @pod ["tp", "pp"] : tensor<8x16xf32>
func.func @permute(%x: tensor<8x16xf32>) -> tensor<8x16xf32> {
  // [permute]
  %0 = comm.permute %x from ["pp", "tp"] over @pod ["tp", "pp"]
    : tensor<8x16xf32>
  // [/permute]
  return %0 : tensor<8x16xf32>
}

// Blocks of 3 hold 10 indices over 4 ranks; blocks of 2 hold the 7 kept.
// CHECK-LABEL: func.func @realign
// CHECK: comm.realign %{{.+}} into %{{.+}} dim 0 size 10 to 7 offset 3 stride 1 from ["tp"] over @pod ["tp"] : tensor<3xf32> -> tensor<2xf32>
// CHECK: comm.realign {{.*}} offset -3 stride 1
func.func @realign(%x: tensor<3xf32>, %init: tensor<2xf32>,
                   %wide: tensor<4xf32>) {
  // [realign]
  %0 = comm.realign %x into %init dim 0 size 10 to 7 offset 3 stride 1
    from ["tp"] over @pod ["tp"] : tensor<3xf32> -> tensor<2xf32>
  // [/realign]
  %1 = comm.realign %x into %wide dim 0 size 10 to 16 offset -3 stride 1
    from ["tp"] over @pod ["tp"] : tensor<3xf32> -> tensor<4xf32>
  return
}

// CHECK-LABEL: func.func @slice
// CHECK: comm.slice %{{.+}} dim 1 over @pod ["tp"] : tensor<8x16xf32> -> tensor<8x4xf32>
func.func @slice(%x: tensor<8x16xf32>) -> tensor<8x4xf32> {
  // [slice]
  %0 = comm.slice %x dim 1 over @pod ["tp"]
    : tensor<8x16xf32> -> tensor<8x4xf32>
  // [/slice]
  return %0 : tensor<8x4xf32>
}

// CHECK-LABEL: func.func @coordinate
// CHECK: comm.coordinate over @pod ["pp", "tp"]
func.func @coordinate() -> index {
  // [coordinate]
  %0 = comm.coordinate over @pod ["pp", "tp"]
  // [/coordinate]
  return %0 : index
}

// CHECK-LABEL: func.func @transfers
// CHECK: comm.send %{{.+}} delta 1 over @pod ["pp"] : tensor<8x16xf32>
// CHECK: comm.recv delta -1 over @pod ["pp"] : tensor<8x16xf32>
func.func @transfers(%x: tensor<8x16xf32>) -> tensor<8x16xf32> {
  // [transfers]
  comm.send %x delta 1 over @pod ["pp"] : tensor<8x16xf32>
  %0 = comm.recv delta -1 over @pod ["pp"] : tensor<8x16xf32>
  // [/transfers]
  return %0 : tensor<8x16xf32>
}

// Groups may be over sub-axes; members are counted over the digit alone.
// CHECK-LABEL: func.func @sub_axes
// CHECK: comm.all_gather %{{.+}} dim 0 over @big ["a":(2)3, "b"] : tensor<2xf32> -> tensor<36xf32>
func.func @sub_axes(%x: tensor<2xf32>) -> tensor<36xf32> {
  %0 = comm.all_gather %x dim 0 over @big ["a":(2)3, "b"]
    : tensor<2xf32> -> tensor<36xf32>
  return %0 : tensor<36xf32>
}

// A communication says why it is there.
// CHECK-LABEL: func.func @cause
// CHECK: comm.all_reduce sum %{{.+}} over @pod ["tp"] cause = <op = "linalg.matmul", value = "y", why = "dim 1 of 'h' is cut over 'tp'", remedy = ""> : tensor<8xf32>
func.func @cause(%x: tensor<8xf32>) -> tensor<8xf32> {
  // [cause]
  %0 = comm.all_reduce sum %x over @pod ["tp"]
    cause = <op = "linalg.matmul", value = "y",
             why = "dim 1 of 'h' is cut over 'tp'", remedy = "">
    : tensor<8xf32>
  // [/cause]
  return %0 : tensor<8xf32>
}

// Equal collectives are shared, because all ranks share them alike.
// RUN: cleave-opt %s --cse | FileCheck %s --check-prefix=CSE
// CSE-LABEL: func.func @shared
// CSE: comm.all_reduce
// CSE-NOT: comm.all_reduce
// CSE: return
func.func @shared(%x: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
  %0 = comm.all_reduce sum %x over @pod ["tp"] : tensor<8xf32>
  %1 = comm.all_reduce sum %x over @pod ["tp"] : tensor<8xf32>
  return %0, %1 : tensor<8xf32>, tensor<8xf32>
}

// Transfers have an effect: they stay though nobody uses the result.
// RUN: cleave-opt %s --canonicalize | FileCheck %s --check-prefix=DCE
// DCE-LABEL: func.func @unused_recv
// DCE: comm.recv
func.func @unused_recv() {
  %0 = comm.recv delta -1 over @pod ["pp"] : tensor<8xf32>
  return
}
