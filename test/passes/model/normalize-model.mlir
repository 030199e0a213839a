// Everything that computes becomes a linalg op with a rule.
// RUN: cleave-opt %s --cleave-normalize-model | FileCheck %s

cleave.mesh @m = <["a"=2]>

// CHECK-LABEL: @elementwise
// CHECK-SAME: (%[[X:.+]]: tensor<4xf32>, %[[Y:.+]]: tensor<4xf32>)
// CHECK: %[[E:.+]] = tensor.empty() : tensor<4xf32>
// CHECK: %[[Z:.+]] = linalg.generic
// CHECK-SAME: iterator_types = ["parallel"]
// CHECK-SAME: ins(%[[X]], %[[Y]] : {{.*}}) outs(%[[E]] :
// CHECK-NEXT: ^bb0(%[[L:.+]]: f32, %[[R:.+]]: f32, %{{.+}}: f32):
// CHECK-NEXT: %[[S:.+]] = arith.addf %[[L]], %[[R]] : f32
// CHECK-NEXT: linalg.yield %[[S]] : f32
// CHECK: return %[[Z]]
func.func @elementwise(%x: tensor<4xf32>, %y: tensor<4xf32>) -> tensor<4xf32> {
  %z = arith.addf %x, %y : tensor<4xf32>
  return %z : tensor<4xf32>
}

// The annotation stands on what replaces the op, not in its body.
// CHECK-LABEL: @keeps_sharding
// CHECK: linalg.generic
// CHECK-SAME: attrs = {cleave.sharding = #cleave.sharding<@m, [{"a"}]>}
// CHECK: math.exp %{{[a-z0-9_]+}} : f32
func.func @keeps_sharding(%x: tensor<4xf32>) -> tensor<4xf32> {
  %y = math.exp %x {cleave.sharding = #cleave.sharding<@m, [{"a"}]>}
    : tensor<4xf32>
  return %y : tensor<4xf32>
}

// A scalar operand stays one scalar for all elements.
// CHECK-LABEL: @scalar_operand
// CHECK: %[[B:.+]] = tensor.extract
// CHECK: linalg.generic
// CHECK-SAME: ins(%arg1, %arg2 :
// CHECK: arith.select %[[B]], %{{.+}}, %{{.+}} : f32
func.func @scalar_operand(%p: tensor<i1>, %x: tensor<4xf32>, %y: tensor<4xf32>)
    -> tensor<4xf32> {
  %b = tensor.extract %p[] : tensor<i1>
  %z = arith.select %b, %x, %y : tensor<4xf32>
  return %z : tensor<4xf32>
}

// Predicates and flags of the op go along; the result has its own type.
// CHECK-LABEL: @keeps_attributes
// CHECK: outs(%{{.+}} : tensor<4xi1>)
// CHECK: arith.cmpf olt, %{{.+}}, %{{.+}} fastmath<fast> : f32
func.func @keeps_attributes(%x: tensor<4xf32>, %y: tensor<4xf32>)
    -> tensor<4xi1> {
  %z = arith.cmpf olt, %x, %y fastmath<fast> : tensor<4xf32>
  return %z : tensor<4xi1>
}

// A constant is no computation.
// CHECK-LABEL: @leaves_constants
// CHECK-NEXT: arith.constant dense<1.000000e+00> : tensor<4xf32>
// CHECK-NEXT: return
func.func @leaves_constants() -> tensor<4xf32> {
  %c = arith.constant dense<1.0> : tensor<4xf32>
  return %c : tensor<4xf32>
}

// Structured ops and scalars are left as they are.
// CHECK-LABEL: @leaves_structured_ops
// CHECK: linalg.add
// CHECK-NEXT: return
func.func @leaves_structured_ops(%x: tensor<4xf32>, %y: tensor<4xf32>)
    -> tensor<4xf32> {
  %e = tensor.empty() : tensor<4xf32>
  %z = linalg.add ins(%x, %y : tensor<4xf32>, tensor<4xf32>)
    outs(%e : tensor<4xf32>) -> tensor<4xf32>
  return %z : tensor<4xf32>
}

// Rows found by number: the indices are read first, then the table.
// CHECK-LABEL: @gather
// CHECK-SAME: (%[[T:.+]]: tensor<5x3xf32>, %[[I:.+]]: tensor<2x1xi32>)
// CHECK: %[[ROW:.+]] = linalg.index 0
// CHECK: %[[AT:.+]] = tensor.extract %[[I]][%[[ROW]], %{{.+}}] : tensor<2x1xi32>
// CHECK: %[[FOUND:.+]] = arith.index_cast %[[AT]] : i32 to index
// CHECK: %[[COLUMN:.+]] = linalg.index 1
// CHECK: tensor.extract %[[T]][%[[FOUND]], %[[COLUMN]]] : tensor<5x3xf32>
func.func @gather(%x: tensor<5x3xf32>, %i: tensor<2x1xi32>)
    -> tensor<2x3xf32> {
  %y = tensor.gather %x[%i] gather_dims([0])
    : (tensor<5x3xf32>, tensor<2x1xi32>) -> tensor<2x3xf32>
  return %y : tensor<2x3xf32>
}

// With the gathered dim kept as one element, the columns are a dim later.
// CHECK-LABEL: @gather_keeps_dim
// CHECK: linalg.index 0
// CHECK: linalg.index 2
func.func @gather_keeps_dim(%x: tensor<5x3xf32>, %i: tensor<2x1xindex>)
    -> tensor<2x1x3xf32> {
  %y = tensor.gather %x[%i] gather_dims([0])
    : (tensor<5x3xf32>, tensor<2x1xindex>) -> tensor<2x1x3xf32>
  return %y : tensor<2x1x3xf32>
}

// CHECK-LABEL: @generate
// CHECK: linalg.generic
// CHECK: %[[I:.+]] = linalg.index 0 : index
// CHECK: linalg.yield %[[I]] : index
func.func @generate() -> tensor<4xindex> {
  %y = tensor.generate {
  ^bb0(%i: index):
    tensor.yield %i : index
  } : tensor<4xindex>
  return %y : tensor<4xindex>
}

// CHECK-LABEL: @dim
// CHECK-NOT: tensor.dim
// CHECK: %[[SIX:.+]] = arith.constant 6 : index
// CHECK: tensor.from_elements %[[SIX]]
func.func @dim(%x: tensor<4x6xf32>) -> tensor<index> {
  %one = arith.constant 1 : index
  %d = tensor.dim %x, %one : tensor<4x6xf32>
  %t = tensor.from_elements %d : tensor<index>
  return %t : tensor<index>
}

// The maximum, the powers, their sum, the quotient; the annotation is the
// quotient's.
// CHECK-LABEL: @softmax
// CHECK-NOT: linalg.softmax
// CHECK: arith.maxnumf
// CHECK: math.exp
// CHECK: arith.addf
// CHECK: attrs = {cleave.sharding = #cleave.sharding<@m, [{"a"}, {}]>}
// CHECK: arith.divf
func.func @softmax(%x: tensor<4x6xf32>) -> tensor<4x6xf32> {
  %e = tensor.empty() : tensor<4x6xf32>
  %y = linalg.softmax
    {cleave.sharding = #cleave.sharding<@m, [{"a"}, {}]>} dimension(1)
    ins(%x : tensor<4x6xf32>) outs(%e : tensor<4x6xf32>) -> tensor<4x6xf32>
  return %y : tensor<4x6xf32>
}
