// Where the shardings of a model go, through each kind of op.
// RUN: cleave-opt %s --cleave-propagate-shardings --cleave-verify-placed \
// RUN:   | FileCheck %s

cleave.mesh @m = <["a"=2, "b"=2]>

// Rows and columns meet in the result, and in what it starts from.
// CHECK-LABEL: @product
// CHECK-SAME: %arg2: tensor<4x6xf32> {cleave.sharding = #cleave.sharding<@m, [{"a"}, {"b"}]>})
// CHECK-SAME: -> (tensor<4x6xf32> {cleave.sharding = #cleave.sharding<@m, [{"a"}, {"b"}]>})
// CHECK: linalg.matmul {cleave.sharding = #cleave.sharding<@m, [{"a"}, {"b"}]>}
func.func @product(
    %x: tensor<4x8xf32> {cleave.sharding = #cleave.sharding<@m, [{"a"}, {}]>},
    %w: tensor<8x6xf32> {cleave.sharding = #cleave.sharding<@m, [{}, {"b"}]>},
    %z: tensor<4x6xf32>) -> tensor<4x6xf32> {
  %y = linalg.matmul ins(%x, %w : tensor<4x8xf32>, tensor<8x6xf32>)
    outs(%z : tensor<4x6xf32>) -> tensor<4x6xf32>
  return %y : tensor<4x6xf32>
}

// A dim that is reduced cuts the other factor, and ends there.
// CHECK-LABEL: @contraction
// CHECK-SAME: %arg1: tensor<8x6xf32> {cleave.sharding = #cleave.sharding<@m, [{"a"}, {}]>}
// CHECK-SAME: -> (tensor<4x6xf32> {cleave.sharding = #cleave.sharding<@m, [{}, {}]>})
func.func @contraction(
    %x: tensor<4x8xf32> {cleave.sharding = #cleave.sharding<@m, [{}, {"a"}]>},
    %w: tensor<8x6xf32>, %z: tensor<4x6xf32>) -> tensor<4x6xf32> {
  %y = linalg.matmul ins(%x, %w : tensor<4x8xf32>, tensor<8x6xf32>)
    outs(%z : tensor<4x6xf32>) -> tensor<4x6xf32>
  return %y : tensor<4x6xf32>
}

// From the result to the argument.
// CHECK-LABEL: @backwards
// CHECK-SAME: %arg0: tensor<4xf32> {cleave.sharding = #cleave.sharding<@m, [{"a"}]>}
func.func @backwards(%x: tensor<4xf32>)
    -> (tensor<4xf32> {cleave.sharding = #cleave.sharding<@m, [{"a"}]>}) {
  %e = tensor.empty() : tensor<4xf32>
  %y = linalg.exp ins(%x : tensor<4xf32>) outs(%e : tensor<4xf32>)
    -> tensor<4xf32>
  return %y : tensor<4xf32>
}

// A closed dim takes nothing, whatever it meets.
// CHECK-LABEL: @closed_stays
// CHECK-SAME: %arg1: tensor<4xf32> {cleave.sharding = #cleave.sharding<@m, [{}]>}
func.func @closed_stays(
    %x: tensor<4xf32> {cleave.sharding = #cleave.sharding<@m, [{"a"}]>},
    %y: tensor<4xf32> {cleave.sharding = #cleave.sharding<@m, [{}]>})
    -> tensor<4xf32> {
  %e = tensor.empty() : tensor<4xf32>
  %z = linalg.add ins(%x, %y : tensor<4xf32>, tensor<4xf32>)
    outs(%e : tensor<4xf32>) -> tensor<4xf32>
  return %z : tensor<4xf32>
}

// An open dim keeps what it has and takes more.
// CHECK-LABEL: @open_extends
// CHECK-SAME: %arg0: tensor<4xf32> {cleave.sharding = #cleave.sharding<@m, [{"a", "b"}]>}
func.func @open_extends(
    %x: tensor<4xf32> {cleave.sharding = #cleave.sharding<@m, [{"a", ?}]>})
    -> (tensor<4xf32> {cleave.sharding = #cleave.sharding<@m, [{"a", "b"}]>}) {
  return %x : tensor<4xf32>
}

// p0 comes before p1.
// CHECK-LABEL: @priority
// CHECK: linalg.add {cleave.sharding = #cleave.sharding<@m, [{}, {"a"}]>}
func.func @priority(
    %x: tensor<4x4xf32> {cleave.sharding = #cleave.sharding<@m, [{"a"}p1, {?}]>},
    %y: tensor<4x4xf32> {cleave.sharding = #cleave.sharding<@m, [{?}, {"a"}p0]>})
    -> tensor<4x4xf32> {
  %e = tensor.empty() : tensor<4x4xf32>
  %z = linalg.add ins(%x, %y : tensor<4x4xf32>, tensor<4x4xf32>)
    outs(%e : tensor<4x4xf32>) -> tensor<4x4xf32>
  return %z : tensor<4x4xf32>
}

// An axis that is declared replicated cuts no dim of this value.
// CHECK-LABEL: @replicated
// CHECK-SAME: %arg0: tensor<4xf32> {cleave.sharding = #cleave.sharding<@m, [{}], replicated={"a"}>}
func.func @replicated(
    %x: tensor<4xf32>
      {cleave.sharding = #cleave.sharding<@m, [{?}], replicated={"a"}>})
    -> (tensor<4xf32> {cleave.sharding = #cleave.sharding<@m, [{"a"}]>}) {
  return %x : tensor<4xf32>
}

// Forward: the argument does not hear of what comes after the barrier.
// CHECK-LABEL: @barrier_forward
// CHECK-SAME: %arg0: tensor<4xf32> {cleave.sharding = #cleave.sharding<@m, [{}]>}
func.func @barrier_forward(%x: tensor<4xf32>)
    -> (tensor<4xf32> {cleave.sharding = #cleave.sharding<@m, [{"a"}]>}) {
  %b = cleave.barrier %x allowed_direction=FORWARD : tensor<4xf32>
  return %b : tensor<4xf32>
}

// CHECK-LABEL: @barrier_backward
// CHECK-SAME: %arg0: tensor<4xf32> {cleave.sharding = #cleave.sharding<@m, [{"a"}]>}
func.func @barrier_backward(%x: tensor<4xf32>)
    -> (tensor<4xf32> {cleave.sharding = #cleave.sharding<@m, [{"a"}]>}) {
  %b = cleave.barrier %x allowed_direction=BACKWARD : tensor<4xf32>
  return %b : tensor<4xf32>
}

// CHECK-LABEL: @barrier_none
// CHECK: cleave.barrier {{.*}} {cleave.sharding = #cleave.sharding<@m, [{}]>}
func.func @barrier_none(
    %x: tensor<4xf32> {cleave.sharding = #cleave.sharding<@m, [{"a"}]>})
    -> tensor<4xf32> {
  %b = cleave.barrier %x allowed_direction=NONE : tensor<4xf32>
  return %b : tensor<4xf32>
}

// Members of a group lie alike though no op joins them.
// CHECK-LABEL: @group
// CHECK-SAME: %arg1: tensor<4xf32> {cleave.sharding = #cleave.sharding<@m, [{"a"}]>}
func.func @group(
    %x: tensor<4xf32> {cleave.sharding = #cleave.sharding<@m, [{"a"}]>},
    %y: tensor<4xf32>) -> tensor<4xf32> {
  cleave.group %x group_id=0 : tensor<4xf32>
  cleave.group %y group_id=0 : tensor<4xf32>
  return %y : tensor<4xf32>
}

// CHECK-LABEL: @constraint
// CHECK-SAME: -> (tensor<4xf32> {cleave.sharding = #cleave.sharding<@m, [{"b"}]>})
func.func @constraint(%x: tensor<4xf32>) -> tensor<4xf32> {
  %c = cleave.constraint %x <@m, [{"b"}]> : tensor<4xf32>
  return %c : tensor<4xf32>
}

// An annotation on an op goes both ways.
// CHECK-LABEL: @on_op
// CHECK-SAME: %arg0: tensor<4xf32> {cleave.sharding = #cleave.sharding<@m, [{"b"}]>}
// CHECK-SAME: -> (tensor<4xf32> {cleave.sharding = #cleave.sharding<@m, [{"b"}]>})
func.func @on_op(%x: tensor<4xf32>) -> tensor<4xf32> {
  %e = tensor.empty() : tensor<4xf32>
  %y = linalg.exp {cleave.sharding = #cleave.sharding<@m, [{"b"}]>}
    ins(%x : tensor<4xf32>) outs(%e : tensor<4xf32>) -> tensor<4xf32>
  return %y : tensor<4xf32>
}

// Into a function and out of it.
// CHECK-LABEL: @same
// CHECK-SAME: %arg0: tensor<4xf32> {cleave.sharding = #cleave.sharding<@m, [{"a"}]>}
func.func private @same(%x: tensor<4xf32>) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}
// CHECK-LABEL: @call
// CHECK: call @same(%arg0) {cleave.sharding = #cleave.sharding<@m, [{"a"}]>}
func.func @call(
    %x: tensor<4xf32> {cleave.sharding = #cleave.sharding<@m, [{"a"}]>})
    -> tensor<4xf32> {
  %y = call @same(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %y : tensor<4xf32>
}

// What a loop carries lies alike before, in and after it.
// CHECK-LABEL: @loop
// CHECK: scf.for
// CHECK: linalg.exp {cleave.sharding = #cleave.sharding<@m, [{"a"}]>}
// CHECK: } {cleave.sharding = #cleave.sharding<@m, [{"a"}]>}
func.func @loop(
    %x: tensor<4xf32> {cleave.sharding = #cleave.sharding<@m, [{"a"}]>})
    -> tensor<4xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c5 = arith.constant 5 : index
  %e = tensor.empty() : tensor<4xf32>
  %y = scf.for %i = %c0 to %c5 step %c1 iter_args(%v = %x) -> (tensor<4xf32>) {
    %p = linalg.exp ins(%v : tensor<4xf32>) outs(%e : tensor<4xf32>)
      -> tensor<4xf32>
    scf.yield %p : tensor<4xf32>
  }
  return %y : tensor<4xf32>
}

// One weight lies one way in all entries.
func.func @prefill(
    %w: tensor<4xf32> {cleave.weight = "w",
                       cleave.sharding = #cleave.sharding<@m, [{"b"}]>})
    -> tensor<4xf32> {
  return %w : tensor<4xf32>
}
// CHECK-LABEL: @decode
// CHECK-SAME: %arg0: tensor<4xf32> {cleave.sharding = #cleave.sharding<@m, [{"b"}]>, cleave.weight = "w"}
func.func @decode(%w: tensor<4xf32> {cleave.weight = "w"}) -> tensor<4xf32> {
  return %w : tensor<4xf32>
}

// A state comes back as it went in.
// CHECK-LABEL: @state
// CHECK-SAME: -> (tensor<4xf32> {cleave.sharding = #cleave.sharding<@m, [{"b"}]>, cleave.state = "s"})
func.func @state(
    %s: tensor<4xf32> {cleave.state = "s",
                       cleave.sharding = #cleave.sharding<@m, [{"b"}]>},
    %x: tensor<4xf32> {cleave.sharding = #cleave.sharding<@m, [{"a"}]>})
    -> (tensor<4xf32> {cleave.state = "s"}) {
  return %x : tensor<4xf32>
}

// Summands that are declared stay summands.
// CHECK-LABEL: @partial
// CHECK: linalg.matmul {cleave.sharding = #cleave.sharding<@m, [{}, {}], partial=sum{"a"}>}
// CHECK: linalg.transpose {{.*}} {cleave.sharding = #cleave.sharding<@m, [{}, {}]>}
func.func @partial(
    %x: tensor<4x8xf32> {cleave.sharding = #cleave.sharding<@m, [{}, {"a"}]>},
    %w: tensor<8x6xf32>, %z: tensor<4x6xf32>) -> tensor<6x4xf32> {
  %y = linalg.matmul
    {cleave.sharding = #cleave.sharding<@m, [{}, {}], partial=sum{"a"}>}
    ins(%x, %w : tensor<4x8xf32>, tensor<8x6xf32>)
    outs(%z : tensor<4x6xf32>) -> tensor<4x6xf32>
  %e = tensor.empty() : tensor<6x4xf32>
  %t = linalg.transpose ins(%y : tensor<4x6xf32>) outs(%e : tensor<6x4xf32>)
    permutation = [1, 0]
  return %t : tensor<6x4xf32>
}

// Transposed, broadcast and reduced: each dim keeps its axis.
// CHECK-LABEL: @maps
// CHECK: linalg.transpose {{.*}} {cleave.sharding = #cleave.sharding<@m, [{"b"}, {"a"}]>}
// CHECK: linalg.broadcast {{.*}} {cleave.sharding = #cleave.sharding<@m, [{"b"}, {}, {"a"}]>}
// CHECK: linalg.reduce {{.*}} {cleave.sharding = #cleave.sharding<@m, [{}, {"a"}]>}
func.func @maps(
    %x: tensor<4x6xf32> {cleave.sharding = #cleave.sharding<@m, [{"a"}, {"b"}]>},
    %z: tensor<3x4xf32>) -> tensor<3x4xf32> {
  %e = tensor.empty() : tensor<6x4xf32>
  %f = tensor.empty() : tensor<6x3x4xf32>
  %t = linalg.transpose ins(%x : tensor<4x6xf32>) outs(%e : tensor<6x4xf32>)
    permutation = [1, 0]
  %b = linalg.broadcast ins(%t : tensor<6x4xf32>) outs(%f : tensor<6x3x4xf32>)
    dimensions = [1]
  %r = linalg.reduce { arith.addf } ins(%b : tensor<6x3x4xf32>)
    outs(%z : tensor<3x4xf32>) dimensions = [0]
  return %r : tensor<3x4xf32>
}

// Dims that a slice, a pad or a join leaves alone go through.
// CHECK-LABEL: @tensor_ops
// CHECK: tensor.extract_slice {{.*}} {cleave.sharding = #cleave.sharding<@m, [{"a"}, {}]>}
// CHECK: tensor.concat {{.*}} {cleave.sharding = #cleave.sharding<@m, [{"a"}, {}]>}
// CHECK: } {cleave.sharding = #cleave.sharding<@m, [{"a"}, {}]>} : tensor<4x4xf32> to tensor<4x5xf32>
func.func @tensor_ops(
    %x: tensor<4x6xf32> {cleave.sharding = #cleave.sharding<@m, [{"a"}, {}]>})
    -> tensor<4x5xf32> {
  %zero = arith.constant 0.0 : f32
  %s = tensor.extract_slice %x[0, 1] [4, 2] [1, 1]
    : tensor<4x6xf32> to tensor<4x2xf32>
  %c = tensor.concat dim(1) %s, %s
    : (tensor<4x2xf32>, tensor<4x2xf32>) -> tensor<4x4xf32>
  %p = tensor.pad %c low[0, 1] high[0, 0] {
  ^bb0(%i: index, %j: index):
    tensor.yield %zero : f32
  } : tensor<4x4xf32> to tensor<4x5xf32>
  return %p : tensor<4x5xf32>
}

// A dim that splits: the axis goes to the major part; both axes, one to each.
// CHECK-LABEL: @reshapes
// CHECK: tensor.expand_shape {{.*}} {cleave.sharding = #cleave.sharding<@m, [{"a"}, {"b"}]>}
// CHECK: tensor.collapse_shape {{.*}} {cleave.sharding = #cleave.sharding<@m, [{"a", "b"}]>}
func.func @reshapes(
    %x: tensor<8xf32> {cleave.sharding = #cleave.sharding<@m, [{"a", "b"}]>})
    -> tensor<8xf32> {
  %y = tensor.expand_shape %x [[0, 1]] output_shape [2, 4]
    : tensor<8xf32> into tensor<2x4xf32>
  %z = tensor.collapse_shape %y [[0, 1]] : tensor<2x4xf32> into tensor<8xf32>
  return %z : tensor<8xf32>
}

// Each product alone would rather gather its weight; x moves once for both.
// CHECK-LABEL: @moved_once
// CHECK: %[[X:.+]] = cleave.constraint %arg0 <@m, [{}, {}]> {because = "moved once for its 2 readers", cleave.sharding = #cleave.sharding<@m, [{}, {}]>} : tensor<4x4xf32>
// CHECK: linalg.matmul {cleave.sharding = #cleave.sharding<@m, [{}, {"a"}]>} ins(%[[X]], %arg1 :
// CHECK: linalg.matmul {cleave.sharding = #cleave.sharding<@m, [{}, {"a"}]>} ins(%[[X]], %arg2 :
// CHECK: linalg.add {cleave.sharding = #cleave.sharding<@m, [{"a"}, {}]>} ins(%arg0, %arg0 :
func.func @moved_once(
    %x: tensor<4x4xf32> {cleave.sharding = #cleave.sharding<@m, [{"a"}, {}]>},
    %v: tensor<4x4xf32> {cleave.sharding = #cleave.sharding<@m, [{}, {"a"}]>},
    %w: tensor<4x4xf32> {cleave.sharding = #cleave.sharding<@m, [{}, {"a"}]>},
    %u: tensor<4x4xf32> {cleave.sharding = #cleave.sharding<@m, [{"a"}, {}]>},
    %z: tensor<4x4xf32> {cleave.sharding = #cleave.sharding<@m, [{}, {}]>})
    -> (tensor<4x4xf32>, tensor<4x4xf32>
        {cleave.sharding = #cleave.sharding<@m, [{"a"}, {}]>}) {
  %e = tensor.empty() : tensor<4x4xf32>
  %p = linalg.matmul ins(%x, %v : tensor<4x4xf32>, tensor<4x4xf32>)
    outs(%z : tensor<4x4xf32>) -> tensor<4x4xf32>
  %q = linalg.matmul ins(%x, %w : tensor<4x4xf32>, tensor<4x4xf32>)
    outs(%z : tensor<4x4xf32>) -> tensor<4x4xf32>
  %g = linalg.mul ins(%p, %q : tensor<4x4xf32>, tensor<4x4xf32>)
    outs(%e : tensor<4x4xf32>) -> tensor<4x4xf32>
  %y = linalg.matmul ins(%g, %u : tensor<4x4xf32>, tensor<4x4xf32>)
    outs(%z : tensor<4x4xf32>) -> tensor<4x4xf32>
  %s = linalg.add ins(%x, %x : tensor<4x4xf32>, tensor<4x4xf32>)
    outs(%e : tensor<4x4xf32>) -> tensor<4x4xf32>
  return %s, %y : tensor<4x4xf32>, tensor<4x4xf32>
}

// What the loop carries are summands; behind it they are reduced.
// CHECK-LABEL: @loop_carries_summands
// CHECK: %[[LOOP:.+]] = scf.for {{.*}} iter_args(%[[ACC:.+]] = %arg2)
// CHECK: linalg.matmul {cleave.sharding = #cleave.sharding<@m, [{}, {}], partial=sum{"a"}>} {{.*}} outs(%[[ACC]] :
// CHECK: } {cleave.sharding = #cleave.sharding<@m, [{}, {}], partial=sum{"a"}>}
// CHECK-NEXT: %[[SUM:.+]] = cleave.constraint %[[LOOP]] <@m, [{}, {}]> {because = "reduced once, behind the loop", cleave.sharding = #cleave.sharding<@m, [{}, {}]>} : tensor<4x6xf32>
// CHECK: return %[[SUM]]
func.func @loop_carries_summands(
    %x: tensor<4x8xf32> {cleave.sharding = #cleave.sharding<@m, [{}, {"a"}]>},
    %w: tensor<8x6xf32> {cleave.sharding = #cleave.sharding<@m, [{"a"}, {}]>},
    %z: tensor<4x6xf32> {cleave.sharding = #cleave.sharding<@m, [{}, {}]>})
    -> tensor<4x6xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %sum = scf.for %i = %c0 to %c3 step %c1 iter_args(%acc = %z)
      -> (tensor<4x6xf32>) {
    %y = linalg.matmul ins(%x, %w : tensor<4x8xf32>, tensor<8x6xf32>)
      outs(%acc : tensor<4x6xf32>) -> tensor<4x6xf32>
    scf.yield %y : tensor<4x6xf32>
  }
  return %sum : tensor<4x6xf32>
}

// Declared: the loop gives summands, and what turns them reads those.
// CHECK-LABEL: @loop_declared_partial
// CHECK: } {cleave.sharding = #cleave.sharding<@m, [{}, {}], partial=sum{"a"}>}
// CHECK-NOT: cleave.constraint
// CHECK: linalg.transpose
func.func @loop_declared_partial(
    %x: tensor<4x8xf32> {cleave.sharding = #cleave.sharding<@m, [{}, {"a"}]>},
    %w: tensor<8x6xf32> {cleave.sharding = #cleave.sharding<@m, [{"a"}, {}]>},
    %z: tensor<4x6xf32> {cleave.sharding = #cleave.sharding<@m, [{}, {}]>},
    %e: tensor<6x4xf32>) -> tensor<6x4xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %sum = scf.for %i = %c0 to %c1 step %c1 iter_args(%acc = %z)
      -> (tensor<4x6xf32>) {
    %y = linalg.matmul ins(%x, %w : tensor<4x8xf32>, tensor<8x6xf32>)
      outs(%acc : tensor<4x6xf32>) -> tensor<4x6xf32>
    scf.yield %y : tensor<4x6xf32>
  } {cleave.sharding = #cleave.sharding<@m, [{}, {}], partial=sum{"a"}>}
  %r = linalg.transpose ins(%sum : tensor<4x6xf32>)
    outs(%e : tensor<6x4xf32>) permutation = [1, 0]
  return %r : tensor<6x4xf32>
}
