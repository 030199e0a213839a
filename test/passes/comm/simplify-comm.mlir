// RUN: cleave-opt %s --cleave-simplify-comm --split-input-file | FileCheck %s

cleave.mesh @m = <["a"=2, "b"=4]>

// Each member of the group keeps one part: it is sent nothing else.
// CHECK-LABEL: @scatters_what_is_cut
// CHECK-NEXT: %[[R:.+]] = comm.reduce_scatter sum %arg0 dim 1 over @m ["b"]
// CHECK-SAME: tensor<2x8xf32> -> tensor<2x2xf32>
// CHECK-NEXT: return %[[R]]
func.func @scatters_what_is_cut(%x: tensor<2x8xf32>) -> tensor<2x2xf32> {
  %0 = comm.all_reduce sum %x over @m ["b"] : tensor<2x8xf32>
  %1 = comm.slice %0 dim 1 over @m ["b"] : tensor<2x8xf32> -> tensor<2x2xf32>
  return %1 : tensor<2x2xf32>
}

// The whole is read as well.
// CHECK-LABEL: @keeps_what_is_read_whole
// CHECK-NEXT: comm.all_reduce
// CHECK-NEXT: comm.slice
func.func @keeps_what_is_read_whole(%x: tensor<8xf32>)
    -> (tensor<2xf32>, tensor<8xf32>) {
  %0 = comm.all_reduce sum %x over @m ["b"] : tensor<8xf32>
  %1 = comm.slice %0 dim 0 over @m ["b"] : tensor<8xf32> -> tensor<2xf32>
  return %1, %0 : tensor<2xf32>, tensor<8xf32>
}

// Zeros that are added to zeros stay zeros.
// CHECK-LABEL: @scatters_through_pad
// CHECK: %[[P:.+]] = tensor.pad %arg0
// CHECK: comm.reduce_scatter sum %[[P]] dim 0 over @m ["b"]
// CHECK-NOT: comm
// CHECK: return
func.func @scatters_through_pad(%x: tensor<7xf32>) -> tensor<2xf32> {
  %zero = arith.constant 0.0 : f32
  %0 = comm.all_reduce sum %x over @m ["b"] : tensor<7xf32>
  %1 = tensor.pad %0 low[0] high[1] {
  ^bb0(%i: index):
    tensor.yield %zero : f32
  } : tensor<7xf32> to tensor<8xf32>
  %2 = comm.slice %1 dim 0 over @m ["b"] : tensor<8xf32> -> tensor<2xf32>
  return %2 : tensor<2xf32>
}

// Four ones would be added to 4.
// CHECK-LABEL: @keeps_padding_that_adds_up
// CHECK: comm.all_reduce
// CHECK: comm.slice
func.func @keeps_padding_that_adds_up(%x: tensor<7xf32>) -> tensor<2xf32> {
  %one = arith.constant 1.0 : f32
  %0 = comm.all_reduce sum %x over @m ["b"] : tensor<7xf32>
  %1 = tensor.pad %0 low[0] high[1] {
  ^bb0(%i: index):
    tensor.yield %one : f32
  } : tensor<7xf32> to tensor<8xf32>
  %2 = comm.slice %1 dim 0 over @m ["b"] : tensor<8xf32> -> tensor<2xf32>
  return %2 : tensor<2xf32>
}

// Cut over other ranks: only the part is reduced.
// CHECK-LABEL: @reduces_the_part
// CHECK-NEXT: %[[S:.+]] = comm.slice %arg0 dim 0 over @m ["a"]
// CHECK-NEXT: comm.all_reduce sum %[[S]] over @m ["b"] : tensor<4xf32>
func.func @reduces_the_part(%x: tensor<8xf32>) -> tensor<4xf32> {
  %0 = comm.all_reduce sum %x over @m ["b"] : tensor<8xf32>
  %1 = comm.slice %0 dim 0 over @m ["a"] : tensor<8xf32> -> tensor<4xf32>
  return %1 : tensor<4xf32>
}

// CHECK-LABEL: @reduces_what_is_left
// CHECK-NEXT: %[[S:.+]] = tensor.extract_slice %arg0[1] [3] [1]
// CHECK-NEXT: comm.all_reduce sum %[[S]]
func.func @reduces_what_is_left(%x: tensor<8xf32>) -> tensor<3xf32> {
  %0 = comm.all_reduce sum %x over @m ["b"] : tensor<8xf32>
  %1 = tensor.extract_slice %0[1] [3] [1] : tensor<8xf32> to tensor<3xf32>
  return %1 : tensor<3xf32>
}

// CHECK-LABEL: @cancels_gather_and_slice
// CHECK-NEXT: return %arg0
func.func @cancels_gather_and_slice(%x: tensor<2xf32>) -> tensor<2xf32> {
  %0 = comm.all_gather %x dim 0 over @m ["b"] : tensor<2xf32> -> tensor<8xf32>
  %1 = comm.slice %0 dim 0 over @m ["b"] : tensor<8xf32> -> tensor<2xf32>
  return %1 : tensor<2xf32>
}

// CHECK-LABEL: @cancels_major_axes
// CHECK-NEXT: comm.all_gather %arg0 dim 0 over @m ["b"]
// CHECK-NEXT: return
func.func @cancels_major_axes(%x: tensor<2xf32>) -> tensor<8xf32> {
  %0 = comm.all_gather %x dim 0 over @m ["a", "b"]
      : tensor<2xf32> -> tensor<16xf32>
  %1 = comm.slice %0 dim 0 over @m ["a"] : tensor<16xf32> -> tensor<8xf32>
  return %1 : tensor<8xf32>
}

// The slice is over the minor axis: a part of each of two blocks.
// CHECK-LABEL: @keeps_minor_axes
// CHECK-NEXT: comm.all_gather
// CHECK-NEXT: comm.slice
func.func @keeps_minor_axes(%x: tensor<4xf32>) -> tensor<8xf32> {
  %0 = comm.all_gather %x dim 0 over @m ["a", "b"]
      : tensor<4xf32> -> tensor<32xf32>
  %1 = comm.slice %0 dim 0 over @m ["b"] : tensor<32xf32> -> tensor<8xf32>
  return %1 : tensor<8xf32>
}

// CHECK-LABEL: @exchanges_in_place_of_gather
// CHECK-NEXT: comm.all_to_all %arg0 split 1 concat 0 over @m ["b"]
// CHECK-NEXT: return
func.func @exchanges_in_place_of_gather(%x: tensor<2x8xf32>)
    -> tensor<8x2xf32> {
  %0 = comm.all_gather %x dim 0 over @m ["b"]
      : tensor<2x8xf32> -> tensor<8x8xf32>
  %1 = comm.slice %0 dim 1 over @m ["b"] : tensor<8x8xf32> -> tensor<8x2xf32>
  return %1 : tensor<8x2xf32>
}

// CHECK-LABEL: @merges_gathers
// CHECK-NEXT: comm.all_gather %arg0 dim 0 over @m ["a", "b"]
// CHECK-NEXT: return
func.func @merges_gathers(%x: tensor<1xf32>) -> tensor<8xf32> {
  %0 = comm.all_gather %x dim 0 over @m ["b"] : tensor<1xf32> -> tensor<4xf32>
  %1 = comm.all_gather %0 dim 0 over @m ["a"] : tensor<4xf32> -> tensor<8xf32>
  return %1 : tensor<8xf32>
}

// CHECK-LABEL: @merges_slices
// CHECK-NEXT: comm.slice %arg0 dim 0 over @m ["b", "a"]
// CHECK-NEXT: return
func.func @merges_slices(%x: tensor<8xf32>) -> tensor<1xf32> {
  %0 = comm.slice %x dim 0 over @m ["b"] : tensor<8xf32> -> tensor<2xf32>
  %1 = comm.slice %0 dim 0 over @m ["a"] : tensor<2xf32> -> tensor<1xf32>
  return %1 : tensor<1xf32>
}

// Other dims are other parts.
// CHECK-LABEL: @keeps_slices_of_two_dims
// CHECK-COUNT-2: comm.slice
func.func @keeps_slices_of_two_dims(%x: tensor<8x8xf32>) -> tensor<2x4xf32> {
  %0 = comm.slice %x dim 0 over @m ["b"] : tensor<8x8xf32> -> tensor<2x8xf32>
  %1 = comm.slice %0 dim 1 over @m ["a"] : tensor<2x8xf32> -> tensor<2x4xf32>
  return %1 : tensor<2x4xf32>
}

// CHECK-LABEL: @cancels_exchanges
// CHECK-NEXT: return %arg0
func.func @cancels_exchanges(%x: tensor<2x8xf32>) -> tensor<2x8xf32> {
  %0 = comm.all_to_all %x split 1 concat 0 over @m ["b"]
      : tensor<2x8xf32> -> tensor<8x2xf32>
  %1 = comm.all_to_all %0 split 0 concat 1 over @m ["b"]
      : tensor<8x2xf32> -> tensor<2x8xf32>
  return %1 : tensor<2x8xf32>
}

// There and back.
// CHECK-LABEL: @merges_permutes
// CHECK-NEXT: return %arg0
func.func @merges_permutes(%x: tensor<2xf32>) -> tensor<2xf32> {
  %0 = comm.permute %x from ["a", "b"] over @m ["b", "a"] : tensor<2xf32>
  %1 = comm.permute %0 from ["b", "a"] over @m ["a", "b"] : tensor<2xf32>
  return %1 : tensor<2xf32>
}

// CHECK-LABEL: @drops_maximum_of_constant
// CHECK-NOT: comm
func.func @drops_maximum_of_constant() -> tensor<2xf32> {
  %c = arith.constant dense<3.0> : tensor<2xf32>
  %0 = comm.all_reduce max %c over @m ["b"] : tensor<2xf32>
  return %0 : tensor<2xf32>
}

// Four times 3 is 12.
// CHECK-LABEL: @keeps_sum_of_constant
// CHECK: comm.all_reduce
func.func @keeps_sum_of_constant() -> tensor<2xf32> {
  %c = arith.constant dense<3.0> : tensor<2xf32>
  %0 = comm.all_reduce sum %c over @m ["b"] : tensor<2xf32>
  return %0 : tensor<2xf32>
}

// CHECK-LABEL: @joins_scatter_and_gather
// CHECK-NEXT: comm.all_reduce sum %arg0 over @m ["b"]
// CHECK-NEXT: return
func.func @joins_scatter_and_gather(%x: tensor<8xf32>) -> tensor<8xf32> {
  %0 = comm.reduce_scatter sum %x dim 0 over @m ["b"]
      : tensor<8xf32> -> tensor<2xf32>
  %1 = comm.all_gather %0 dim 0 over @m ["b"] : tensor<2xf32> -> tensor<8xf32>
  return %1 : tensor<8xf32>
}

// -----

cleave.mesh @m = <["a"=1, "b"=2]>

// CHECK-LABEL: @drops_reduction_of_one
// CHECK-NEXT: return %arg0
func.func @drops_reduction_of_one(%x: tensor<8xf32>) -> tensor<8xf32> {
  %0 = comm.all_reduce sum %x over @m ["a"] : tensor<8xf32>
  return %0 : tensor<8xf32>
}

// What nobody wrote does not travel, nor does a part without elements.
// CHECK-LABEL: @drops_what_is_undefined
// CHECK-NOT: comm.
// CHECK: return %arg0, %{{.*}}, %arg2
func.func @drops_what_is_undefined(%into: tensor<8xf32>, %none: tensor<2x0xf32>,
                                   %init: tensor<3x0xf32>)
    -> (tensor<8xf32>, tensor<8xf32>, tensor<3x0xf32>) {
  %e = tensor.empty() : tensor<4xf32>
  %0 = comm.realign %e into %into dim 0 size 8 to 16 offset 2 stride 1
      from ["b"] over @m ["b"] : tensor<4xf32> -> tensor<8xf32>
  %1 = comm.all_gather %e dim 0 over @m ["b"] : tensor<4xf32> -> tensor<8xf32>
  %2 = comm.realign %none into %init dim 0 size 4 to 6 offset 0 stride 1
      from ["b"] over @m ["b"] : tensor<2x0xf32> -> tensor<3x0xf32>
  return %0, %1, %2 : tensor<8xf32>, tensor<8xf32>, tensor<3x0xf32>
}

// CHECK-LABEL: @drops_part_of_what_is_undefined
// CHECK-NEXT: %[[E:.*]] = tensor.empty() : tensor<3xf32>
// CHECK-NEXT: return %[[E]]
func.func @drops_part_of_what_is_undefined() -> tensor<3xf32> {
  %e = tensor.empty() : tensor<2xf32>
  %0 = comm.all_gather %e dim 0 over @m ["b"] : tensor<2xf32> -> tensor<4xf32>
  %1 = tensor.extract_slice %0[0] [3] [1] : tensor<4xf32> to tensor<3xf32>
  return %1 : tensor<3xf32>
}
