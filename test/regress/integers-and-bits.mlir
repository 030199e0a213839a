// Integers of three widths and bits meet, and are reduced by or, max and product
// over a dim of 7 on 3 ranks.
// REQUIRES: run
// RUN: cleave check %s

cleave.mesh @m = <["a"=3]>
#id = affine_map<(i, j) -> (i, j)>
func.func @forward(
    %x: tensor<7x5xi8> {cleave.sharding = #cleave.sharding<@m, [{"a"}, {}]>},
    %y: tensor<7x5xi64> {cleave.sharding = #cleave.sharding<@m, [{}, {"a"}]>},
    %b: tensor<7x5xi1> {cleave.sharding = #cleave.sharding<@m, [{"a"}, {}]>})
    -> (tensor<7x5xi64>, tensor<5xi1>, tensor<7xi8>, tensor<5xi64>) {
  %e = tensor.empty() : tensor<7x5xi64>
  %s = linalg.generic {indexing_maps = [#id, #id, #id, #id], iterator_types =
    ["parallel", "parallel"]} ins(%x, %y, %b : tensor<7x5xi8>, tensor<7x5xi64>,
    tensor<7x5xi1>) outs(%e : tensor<7x5xi64>) {
  ^bb0(%p: i8, %q: i64, %c: i1, %o: i64):
    %w = arith.extsi %p : i8 to i64
    %t = arith.addi %w, %q : i64
    %r = arith.select %c, %t, %q : i64
    linalg.yield %r : i64
  } -> tensor<7x5xi64>
  %f = arith.constant false
  %eb = tensor.empty() : tensor<5xi1>
  %ib = linalg.fill ins(%f : i1) outs(%eb : tensor<5xi1>) -> tensor<5xi1>
  %rb = linalg.reduce { arith.ori } ins(%b : tensor<7x5xi1>) outs(%ib :
    tensor<5xi1>) dimensions = [0]
  %m = arith.constant -128 : i8
  %e8 = tensor.empty() : tensor<7xi8>
  %i8 = linalg.fill ins(%m : i8) outs(%e8 : tensor<7xi8>) -> tensor<7xi8>
  %r8 = linalg.reduce { arith.maxsi } ins(%x : tensor<7x5xi8>) outs(%i8 :
    tensor<7xi8>) dimensions = [1]
  %one = arith.constant 1 : i64
  %e6 = tensor.empty() : tensor<5xi64>
  %i6 = linalg.fill ins(%one : i64) outs(%e6 : tensor<5xi64>) -> tensor<5xi64>
  %r6 = linalg.reduce { arith.muli } ins(%y : tensor<7x5xi64>) outs(%i6 :
    tensor<5xi64>) dimensions = [0]
  return %s, %rb, %r8, %r6 : tensor<7x5xi64>, tensor<5xi1>, tensor<7xi8>,
    tensor<5xi64>
}
