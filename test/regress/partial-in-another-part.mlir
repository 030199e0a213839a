// REQUIRES: run
// RUN: cleave check %s

// Of the operands of the last op either two may be partial together, `%sum` and
// itself, or none: `%rows` never, so its sum must be complete before.
cleave.mesh @two = <["a"=2]>
#same = affine_map<(d0) -> (d0)>
#none = affine_map<(d0) -> ()>
#first = affine_map<(d0, d1) -> (d0)>
#second = affine_map<(d0, d1) -> (d1)>

func.func @model(%ids: tensor<3xi32>
      {cleave.sharding = #cleave.sharding<@two, [{"a"}]>},
    %x: tensor<3xf32>) -> tensor<2xf32> {
  %zero = arith.constant 0.0 : f32
  %none = tensor.empty() : tensor<f32>
  %init = linalg.fill ins(%zero : f32) outs(%none : tensor<f32>)
    -> tensor<f32>
  %two = tensor.empty() : tensor<2xf32>
  %inits = linalg.fill ins(%zero : f32) outs(%two : tensor<2xf32>)
    -> tensor<2xf32>
  %sum = linalg.generic {
      indexing_maps = [#same, #none], iterator_types = ["reduction"]}
      ins(%x : tensor<3xf32>) outs(%init : tensor<f32>) {
    ^bb0(%value: f32, %acc: f32):
      %next = arith.addf %acc, %value : f32
      linalg.yield %next : f32
  } -> tensor<f32>
  %rows = linalg.generic {
      indexing_maps = [#first, #first, #second],
      iterator_types = ["reduction", "parallel"]}
      ins(%x, %ids : tensor<3xf32>, tensor<3xi32>)
      outs(%inits : tensor<2xf32>) {
    ^bb0(%value: f32, %id: i32, %acc: f32):
      %many = arith.constant 2 : i32
      %row = arith.remui %id, %many : i32
      %i = linalg.index 1 : index
      %at = arith.index_cast %i : index to i32
      %here = arith.cmpi eq, %row, %at : i32
      %nothing = arith.constant 0.0 : f32
      %term = arith.select %here, %value, %nothing : f32
      %next = arith.addf %acc, %term : f32
      linalg.yield %next : f32
  } -> tensor<2xf32>
  %result = linalg.generic {
      indexing_maps = [#same, #none, #none, #same],
      iterator_types = ["parallel"]}
      ins(%rows, %sum, %sum : tensor<2xf32>, tensor<f32>, tensor<f32>)
      outs(%two : tensor<2xf32>) {
    ^bb0(%row: f32, %factor: f32, %summand: f32, %old: f32):
      %product = arith.mulf %row, %factor : f32
      %shifted = arith.addf %product, %summand : f32
      linalg.yield %shifted : f32
  } -> tensor<2xf32>
  return %result : tensor<2xf32>
}
