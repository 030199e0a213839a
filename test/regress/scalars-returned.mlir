// REQUIRES: run
// RUN: cleave check %s --trials=3

// Private functions may return scalars, beside tensors, and from a loop. The
// position of the largest value decides where a slice begins.
cleave.mesh @three = <["tp"=3]>
#same = affine_map<(i) -> (i)>
#none = affine_map<(i) -> ()>

func.func private @largest(%x: tensor<7xf32>)
    -> (index, tensor<7xf32>, f32, i1) {
  %low = arith.constant 0xFF800000 : f32
  %zero = arith.constant 0 : index
  %best_empty = tensor.empty() : tensor<f32>
  %at_empty = tensor.empty() : tensor<index>
  %best_init = linalg.fill ins(%low : f32) outs(%best_empty : tensor<f32>)
    -> tensor<f32>
  %best = linalg.generic {
      indexing_maps = [#same, #none], iterator_types = ["reduction"]}
      ins(%x : tensor<7xf32>) outs(%best_init : tensor<f32>) {
    ^bb0(%value: f32, %acc: f32):
      %more = arith.maximumf %value, %acc : f32
      linalg.yield %more : f32
  } -> tensor<f32>
  %at_init = linalg.fill ins(%zero : index) outs(%at_empty : tensor<index>)
    -> tensor<index>
  %at = linalg.generic {
      indexing_maps = [#same, #none, #none], iterator_types = ["reduction"]}
      ins(%x, %best : tensor<7xf32>, tensor<f32>)
      outs(%at_init : tensor<index>) {
    ^bb0(%value: f32, %largest: f32, %acc: index):
      %i = linalg.index 0 : index
      %is = arith.cmpf oeq, %value, %largest : f32
      %this = arith.select %is, %i, %zero : index
      %next = arith.maxui %acc, %this : index
      linalg.yield %next : index
  } -> tensor<index>
  %double_empty = tensor.empty() : tensor<7xf32>
  %double = linalg.add ins(%x, %x : tensor<7xf32>, tensor<7xf32>)
    outs(%double_empty : tensor<7xf32>) -> tensor<7xf32>
  %position = tensor.extract %at[] : tensor<index>
  %value = tensor.extract %best[] : tensor<f32>
  %none = arith.constant 0.0 : f32
  %positive = arith.cmpf ogt, %value, %none : f32
  return %position, %double, %value, %positive
    : index, tensor<7xf32>, f32, i1
}

func.func @main(%x: tensor<7xf32>
    {cleave.sharding = #cleave.sharding<@three, [{"tp"}]>})
    -> (tensor<7xf32>, tensor<1xf32>) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %four = arith.constant 4 : index
  %no = arith.constant 0.0 : f32
  %y, %sum = scf.for %i = %zero to %four step %one
      iter_args(%v = %x, %s = %no) -> (tensor<7xf32>, f32) {
    %p, %w, %top, %positive = func.call @largest(%v)
      : (tensor<7xf32>) -> (index, tensor<7xf32>, f32, i1)
    %top_or_none = arith.select %positive, %top, %no : f32
    %next = arith.addf %s, %top_or_none : f32
    scf.yield %w, %next : tensor<7xf32>, f32
  }
  %p, %w, %top, %positive = func.call @largest(%y)
    : (tensor<7xf32>) -> (index, tensor<7xf32>, f32, i1)
  %piece = tensor.extract_slice %w[%p] [1] [1]
    : tensor<7xf32> to tensor<1xf32>
  %out_empty = tensor.empty() : tensor<7xf32>
  %out = linalg.generic {
      indexing_maps = [#same, #same], iterator_types = ["parallel"]}
      ins(%w : tensor<7xf32>) outs(%out_empty : tensor<7xf32>) {
    ^bb0(%value: f32, %old: f32):
      %added = arith.addf %value, %sum : f32
      linalg.yield %added : f32
  } -> tensor<7xf32>
  return %out, %piece : tensor<7xf32>, tensor<1xf32>
}
