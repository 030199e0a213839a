// RUN: cleave-opt %s --cleave-model-pipeline --cleave-propagate-pipeline \
// RUN:   --cleave-partition-tensors -verify-diagnostics | FileCheck %s

cleave.mesh @pair = <["a"=2]>

// An op without a rule gets its operands whole, and one warning for all of its
// kind says what that costs.
// CHECK-LABEL: func.func @bits
func.func @bits(%x: tensor<8xf32>
    {cleave.sharding = #cleave.sharding<@pair, [{"a"}]>})
    -> (tensor<8xi32>, tensor<8xi32>) {
  // CHECK: [[WHOLE:%.+]] = comm.all_gather %arg0
  // CHECK: tensor.bitcast [[WHOLE]] : tensor<8xf32> to tensor<8xi32>
  // expected-warning@+1 {{'tensor.bitcast' has no sharding rule, so every rank computes all of it (2 times); bringing its operands whole to each rank sends 16 bytes: attach ShardingRuleOpInterface to cut it}}
  %0 = tensor.bitcast %x : tensor<8xf32> to tensor<8xi32>
  %1 = tensor.bitcast %x : tensor<8xf32> to tensor<8xi32>
  return %0, %1 : tensor<8xi32>, tensor<8xi32>
}
