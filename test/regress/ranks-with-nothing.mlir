// A dim of 3 over 8 ranks: five of them have a block and nothing in it, before
// and after each move. A block that a rank gets nothing into is the furthest in
// its memory; it counts, and memory is as planned on every rank.
// REQUIRES: run
// RUN: cleave check %s | FileCheck %s
// CHECK: equal f 'y'
// CHECK: check passed: 1 outputs, 8 ranks
cleave.mesh @m = <["a"=2, "b"=4]>
#id = affine_map<(i) -> (i)>
func.func @f(
    %x: tensor<3xi8> {cleave.sharding = #cleave.sharding<@m, [{"a", "b"}]>})
    -> tensor<3xi16> {
  %empty = tensor.empty() : tensor<3xi8>
  %square = linalg.mul ins(%x, %x : tensor<3xi8>, tensor<3xi8>)
    outs(%empty : tensor<3xi8>) -> tensor<3xi8>
  %moved = cleave.constraint %square <@m, [{"b", "a"}]> : tensor<3xi8>
  %back = cleave.constraint %moved <@m, [{"a", "b"}]> : tensor<3xi8>
  %wide = tensor.empty() : tensor<3xi16>
  %y = linalg.generic
      {indexing_maps = [#id, #id, #id], iterator_types = ["parallel"]}
      ins(%back, %square : tensor<3xi8>, tensor<3xi8>)
      outs(%wide : tensor<3xi16>) {
  ^bb0(%l: i8, %r: i8, %out: i16):
    %sum = arith.addi %l, %r : i8
    %s = arith.extsi %sum : i8 to i16
    linalg.yield %s : i16
  } -> tensor<3xi16> loc("y")
  return %y : tensor<3xi16>
}
