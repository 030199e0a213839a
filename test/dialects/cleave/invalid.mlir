// Whole messages of the parser and the verifiers, in the order of the
// constraints in the .td files.
// RUN: cleave-opt %s -split-input-file -verify-diagnostics --allow-unregistered-dialect

//===----------------------------------------------------------------------===//
// #cleave.mesh
//===----------------------------------------------------------------------===//

// C1: an axis without a name.
// expected-error@+1 {{mesh axis has an empty name}}
cleave.mesh @m = <[""=2]>

// -----

// C1: a name twice.
// expected-error@+1 {{mesh axis 'a' occurs twice; give each axis its own name}}
cleave.mesh @m = <["a"=2, "b"=3, "a"=2]>

// -----

// C2: size 0.
// expected-error@+1 {{mesh axis 'a' has size 0, but an axis has at least 1}}
cleave.mesh @m = <["a"=0]>

// -----

// C2: a negative size.
// expected-error@+1 {{mesh axis 'b' has size -4, but an axis has at least 1}}
cleave.mesh @m = <["a"=2, "b"=-4]>

// -----

// C2: one axis with too many ranks.
// expected-error@+1 {{mesh has more than 2147483647 ranks at axis 'a'}}
cleave.mesh @m = <["a"=2147483648]>

// -----

// C2: too many ranks in all; the product would overflow 64 bits as well.
// expected-error@+1 {{mesh has more than 2147483647 ranks at axis 'b'}}
cleave.mesh @m = <["a"=2147483647, "b"=2147483647, "c"=2147483647, "d"=9]>

// -----

// C3: as many entries as ranks.
// expected-error@+1 {{mesh has 4 ranks, but 'ranks' lists 3}}
cleave.mesh @m = <["a"=2, "b"=2], ranks=[0, 1, 2]>

// -----

// C3: each one a rank.
// expected-error@+1 {{'ranks' lists 4, but the mesh has ranks 0 to 3}}
cleave.mesh @m = <["a"=2, "b"=2], ranks=[0, 1, 4, 2]>

// -----

// C3: none twice.
// expected-error@+1 {{'ranks' lists 2 twice}}
cleave.mesh @m = <["a"=2, "b"=2], ranks=[0, 2, 1, 2]>

// -----

//===----------------------------------------------------------------------===//
// #cleave.sharding: text
//===----------------------------------------------------------------------===//

// A sub-axis has a size.
func.func private @zero_sub_axis(
    // expected-error@+1 {{sub-axis size must not be 0}}
    tensor<8xf32> {cleave.sharding = #cleave.sharding<@m, [{"a":(1)0}]>})

// -----

// Nothing follows the '?'.
func.func private @question_mark_first(
    // expected-error@+1 {{'?' must stand last in a dim}}
    tensor<8xf32> {cleave.sharding = #cleave.sharding<@m, [{?, "a"}]>})

// -----

// A priority is 'p' and a number that fits.
func.func private @priority_text(
    // expected-error@+1 {{expected a priority such as 'p0' or 'p1' after a dim}}
    tensor<8xf32> {cleave.sharding = #cleave.sharding<@m, [{"a"}px]>})

// -----

func.func private @priority_too_large(
    // expected-error@+1 {{expected a priority such as 'p0' or 'p1' after a dim}}
    tensor<8xf32> {cleave.sharding = #cleave.sharding<@m, [{"a"}p4294967296]>})

// -----

func.func private @priority_of_nothing(
    // expected-error@+1 {{a closed dim without axes cannot have a priority; nothing would be propagated}}
    tensor<8xf32> {cleave.sharding = #cleave.sharding<@m, [{}p1]>})

// -----

func.func private @unknown_kind(
    // expected-error@+1 {{unknown reduction kind 'mean'; known are sum, prod, max, min, umax, umin, maxnum, minnum, and, or, xor}}
    tensor<8xf32> {cleave.sharding = #cleave.sharding<@m, [{}], partial=mean{"a"}>})

// -----

func.func private @unknown_part(
    // expected-error@+1 {{expected 'replicated' or 'partial' once, got 'reduced'}}
    tensor<8xf32> {cleave.sharding = #cleave.sharding<@m, [{}], reduced={"a"}>})

// -----

func.func private @part_twice(
    // expected-error@+1 {{expected 'replicated' or 'partial' once, got 'replicated'}}
    tensor<8xf32> {cleave.sharding = #cleave.sharding<@m, [{}], replicated={"a"}, replicated={"b"}>})

// -----

//===----------------------------------------------------------------------===//
// #cleave.sharding: constraints
//===----------------------------------------------------------------------===//

// C1: no mesh at all.
// expected-error@+1 {{'func.func' op unknown mesh 'm' in the sharding of argument 0; declare it with cleave.mesh}}
func.func private @no_mesh(
    tensor<8xf32> {cleave.sharding = #cleave.sharding<@m, [{}]>})

// -----

// C1: another mesh; the closest name comes first.
cleave.mesh @cluster = <["a"=2]>
cleave.mesh @pod = <["a"=2]>
// expected-error@+1 {{'func.func' op unknown mesh 'pot' in the sharding of argument 0; known are 'pod', 'cluster'}}
func.func private @other_mesh(
    tensor<8xf32> {cleave.sharding = #cleave.sharding<@pot, [{}]>})

// -----

// C2: the closest axis comes first.
cleave.mesh @pod = <["batch"=2, "tensor"=4, "tp"=2]>
// expected-error@+1 {{'func.func' op mesh 'pod' has no axis 'tensors'; it has 'tensor', 'tp', 'batch'}}
func.func private @unknown_axis(
    tensor<8xf32> {cleave.sharding = #cleave.sharding<@pod, [{"tensors"}]>})

// -----

// C2: a mesh without axes.
cleave.mesh @point = <[]>
// expected-error@+1 {{'func.func' op mesh 'point' has no axis 'a'; it has none}}
func.func private @axis_of_point(
    tensor<8xf32> {cleave.sharding = #cleave.sharding<@point, [{"a"}]>})

// -----

// C2: axes in 'replicated' and 'partial' are looked up as well.
cleave.mesh @m = <["a"=2]>
// expected-error@+1 {{'func.func' op mesh 'm' has no axis 'b'; it has 'a'}}
func.func private @unknown_replicated(
    tensor<8xf32> {cleave.sharding = #cleave.sharding<@m, [{}], replicated={"b"}>})

// -----

cleave.mesh @m = <["a"=2]>
// expected-error@+1 {{'func.func' op mesh 'm' has no axis 'c'; it has 'a'}}
func.func private @unknown_partial(
    tensor<8xf32> {cleave.sharding = #cleave.sharding<@m, [{}], partial=sum{"c"}>})

// -----

// C3: 2 * 4 = 8 does not divide 12.
cleave.mesh @m = <["a"=12]>
// expected-error@+1 {{'func.func' op sub-axis 'a':(2)4 does not divide the axis, which has size 12; 2 * 4 must divide 12}}
func.func private @sub_axis_product(
    tensor<8xf32> {cleave.sharding = #cleave.sharding<@m, [{"a":(2)4}]>})

// -----

// C3: pre starts at 1.
cleave.mesh @m = <["a"=12]>
// expected-error@+1 {{'func.func' op sub-axis 'a':(0)4 does not divide the axis, which has size 12; 0 * 4 must divide 12}}
func.func private @sub_axis_pre(
    tensor<8xf32> {cleave.sharding = #cleave.sharding<@m, [{"a":(0)4}]>})

// -----

// C3: a sub-axis of size 1 says nothing.
cleave.mesh @m = <["a"=12]>
// expected-error@+1 {{'func.func' op sub-axis 'a':(4)1 has size 1, but a sub-axis has at least 2; drop it}}
func.func private @sub_axis_of_one(
    tensor<8xf32> {cleave.sharding = #cleave.sharding<@m, [{"a":(4)1}]>})

// -----

// C3: numbers whose product overflows 64 bits.
cleave.mesh @m = <["a"=12]>
// expected-error@+1 {{'func.func' op sub-axis 'a':(9223372036854775807)9223372036854775807 does not divide the axis, which has size 12; 9223372036854775807 * 9223372036854775807 must divide 12}}
func.func private @sub_axis_overflow(
    tensor<8xf32> {cleave.sharding = #cleave.sharding<@m, [{"a":(9223372036854775807)9223372036854775807}]>})

// -----

// C4: within a dim.
cleave.mesh @m = <["a"=2, "b"=2]>
// expected-error@+1 {{'func.func' op axis 'a' is used twice; a sharding or a group names an axis only once}}
func.func private @twice_in_dim(
    tensor<8xf32> {cleave.sharding = #cleave.sharding<@m, [{"a", "b", "a"}]>})

// -----

// C4: in two dims.
cleave.mesh @m = <["a"=2]>
// expected-error@+1 {{'func.func' op axis 'a' is used twice; a sharding or a group names an axis only once}}
func.func private @twice_in_dims(
    tensor<8x8xf32> {cleave.sharding = #cleave.sharding<@m, [{"a"}, {"a"}]>})

// -----

// C4: in dims and replicated.
cleave.mesh @m = <["a"=2]>
// expected-error@+1 {{'func.func' op axis 'a' is used twice; a sharding or a group names an axis only once}}
func.func private @dims_and_replicated(
    tensor<8xf32> {cleave.sharding = #cleave.sharding<@m, [{"a"}], replicated={"a"}>})

// -----

// C4: in dims and partial.
cleave.mesh @m = <["a"=2]>
// expected-error@+1 {{'func.func' op axis 'a' is used twice; a sharding or a group names an axis only once}}
func.func private @dims_and_partial(
    tensor<8xf32> {cleave.sharding = #cleave.sharding<@m, [{"a"}], partial=sum{"a"}>})

// -----

// C4: in replicated and partial.
cleave.mesh @m = <["a"=2]>
// expected-error@+1 {{'func.func' op axis 'a' is used twice; a sharding or a group names an axis only once}}
func.func private @replicated_and_partial(
    tensor<8xf32> {cleave.sharding = #cleave.sharding<@m, [{}], replicated={"a"}, partial=sum{"a"}>})

// -----

// C4: sub-axes that share a digit.
cleave.mesh @m = <["a"=8]>
// expected-error@+1 {{'func.func' op axis 'a' is used twice; a sharding or a group names an axis only once}}
func.func private @overlapping_sub_axes(
    tensor<8x8xf32> {cleave.sharding = #cleave.sharding<@m, [{"a":(1)4}, {"a":(2)2}]>})

// -----

// C4: axes of size 1 cut nothing, but are named only once either.
cleave.mesh @m = <["a"=1]>
// expected-error@+1 {{'func.func' op axis 'a' is used twice; a sharding or a group names an axis only once}}
func.func private @unit_axis_twice(
    tensor<8x8xf32> {cleave.sharding = #cleave.sharding<@m, [{"a"}, {"a"}]>})

// -----

// C5: fewer entries than dims.
cleave.mesh @m = <["a"=2]>
// expected-error@+1 {{'func.func' op sharding of argument 0 has 1 dims, but the tensor 'tensor<8x8xf32>' has 2}}
func.func private @too_few_dims(
    tensor<8x8xf32> {cleave.sharding = #cleave.sharding<@m, [{"a"}]>})

// -----

// C5: more entries than dims.
cleave.mesh @m = <["a"=2]>
// expected-error@+1 {{'func.func' op sharding of argument 0 has 2 dims, but the tensor 'tensor<8xf32>' has 1}}
func.func private @too_many_dims(
    tensor<8xf32> {cleave.sharding = #cleave.sharding<@m, [{}, {"a"}]>})

// -----

// C6: a dynamic dim.
cleave.mesh @m = <["a"=2]>
// expected-error@+1 {{'func.func' op argument 1 has the dynamic type 'tensor<?x8xf32>'; only static shapes can be cut: give each dim a size}}
func.func private @dynamic(tensor<8xf32>,
    tensor<?x8xf32> {cleave.sharding = #cleave.sharding<@m, [{"a"}, {}]>})

// -----

// C7: floats have no bits to join.
cleave.mesh @m = <["a"=2]>
// expected-error@+1 {{'func.func' op argument 0 reduces 'f32' with 'and', which is for integers}}
func.func private @partial_and(
    tensor<8xf32> {cleave.sharding = #cleave.sharding<@m, [{}], partial=and{"a"}>})

// -----

// C7: integers have no NaN to skip.
cleave.mesh @m = <["a"=2]>
// expected-error@+1 {{'func.func' op argument 0 reduces 'i32' with 'maxnum', which is for floats}}
func.func private @partial_maxnum(
    tensor<8xi32> {cleave.sharding = #cleave.sharding<@m, [{}], partial=maxnum{"a"}>})

// -----

//===----------------------------------------------------------------------===//
// Types without a sharding
//===----------------------------------------------------------------------===//

cleave.mesh @m = <["a"=2]>
// expected-error@+1 {{'func.func' op argument 0 has type 'tuple<tensor<8xf32>, tensor<8xf32>>', but only a ranked tensor can have a sharding}}
func.func private @tuple(tuple<tensor<8xf32>, tensor<8xf32>>
    {cleave.sharding = #cleave.sharding<@m, [{"a"}]>})

// -----

cleave.mesh @m = <["a"=2]>
// expected-error@+1 {{'func.func' op argument 0 has type 'tensor<*xf32>', but only a ranked tensor can have a sharding}}
func.func private @unranked(
    tensor<*xf32> {cleave.sharding = #cleave.sharding<@m, [{"a"}]>})

// -----

cleave.mesh @m = <["a"=2]>
// expected-error@+1 {{'func.func' op result 0 has type 'memref<8xf32>', but only a ranked tensor can have a sharding}}
func.func private @memref() -> (
    memref<8xf32> {cleave.sharding = #cleave.sharding<@m, [{"a"}]>})

// -----

cleave.mesh @m = <["a"=2]>
func.func @index(%i: index) {
  // expected-error@+1 {{'arith.addi' op result 0 has type 'index', but only a ranked tensor can have a sharding}}
  %0 = arith.addi %i, %i {cleave.sharding = #cleave.sharding<@m, []>} : index
  return
}

// -----

//===----------------------------------------------------------------------===//
// Discardable attributes
//===----------------------------------------------------------------------===//

// C1: one entry per result.
cleave.mesh @m = <["a"=2]>
func.func @too_many_entries(%x: tensor<8xf32>) {
  // expected-error@+1 {{'arith.addf' op has 1 results, but 'cleave.sharding' lists 2}}
  %0 = arith.addf %x, %x {cleave.sharding = [#cleave.sharding<@m, [{}]>, #cleave.sharding<@m, [{}]>]} : tensor<8xf32>
  return
}

// -----

// C1: an op without results has nothing to cut.
cleave.mesh @m = <["a"=2]>
func.func @no_results() {
  // expected-error@+1 {{'func.return' op has 0 results, but 'cleave.sharding' lists 1}}
  return {cleave.sharding = #cleave.sharding<@m, [{}]>}
}

// -----

// C1: a sharding, not its text.
func.func @text(%x: tensor<8xf32>) {
  // expected-error@+1 {{'arith.addf' op 'cleave.sharding' must be a #cleave.sharding or a list of them, got "a"}}
  %0 = arith.addf %x, %x {cleave.sharding = "a"} : tensor<8xf32>
  return
}

// -----

// C1: 'unit' needs others beside it.
func.func @unit_alone(%x: tensor<8xf32>) {
  // expected-error@+1 {{'arith.addf' op 'cleave.sharding' must be a #cleave.sharding or a list of them, got unit}}
  %0 = arith.addf %x, %x {cleave.sharding} : tensor<8xf32>
  return
}

// -----

// C1: likewise on arguments.
// expected-error@+1 {{'func.func' op 'cleave.sharding' of argument 0 must be a #cleave.sharding, got 3 : i64}}
func.func private @number(tensor<8xf32> {cleave.sharding = 3})

// -----

// C2: a name in quotes.
// expected-error@+1 {{'func.func' op 'cleave.weight' of argument 0 must be a name in quotes, got 3 : i64}}
func.func private @weight_number(tensor<8xf32> {cleave.weight = 3})

// -----

// C2: that is not empty.
// expected-error@+1 {{'func.func' op 'cleave.state' of argument 0 must be a name in quotes, got ""}}
func.func private @state_empty(tensor<8xf32> {cleave.state = ""})

// -----

// C2: either weight or state.
// expected-error@+1 {{'func.func' op argument 0 has both 'cleave.weight' and 'cleave.state'; a weight stays as it is, state is replaced: keep one}}
func.func private @both(tensor<8xf32> {cleave.state = "s", cleave.weight = "w"})

// -----

// C2: results are not weights.
// expected-error@+1 {{'func.func' op result 0 has the unknown attribute 'cleave.weight'; known are 'cleave.sharding' and 'cleave.state'}}
func.func private @weight_result() -> (tensor<8xf32> {cleave.weight = "w"})

// -----

// C3: state keeps its type.
// expected-error@+1 {{'func.func' op result 0 replaces the state "s" and has type 'tensor<4xf32>', but argument 0 has type 'tensor<8xf32>'; state keeps its type between calls}}
func.func private @state_type(tensor<8xf32> {cleave.state = "s"})
    -> (tensor<4xf32> {cleave.state = "s"})

// -----

// C4: on ops.
func.func @unknown_on_op(%x: tensor<8xf32>) {
  // expected-error@+1 {{'arith.addf' op has the unknown attribute 'cleave.shardings'; on ops only 'cleave.sharding' is known}}
  %0 = arith.addf %x, %x {cleave.shardings = 3} : tensor<8xf32>
  return
}

// -----

// C4: on arguments.
// expected-error@+1 {{'func.func' op argument 0 has the unknown attribute 'cleave.weights'; known are 'cleave.sharding', 'cleave.weight' and 'cleave.state'}}
func.func private @unknown_on_argument(tensor<8xf32> {cleave.weights = "w"})

// -----

// C4: the type of the whole tensor is a tensor type.
// expected-error@+1 {{'func.func' op 'cleave.global_type' of argument 0 must be a tensor type, got f32}}
func.func private @global_type(tensor<8xf32> {cleave.global_type = f32})

// -----

//===----------------------------------------------------------------------===//
// Ops
//===----------------------------------------------------------------------===//

// cleave.constraint, C1.
cleave.mesh @m = <["a"=2]>
func.func @constraint(%x: tensor<8xf32>) {
  // expected-error@+1 {{'cleave.constraint' op sharding of the value has 2 dims, but the tensor 'tensor<8xf32>' has 1}}
  %0 = cleave.constraint %x <@m, [{"a"}, {}]> : tensor<8xf32>
  return
}

// -----

// cleave.barrier knows four directions.
func.func @barrier(%x: tensor<8xf32>) {
  // expected-error@+1 {{custom op 'cleave.barrier' expected string or keyword containing one of the following enum values for attribute 'allowed_direction' [NONE, FORWARD, BACKWARD, BOTH]}}
  %0 = cleave.barrier %x allowed_direction=SIDEWAYS : tensor<8xf32>
  return
}

// -----

// cleave.group, C1.
func.func @group_id(%x: tensor<8xf32>) {
  // expected-error@+1 {{'cleave.group' op has the group id -1, but ids start at 0}}
  cleave.group %x group_id=-1 : tensor<8xf32>
  return
}

// -----

// cleave.group, C2.
func.func @group_shape(%x: tensor<8xf32>, %y: tensor<4xf32>) {
  // expected-note@+1 {{first member of the group}}
  cleave.group %x group_id=0 : tensor<8xf32>
  // expected-error@+1 {{'cleave.group' op puts 'tensor<4xf32>' into group 0, whose first member has another shape: 'tensor<8xf32>'}}
  cleave.group %y group_id=0 : tensor<4xf32>
  return
}

// -----

// Users of a mesh that lacks its attribute are not looked at.
func.func private @unfinished_mesh(
    tensor<8xf32> {cleave.sharding = #cleave.sharding<@m, [{"a"}]>})
// expected-error@+1 {{'cleave.mesh' op requires attribute 'mesh'}}
"cleave.mesh"() <{sym_name = "m"}> : () -> ()
