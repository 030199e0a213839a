// Attributes may stand alone, for tools that keep them elsewhere.
// RUN: cleave-opt --allow-unregistered-dialect %s | cleave-opt --allow-unregistered-dialect | FileCheck %s

// Attributes alone.
// CHECK-LABEL: func.func private @attributes
// CHECK-SAME: #cleave.axes<["a", "b":(1)2]>
// CHECK-SAME: #cleave.axis<"tp"=4>
// CHECK-SAME: #cleave.axis_ref<"a":(2)3>
// CHECK-SAME: #cleave.dim<{"a", ?}p1>
// CHECK-SAME: #cleave.mesh<["a"=2]>
func.func private @attributes() attributes {
  test.a = #cleave.axes<["a", "b":(1)2]>, test.b = #cleave.axis<"tp"=4>,
  test.c = #cleave.axis_ref<"a":(2)3>, test.d = #cleave.dim<{"a", ?}p1>,
  test.e = #cleave.mesh<["a"=2]>}
