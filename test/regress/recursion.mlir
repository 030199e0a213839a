// A function that calls itself never ends; it is refused with the way it goes.
// REQUIRES: driver
// RUN: not cleave check %s 2>&1 | FileCheck %s
// CHECK: error:{{.*}}'again'

cleave.mesh @m = <["a"=2]>

func.func private @again(%x: tensor<8xf32>) -> tensor<8xf32> {
  %y = call @again(%x) : (tensor<8xf32>) -> tensor<8xf32>
  return %y : tensor<8xf32>
}

func.func @forward(%x: tensor<8xf32>) -> tensor<8xf32> {
  %y = call @again(%x) : (tensor<8xf32>) -> tensor<8xf32>
  return %y : tensor<8xf32>
}
