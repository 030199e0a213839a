// RUN: cleave-opt %s --cleave-hoist-invariants | FileCheck %s
cleave.mesh @m = <["t"=2]>

// No trip changes what is gathered.
// CHECK-LABEL: @gathers_before_the_loop
// CHECK: %[[WHOLE:.+]] = comm.all_gather
// CHECK: scf.for
// CHECK-NOT: comm.all_gather
// CHECK: linalg.add ins(%{{.+}}, %[[WHOLE]]
func.func @gathers_before_the_loop(%n: index, %w: tensor<4xf32>,
                                   %x: tensor<8xf32>) -> tensor<8xf32> {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %y = scf.for %i = %zero to %n step %one iter_args(%a = %x)
      -> tensor<8xf32> {
    %whole = comm.all_gather %w dim 0 over @m ["t"] : tensor<4xf32> -> tensor<8xf32>
    %sum = linalg.add ins(%a, %whole : tensor<8xf32>, tensor<8xf32>)
                      outs(%a : tensor<8xf32>) -> tensor<8xf32>
    scf.yield %sum : tensor<8xf32>
  }
  return %y : tensor<8xf32>
}
