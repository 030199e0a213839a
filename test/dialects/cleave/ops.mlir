// Every op and attribute parses, prints, and parses again to the same text.
// RUN: cleave-opt %s | cleave-opt | FileCheck %s
// RUN: cleave-opt %s --mlir-print-op-generic | cleave-opt | FileCheck %s

// Axes run from major to minor.
// CHECK: cleave.mesh @pod = <["pp"=2, "tp"=4]>
// [mesh]
cleave.mesh @pod = <["pp"=2, "tp"=4]>
// [/mesh]

// An axis of size 1 is legal, and so is a mesh of one rank.
// CHECK: cleave.mesh @one = <["only"=1]>
cleave.mesh @one = <["only"=1]>

// A mesh without axes has one rank.
// CHECK: cleave.mesh @point = <[]>
cleave.mesh @point = <[]>

// Rank ranks[i] sits at coordinate i.
// CHECK: cleave.mesh @swapped = <["a"=2, "b"=2], ranks=[0, 2, 1, 3]>
cleave.mesh @swapped = <["a"=2, "b"=2], ranks=[0, 2, 1, 3]>

// CHECK: cleave.mesh @big = <["a"=12, "b"=6]>
cleave.mesh @big = <["a"=12, "b"=6]>

// Weights and state are told by the attributes of arguments and results.
// CHECK-LABEL: func.func @edge_attributes
// CHECK-SAME: %{{.+}}: tensor<8x4xf32> {cleave.sharding = #cleave.sharding<@pod, [{}, {"tp"}]>, cleave.weight = "w"}
// CHECK-SAME: %{{.+}}: tensor<8xf32> {cleave.state = "s"}
// CHECK-SAME: -> (tensor<8xf32> {cleave.sharding = #cleave.sharding<@pod, [{"pp"}]>, cleave.state = "s"})
func.func @edge_attributes(
    %w: tensor<8x4xf32> {cleave.sharding = #cleave.sharding<@pod, [{}, {"tp"}]>,
                         cleave.weight = "w"},
    %s: tensor<8xf32> {cleave.state = "s"})
    -> (tensor<8xf32> {cleave.sharding = #cleave.sharding<@pod, [{"pp"}]>,
                       cleave.state = "s"}) {
  return %s : tensor<8xf32>
}

// Partitioned functions keep the type of the whole tensor.
// CHECK-LABEL: func.func @global_type
// CHECK-SAME: {cleave.global_type = tensor<8xf32>,
func.func @global_type(
    %x: tensor<4xf32> {cleave.global_type = tensor<8xf32>,
                       cleave.sharding = #cleave.sharding<@pod, [{"pp"}]>}) {
  return
}

// An open dim ends in '?': propagation may append axes.
// CHECK-LABEL: func.func @open_and_closed
// CHECK-SAME: #cleave.sharding<@pod, [{?}, {"tp", ?}, {}, {"pp"}]>
func.func @open_and_closed(
    %x: tensor<8x8x8x8xf32>
      {cleave.sharding = #cleave.sharding<@pod, [{?}, {"tp", ?}, {}, {"pp"}]>}) {
  return
}

// The sub-axis (2)3 follows the first 2 shards and has 3 itself.
// CHECK-LABEL: func.func @sub_axes
// CHECK-SAME: #cleave.sharding<@big, [{"a":(2)3, "b"}, {"a":(1)2}]>
func.func @sub_axes(
    %x: tensor<36x8xf32>
      {cleave.sharding = #cleave.sharding<@big, [{"a":(2)3, "b"}, {"a":(1)2}]>}) {
  return
}

// CHECK-LABEL: func.func @priorities
// CHECK-SAME: #cleave.sharding<@pod, [{"tp"}p0, {?}p2]>
func.func @priorities(
    %x: tensor<8x8xf32>
      {cleave.sharding = #cleave.sharding<@pod, [{"tp"}p0, {?}p2]>}) {
  return
}

// CHECK-LABEL: func.func @replicated_and_partial
// CHECK-SAME: #cleave.sharding<@pod, [{?}], replicated={"pp"}, partial=max{"tp"}>
func.func @replicated_and_partial(
    %x: tensor<8xf32>
      {cleave.sharding = #cleave.sharding<@pod, [{?}], replicated={"pp"},
                                          partial=max{"tp"}>}) {
  return
}

// A scalar tensor has no dims, but may be partial.
// CHECK-LABEL: func.func @rank_zero
// CHECK-SAME: #cleave.sharding<@pod, [], partial=sum{"pp", "tp"}>
func.func @rank_zero(
    %x: tensor<f32>
      {cleave.sharding = #cleave.sharding<@pod, [], partial=sum{"pp", "tp"}>}) {
  return
}

// Sizes that the axes do not divide, and empty dims, are legal.
// CHECK-LABEL: func.func @uneven
// CHECK-SAME: tensor<3x0xf32>
func.func @uneven(
    %x: tensor<3x0xf32>
      {cleave.sharding = #cleave.sharding<@pod, [{"tp"}, {"pp"}]>}) {
  return
}

// Every reduction kind has a name.
// CHECK-LABEL: func.func @kinds
// CHECK-SAME: partial=sum{"tp"}
// CHECK-SAME: partial=prod{"tp"}
// CHECK-SAME: partial=max{"tp"}
// CHECK-SAME: partial=min{"tp"}
// CHECK-SAME: partial=umax{"tp"}
// CHECK-SAME: partial=umin{"tp"}
// CHECK-SAME: partial=maxnum{"tp"}
// CHECK-SAME: partial=minnum{"tp"}
// CHECK-SAME: partial=and{"tp"}
// CHECK-SAME: partial=or{"tp"}
// CHECK-SAME: partial=xor{"tp"}
func.func @kinds(
    %0: tensor<f32> {cleave.sharding = #cleave.sharding<@pod, [], partial=sum{"tp"}>},
    %1: tensor<f32> {cleave.sharding = #cleave.sharding<@pod, [], partial=prod{"tp"}>},
    %2: tensor<f32> {cleave.sharding = #cleave.sharding<@pod, [], partial=max{"tp"}>},
    %3: tensor<f32> {cleave.sharding = #cleave.sharding<@pod, [], partial=min{"tp"}>},
    %4: tensor<i32> {cleave.sharding = #cleave.sharding<@pod, [], partial=umax{"tp"}>},
    %5: tensor<i32> {cleave.sharding = #cleave.sharding<@pod, [], partial=umin{"tp"}>},
    %6: tensor<f32> {cleave.sharding = #cleave.sharding<@pod, [], partial=maxnum{"tp"}>},
    %7: tensor<f32> {cleave.sharding = #cleave.sharding<@pod, [], partial=minnum{"tp"}>},
    %8: tensor<i32> {cleave.sharding = #cleave.sharding<@pod, [], partial=and{"tp"}>},
    %9: tensor<i32> {cleave.sharding = #cleave.sharding<@pod, [], partial=or{"tp"}>},
    %10: tensor<i32> {cleave.sharding = #cleave.sharding<@pod, [], partial=xor{"tp"}>}) {
  return
}

// A sharding on an op is that of its result; a list names each of several.
// CHECK-LABEL: func.func @op_shardings
// CHECK: arith.addf {{.*}} {cleave.sharding = #cleave.sharding<@pod, [{"tp"}]>}
// CHECK: scf.for
// CHECK: } {cleave.sharding = [#cleave.sharding<@pod, [{"tp"}]>, #cleave.sharding<@pod, [{?}]>]}
func.func @op_shardings(%x: tensor<8xf32>, %n: index) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %y = arith.addf %x, %x {cleave.sharding = #cleave.sharding<@pod, [{"tp"}]>}
    : tensor<8xf32>
  %z:2 = scf.for %i = %zero to %n step %one iter_args(%a = %x, %b = %y)
      -> (tensor<8xf32>, tensor<8xf32>) {
    scf.yield %b, %a : tensor<8xf32>, tensor<8xf32>
  } {cleave.sharding = [#cleave.sharding<@pod, [{"tp"}]>,
                        #cleave.sharding<@pod, [{?}]>]}
  return
}

// CHECK-LABEL: func.func @constraint
// CHECK: cleave.constraint %{{.+}} <@pod, [{"pp"}, {}]> : tensor<8x16xf32>
func.func @constraint(%x: tensor<8x16xf32>) -> tensor<8x16xf32> {
  // [constraint]
  %y = cleave.constraint %x <@pod, [{"pp"}, {}]> : tensor<8x16xf32>
  // [/constraint]
  return %y : tensor<8x16xf32>
}

// As propagation leaves it.
// CHECK-LABEL: func.func @constraint_because
// CHECK: cleave.constraint %{{.+}} <@pod, [{"pp"}]> {because = "moved once for its 2 readers"} : tensor<8xf32>
func.func @constraint_because(%x: tensor<8xf32>) -> tensor<8xf32> {
  %y = cleave.constraint %x <@pod, [{"pp"}]>
    {because = "moved once for its 2 readers"} : tensor<8xf32>
  return %y : tensor<8xf32>
}

// CHECK-LABEL: func.func @barrier
// CHECK: cleave.barrier %{{.+}} allowed_direction=FORWARD : tensor<8xf32>
// CHECK: cleave.barrier %{{.+}} allowed_direction=BACKWARD : tensor<8xf32>
// CHECK: cleave.barrier %{{.+}} allowed_direction=NONE : tensor<8xf32>
// CHECK: cleave.barrier %{{.+}} allowed_direction=BOTH : tensor<8xf32>
func.func @barrier(%x: tensor<8xf32>) -> tensor<8xf32> {
  // [barrier]
  %0 = cleave.barrier %x allowed_direction=FORWARD : tensor<8xf32>
  // [/barrier]
  %1 = cleave.barrier %0 allowed_direction=BACKWARD : tensor<8xf32>
  %2 = cleave.barrier %1 allowed_direction=NONE : tensor<8xf32>
  %3 = cleave.barrier %2 allowed_direction=BOTH : tensor<8xf32>
  return %3 : tensor<8xf32>
}

// Members of a group have one shape; the element type may differ.
// CHECK-LABEL: func.func @group
// CHECK: cleave.group %{{.+}} group_id=0 : tensor<8xf32>
// CHECK: cleave.group %{{.+}} group_id=0 : tensor<8xi32>
// CHECK: cleave.group %{{.+}} group_id=1 : tensor<4xf32>
func.func @group(%x: tensor<8xf32>, %y: tensor<8xi32>, %z: tensor<4xf32>) {
  // [group]
  cleave.group %x group_id=0 : tensor<8xf32>
  cleave.group %y group_id=0 : tensor<8xi32>
  // [/group]
  cleave.group %z group_id=1 : tensor<4xf32>
  return
}
