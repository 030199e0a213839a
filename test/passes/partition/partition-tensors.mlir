// What one rank computes, for each kind of op.
// RUN: cleave-opt %s --cleave-propagate-pipeline --cleave-partition-tensors \
// RUN:   --cleave-verify-local | FileCheck %s

cleave.mesh @m = <["a"=2]>
#id = affine_map<(i) -> (i)>

// Blocks instead of tensors; the whole types are kept beside them.
// CHECK-LABEL: @product
// CHECK-SAME: %[[X:.+]]: tensor<2x8xf32> {cleave.global_type = tensor<4x8xf32>, cleave.sharding = #cleave.sharding<@m, [{"a"}, {}]>}
// CHECK-NEXT: %[[Y:.+]] = linalg.matmul ins(%[[X]], %arg1 : tensor<2x8xf32>, tensor<8x6xf32>) outs(%arg2 : tensor<2x6xf32>)
// CHECK-NEXT: return %[[Y]] : tensor<2x6xf32>
func.func @product(
    %x: tensor<4x8xf32> {cleave.sharding = #cleave.sharding<@m, [{"a"}, {}]>},
    %w: tensor<8x6xf32>, %z: tensor<4x6xf32>) -> tensor<4x6xf32> {
  %y = linalg.matmul ins(%x, %w : tensor<4x8xf32>, tensor<8x6xf32>)
    outs(%z : tensor<4x6xf32>) -> tensor<4x6xf32>
  return %y : tensor<4x6xf32>
}

// Each rank has a summand; what the sum starts from counts at the first only.
// CHECK-LABEL: @contraction
// CHECK: %[[AT:.+]] = comm.coordinate over @m ["a"]
// CHECK: %[[FIRST:.+]] = arith.cmpi eq, %[[AT]]
// CHECK: %[[INIT:.+]] = linalg.generic {{.*}} ins(%arg2
// CHECK: arith.select %[[FIRST]], %{{.+}}, %{{.+}} : f32
// CHECK: %[[PART:.+]] = linalg.matmul {{.*}} outs(%[[INIT]] :
// CHECK-NEXT: %[[SUM:.+]] = comm.all_reduce sum %[[PART]] over @m ["a"] cause = <op = "linalg.matmul", value = "{{.+}}", why = "a dim that it reduces is cut over \22a\22", remedy = "leave that dim whole over \22a\22"> : tensor<4x6xf32>
// CHECK-NEXT: return %[[SUM]]
func.func @contraction(
    %x: tensor<4x8xf32> {cleave.sharding = #cleave.sharding<@m, [{}, {"a"}]>},
    %w: tensor<8x6xf32>, %z: tensor<4x6xf32>) -> tensor<4x6xf32> {
  %y = linalg.matmul ins(%x, %w : tensor<4x8xf32>, tensor<8x6xf32>)
    outs(%z : tensor<4x6xf32>) -> tensor<4x6xf32>
  return %y : tensor<4x6xf32>
}

// The kind of the reduction is the body's, and so is what changes nothing.
// CHECK-LABEL: @product_of_elements
// CHECK: %[[ONE:.+]] = arith.constant 1 : i32
// CHECK: arith.select %{{.+}}, %{{.+}}, %[[ONE]] : i32
// CHECK: comm.all_reduce prod
func.func @product_of_elements(
    %x: tensor<4xi32> {cleave.sharding = #cleave.sharding<@m, [{"a"}]>},
    %z: tensor<i32>) -> tensor<i32> {
  %y = linalg.reduce { arith.muli } ins(%x : tensor<4xi32>)
    outs(%z : tensor<i32>) dimensions = [0]
  return %y : tensor<i32>
}

// A combiner of no known kind keeps its order: the dim is gathered.
// CHECK-LABEL: @unknown_combiner
// CHECK: comm.all_gather %arg0 dim 0 over @m ["a"]
// CHECK-NOT: comm.all_reduce
func.func @unknown_combiner(
    %x: tensor<4xf32> {cleave.sharding = #cleave.sharding<@m, [{"a"}]>},
    %z: tensor<f32>) -> tensor<f32> {
  %y = linalg.reduce ins(%x : tensor<4xf32>) outs(%z : tensor<f32>)
    dimensions = [0] (%in: f32, %acc: f32) {
      %next = arith.subf %in, %acc : f32
      linalg.yield %next : f32
    }
  return %y : tensor<f32>
}

// A rank's index is of the whole dim.
// CHECK-LABEL: @index
// CHECK: %[[AT:.+]] = comm.coordinate over @m ["a"]
// CHECK: %[[BASE:.+]] = arith.muli %[[AT]], %c2
// CHECK: %[[LOCAL:.+]] = linalg.index 0
// CHECK: %[[I:.+]] = arith.addi %[[LOCAL]], %[[BASE]] : index
// CHECK: arith.index_cast %[[I]]
func.func @index(
    %z: tensor<4xi32> {cleave.sharding = #cleave.sharding<@m, [{"a"}]>})
    -> tensor<4xi32> {
  %y = linalg.generic {indexing_maps = [#id], iterator_types = ["parallel"]}
      outs(%z : tensor<4xi32>) {
  ^bb0(%o: i32):
    %i = linalg.index 0 : index
    %c = arith.index_cast %i : index to i32
    linalg.yield %c : i32
  } -> tensor<4xi32>
  return %y : tensor<4xi32>
}

// Five over two: three and two. The last element of the second rank is padding,
// which a maximum must not see.
// CHECK-LABEL: @uneven_reduction
// CHECK-SAME: tensor<3xf32> {cleave.global_type = tensor<5xf32>
// CHECK: %[[BASE:.+]] = arith.muli %{{.+}}, %c3
// CHECK: ^bb0(%[[IN:.+]]: f32, %[[ACC:.+]]: f32):
// CHECK: %[[MAX:.+]] = arith.maximumf
// CHECK: %[[I:.+]] = arith.addi %{{.+}}, %[[BASE]]
// CHECK: %[[INSIDE:.+]] = arith.cmpi ult, %[[I]], %c5
// CHECK: %[[NEXT:.+]] = arith.select %[[INSIDE]], %[[MAX]], %[[ACC]]
// CHECK: linalg.yield %[[NEXT]]
// CHECK: comm.all_reduce max
func.func @uneven_reduction(
    %x: tensor<5xf32> {cleave.sharding = #cleave.sharding<@m, [{"a"}]>},
    %z: tensor<f32>) -> tensor<f32> {
  %y = linalg.reduce { arith.maximumf } ins(%x : tensor<5xf32>)
    outs(%z : tensor<f32>) dimensions = [0]
  return %y : tensor<f32>
}

// A product over the uneven dim leaves the padding out as well.
// CHECK-LABEL: @uneven_contraction
// CHECK: arith.cmpi ult, %{{.+}}, %c5
// CHECK: arith.select
// CHECK: comm.all_reduce sum
func.func @uneven_contraction(
    %x: tensor<2x5xf32> {cleave.sharding = #cleave.sharding<@m, [{}, {"a"}]>},
    %w: tensor<5x2xf32> {cleave.sharding = #cleave.sharding<@m, [{"a"}, {}]>},
    %z: tensor<2x2xf32>) -> tensor<2x2xf32> {
  %y = linalg.matmul ins(%x, %w : tensor<2x5xf32>, tensor<5x2xf32>)
    outs(%z : tensor<2x2xf32>) -> tensor<2x2xf32>
  return %y : tensor<2x2xf32>
}

// Padding may hold anything where nobody looks: no mask.
// CHECK-LABEL: @uneven_elementwise
// CHECK-NOT: arith.select
// CHECK: linalg.exp
// CHECK-NEXT: return
func.func @uneven_elementwise(
    %x: tensor<5xf32> {cleave.sharding = #cleave.sharding<@m, [{"a"}]>})
    -> tensor<5xf32> {
  %e = tensor.empty() : tensor<5xf32>
  %z = linalg.exp ins(%x : tensor<5xf32>) outs(%e : tensor<5xf32>)
    -> tensor<5xf32>
  return %z : tensor<5xf32>
}

// But an integer division traps: padding is divided by one.
// CHECK-LABEL: @uneven_division
// CHECK: %[[INSIDE:.+]] = arith.cmpi ult
// CHECK: %[[BY:.+]] = arith.select %[[INSIDE]], %{{.+}}, %c1_i32 : i32
// CHECK: arith.divsi %{{.+}}, %[[BY]]
func.func @uneven_division(
    %x: tensor<5xi32> {cleave.sharding = #cleave.sharding<@m, [{"a"}]>},
    %y: tensor<5xi32>) -> tensor<5xi32> {
  %e = tensor.empty() : tensor<5xi32>
  %z = linalg.div ins(%x, %y : tensor<5xi32>, tensor<5xi32>)
    outs(%e : tensor<5xi32>) -> tensor<5xi32>
  return %z : tensor<5xi32>
}

// A table larger than what is read stays cut: each rank reads its own rows,
// zero for others', and the rows are added.
// CHECK-LABEL: @lookup
// CHECK-NOT: comm.all_gather
// CHECK: tensor.extract %arg1[{{.+}}] : tensor<32x2xf32>
// CHECK: arith.select
// CHECK: comm.all_reduce sum
func.func @lookup(%tokens: tensor<3xi32>,
    %table: tensor<64x2xf32>
      {cleave.sharding = #cleave.sharding<@m, [{"a"}, {}]>})
    -> tensor<3x2xf32> {
  %e = tensor.empty() : tensor<3x2xf32>
  %y = linalg.generic {
      indexing_maps = [affine_map<(i, j) -> (i)>, affine_map<(i, j) -> (i, j)>],
      iterator_types = ["parallel", "parallel"]}
      ins(%tokens : tensor<3xi32>) outs(%e : tensor<3x2xf32>) {
    ^bb0(%token: i32, %old: f32):
      %row = arith.index_cast %token : i32 to index
      %column = linalg.index 1 : index
      %value = tensor.extract %table[%row, %column] : tensor<64x2xf32>
      linalg.yield %value : f32
  } -> tensor<3x2xf32>
  return %y : tensor<3x2xf32>
}

// Elements that differ are cut by each rank; equal ones are made small.
// CHECK-LABEL: @constants
// CHECK: %[[ALL:.+]] = arith.constant dense<[1.0{{.*}}, 2.0{{.*}}]> : tensor<2xf32>
// CHECK: comm.slice %[[ALL]] dim 0 over @m ["a"]
// CHECK: arith.constant dense<1.0{{.*}}> : tensor<3xf32>
func.func @constants()
    -> (tensor<2xf32> {cleave.sharding = #cleave.sharding<@m, [{"a"}]>},
        tensor<6xf32> {cleave.sharding = #cleave.sharding<@m, [{"a"}]>}) {
  %c = arith.constant dense<[1.0, 2.0]> : tensor<2xf32>
  %s = arith.constant dense<1.0> : tensor<6xf32>
  return %c, %s : tensor<2xf32>, tensor<6xf32>
}

// A slice along a whole dim is a slice of the block, wherever it starts.
// CHECK-LABEL: @slice_of_whole_dim
// CHECK: %[[FROM:.+]] = tensor.extract %arg1[]
// CHECK: tensor.extract_slice %arg0[0, %[[FROM]]] [2, 2] [1, 1] : tensor<2x6xf32> to tensor<2x2xf32>
func.func @slice_of_whole_dim(
    %x: tensor<4x6xf32> {cleave.sharding = #cleave.sharding<@m, [{"a"}, {}]>},
    %i: tensor<index>) -> tensor<4x2xf32> {
  %c = tensor.extract %i[] : tensor<index>
  %s = tensor.extract_slice %x[0, %c] [4, 2] [1, 1]
    : tensor<4x6xf32> to tensor<4x2xf32>
  return %s : tensor<4x2xf32>
}

// Along the cut dim only the elements that change ranks move.
// CHECK-LABEL: @slice_of_cut_dim
// CHECK-NOT: comm.all_gather
// CHECK: comm.realign %{{.+}} into %{{.+}} dim 0 size 4 to 2 offset 1 stride 1 from ["a"] over @m ["a"]
func.func @slice_of_cut_dim(
    %x: tensor<4xf32> {cleave.sharding = #cleave.sharding<@m, [{"a"}]>})
    -> (tensor<2xf32> {cleave.sharding = #cleave.sharding<@m, [{"a"}]>}) {
  %s = tensor.extract_slice %x[1] [2] [1] : tensor<4xf32> to tensor<2xf32>
  return %s : tensor<2xf32>
}

// CHECK-LABEL: @insert_static
// CHECK: tensor.insert_slice %arg0 into %arg1[1, 0] [2, 3] [1, 1] : tensor<2x3xf32> into tensor<4x3xf32>
func.func @insert_static(%x: tensor<2x6xf32>,
    %to: tensor<4x6xf32> {cleave.sharding = #cleave.sharding<@m, [{}, {"a"}]>})
    -> tensor<4x6xf32> {
  %s = tensor.insert_slice %x into %to[1, 0] [2, 6] [1, 1]
    : tensor<2x6xf32> into tensor<4x6xf32>
  return %s : tensor<4x6xf32>
}

// Where the row goes is known at run time: each rank takes it if it is its own.
// CHECK-LABEL: @insert_dynamic
// CHECK-NOT: comm.all
// CHECK: %[[ROW:.+]] = tensor.extract %arg2[]
// CHECK: %[[AWAY:.+]] = arith.subi %{{.+}}, %[[ROW]] : index
// CHECK: %[[MINE:.+]] = arith.cmpi ult, %[[AWAY]], %c1
// CHECK: %[[NEW:.+]] = tensor.extract %arg0
// CHECK: arith.select %[[MINE]], %[[NEW]], %{{.+}} : f32
func.func @insert_dynamic(%x: tensor<1x6xf32>,
    %to: tensor<4x6xf32> {cleave.sharding = #cleave.sharding<@m, [{"a"}, {}]>},
    %i: tensor<index>)
    -> (tensor<4x6xf32> {cleave.sharding = #cleave.sharding<@m, [{"a"}, {}]>}) {
  %c = tensor.extract %i[] : tensor<index>
  %s = tensor.insert_slice %x into %to[%c, 0] [1, 6] [1, 1]
    : tensor<1x6xf32> into tensor<4x6xf32>
  return %s : tensor<4x6xf32>
}

// CHECK-LABEL: @concat
// CHECK: %[[HALF:.+]] = comm.realign %arg0 into %{{.+}} dim 0 size 4 to 8 offset 0
// CHECK: comm.realign %arg1 into %[[HALF]] dim 0 size 4 to 8 offset -4
func.func @concat(
    %x: tensor<4xf32> {cleave.sharding = #cleave.sharding<@m, [{"a"}]>},
    %y: tensor<4xf32> {cleave.sharding = #cleave.sharding<@m, [{"a"}]>})
    -> (tensor<8xf32> {cleave.sharding = #cleave.sharding<@m, [{"a"}]>}) {
  %s = tensor.concat dim(0) %x, %y
    : (tensor<4xf32>, tensor<4xf32>) -> tensor<8xf32>
  return %s : tensor<8xf32>
}

// CHECK-LABEL: @pad
// CHECK: %[[ZEROS:.+]] = linalg.fill
// CHECK: comm.realign %arg0 into %[[ZEROS]] dim 0 size 4 to 6 offset -1
func.func @pad(
    %x: tensor<4xf32> {cleave.sharding = #cleave.sharding<@m, [{"a"}]>})
    -> (tensor<6xf32> {cleave.sharding = #cleave.sharding<@m, [{"a"}]>}) {
  %zero = arith.constant 0.0 : f32
  %p = tensor.pad %x low[1] high[1] {
  ^bb0(%i: index):
    tensor.yield %zero : f32
  } : tensor<4xf32> to tensor<6xf32>
  return %p : tensor<6xf32>
}

// CHECK-LABEL: @reshapes
// CHECK: tensor.expand_shape %arg0 {{.*}} output_shape [2, 2] : tensor<4xf32> into tensor<2x2xf32>
// CHECK: tensor.collapse_shape {{.*}} : tensor<2x2xf32> into tensor<4xf32>
func.func @reshapes(
    %x: tensor<8xf32> {cleave.sharding = #cleave.sharding<@m, [{"a"}]>})
    -> tensor<8xf32> {
  %y = tensor.expand_shape %x [[0, 1]] output_shape [4, 2]
    : tensor<8xf32> into tensor<4x2xf32>
  %z = tensor.collapse_shape %y [[0, 1]] : tensor<4x2xf32> into tensor<8xf32>
  return %z : tensor<8xf32>
}

// A constraint is where the value moves; the collective says whose it is.
// CHECK-LABEL: @constraint
// CHECK-NEXT: %[[ALL:.+]] = comm.all_gather %arg0 dim 0 over @m ["a"] cause = <op = "cleave.constraint", value = "{{.+}}", why = "it is made as [{\22a\22}] and declared as [{}]", remedy = "declare it as [{\22a\22}]">
// CHECK-NEXT: return %[[ALL]]
func.func @constraint(
    %x: tensor<4xf32> {cleave.sharding = #cleave.sharding<@m, [{"a"}]>})
    -> tensor<4xf32> {
  %c = cleave.constraint %x <@m, [{}]> : tensor<4xf32>
  return %c : tensor<4xf32>
}

// Barriers and groups have done their work.
// CHECK-LABEL: @hints_go
// CHECK-NEXT: return %arg0 : tensor<2xf32>
func.func @hints_go(
    %x: tensor<4xf32> {cleave.sharding = #cleave.sharding<@m, [{"a"}]>})
    -> tensor<4xf32> {
  cleave.group %x group_id=0 : tensor<4xf32>
  %b = cleave.barrier %x allowed_direction=BOTH : tensor<4xf32>
  return %b : tensor<4xf32>
}

// A private function has blocks, and no attributes.
// CHECK-LABEL: func.func private @inner(%arg0: tensor<2xf32>) -> tensor<2xf32>
func.func private @inner(%x: tensor<4xf32>) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}
// CHECK-LABEL: @call
// CHECK: call @inner(%arg0) : (tensor<2xf32>) -> tensor<2xf32>
func.func @call(
    %x: tensor<4xf32> {cleave.sharding = #cleave.sharding<@m, [{"a"}]>})
    -> tensor<4xf32> {
  %y = call @inner(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %y : tensor<4xf32>
}

// CHECK-LABEL: @loop
// CHECK: scf.for {{.*}} iter_args(%{{.+}} = %arg0) -> (tensor<2xf32>)
// CHECK: scf.yield %{{.+}} : tensor<2xf32>
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

// What names weights and states stays.
// CHECK-LABEL: @bindings
// CHECK-SAME: cleave.weight = "w"
// CHECK-SAME: cleave.state = "s"}) ->
// CHECK-SAME: (tensor<2xf32> {cleave.global_type = tensor<4xf32>, cleave.sharding = #cleave.sharding<@m, [{"a"}]>, cleave.state = "s"})
func.func @bindings(%w: tensor<4xf32> {cleave.weight = "w"},
    %s: tensor<4xf32> {cleave.state = "s",
                       cleave.sharding = #cleave.sharding<@m, [{"a"}]>})
    -> (tensor<4xf32> {cleave.state = "s"}) {
  %e = tensor.empty() : tensor<4xf32>
  %z = linalg.add ins(%w, %s : tensor<4xf32>, tensor<4xf32>)
    outs(%e : tensor<4xf32>) -> tensor<4xf32>
  return %z : tensor<4xf32>
}

// Declared summands are read as they are by a linear op, and reduced where a
// constraint asks for their sum.
// CHECK-LABEL: @declared_partial
// CHECK: %[[PART:.+]] = linalg.matmul
// CHECK-NOT: comm.all_reduce
// CHECK: %[[T:.+]] = linalg.transpose ins(%[[PART]] :
// CHECK: comm.all_reduce sum %[[T]]
func.func @declared_partial(
    %x: tensor<4x8xf32> {cleave.sharding = #cleave.sharding<@m, [{}, {"a"}]>},
    %w: tensor<8x6xf32>, %z: tensor<4x6xf32>)
    -> (tensor<6x4xf32> {cleave.sharding = #cleave.sharding<@m, [{}, {}]>}) {
  %y = linalg.matmul
    {cleave.sharding = #cleave.sharding<@m, [{}, {}], partial=sum{"a"}>}
    ins(%x, %w : tensor<4x8xf32>, tensor<8x6xf32>)
    outs(%z : tensor<4x6xf32>) -> tensor<4x6xf32>
  %e = tensor.empty() : tensor<6x4xf32>
  %t = linalg.transpose
    ins(%y : tensor<4x6xf32>) outs(%e : tensor<6x4xf32>)
    permutation = [1, 0]
    {cleave.sharding = #cleave.sharding<@m, [{}, {}], partial=sum{"a"}>}
  %r = cleave.constraint %t <@m, [{}, {}]> : tensor<6x4xf32>
  return %r : tensor<6x4xf32>
}

// A loop that adds up summands starts with the whole value on one rank alone,
// and its sum is reduced behind it.
// CHECK-LABEL: @loop_carries_summands
// CHECK: %[[AT:.+]] = comm.coordinate over @m ["a"]
// CHECK: %[[FIRST:.+]] = arith.cmpi eq, %[[AT]], %
// CHECK: %[[INIT:.+]] = linalg.generic
// CHECK: arith.select %[[FIRST]]
// CHECK: %[[LOOP:.+]] = scf.for {{.*}} iter_args(%[[ACC:.+]] = %[[INIT]])
// CHECK-NEXT: %[[Y:.+]] = linalg.matmul {{.*}} outs(%[[ACC]] : tensor<4x6xf32>)
// CHECK-NEXT: scf.yield %[[Y]]
// CHECK: %[[SUM:.+]] = comm.all_reduce sum %[[LOOP]] over @m ["a"] cause = <op = "scf.for", value = "{{.+}}", why = "a dim that is reduced in it is cut over \22a\22; reduced once, behind the loop", remedy = "leave that dim whole over \22a\22">
// CHECK-NEXT: return %[[SUM]]
func.func @loop_carries_summands(
    %x: tensor<4x8xf32> {cleave.sharding = #cleave.sharding<@m, [{}, {"a"}]>},
    %w: tensor<8x6xf32> {cleave.sharding = #cleave.sharding<@m, [{"a"}, {}]>},
    %z: tensor<4x6xf32> {cleave.sharding = #cleave.sharding<@m, [{}, {}]>})
    -> (tensor<4x6xf32> {cleave.sharding = #cleave.sharding<@m, [{}, {}]>}) {
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

// A constraint that says why names what reads it; one that nothing reads moves
// what nobody sees.
// CHECK-LABEL: @constraint_because
// CHECK: comm.all_gather %arg0 dim 0 over @m ["a"] cause = <op = "linalg.add", value = "{{.+}}", why = "moved once, which compute with it as [{}]", remedy = "annotate it with [{}]">
// CHECK: comm.all_gather %arg1 dim 0 over @m ["a"] cause = <op = "cleave.constraint"
func.func @constraint_because(
    %x: tensor<4xf32> {cleave.sharding = #cleave.sharding<@m, [{"a"}]>},
    %y: tensor<4xf32> {cleave.sharding = #cleave.sharding<@m, [{"a"}]>},
    %e: tensor<4xf32> {cleave.sharding = #cleave.sharding<@m, [{}]>})
    -> (tensor<4xf32> {cleave.sharding = #cleave.sharding<@m, [{}]>}) {
  %c = cleave.constraint %x <@m, [{}]> {because = "moved once"} : tensor<4xf32>
  %unread = cleave.constraint %y <@m, [{}]> {because = "of nothing"}
    : tensor<4xf32>
  %s = linalg.add ins(%c, %c : tensor<4xf32>, tensor<4xf32>)
    outs(%e : tensor<4xf32>) -> tensor<4xf32>
  return %s : tensor<4xf32>
}
