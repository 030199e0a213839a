// A dim of 3 over 8 ranks: five of them have a block and nothing in it, before
// and after the move. Their memory is as planned, too.
// REQUIRES: run
// RUN: cleave check %s | FileCheck %s
// CHECK: equal f 'y'
// CHECK: check passed: 1 outputs, 8 ranks
cleave.mesh @m = <["a"=2, "b"=4]>
func.func @f(
    %x: tensor<3xi8> {cleave.sharding = #cleave.sharding<@m, [{"a", "b"}]>})
    -> tensor<3xi8> {
  %moved = cleave.constraint %x <@m, [{"b", "a"}]> : tensor<3xi8>
  %empty = tensor.empty() : tensor<3xi8>
  %y = linalg.add ins(%moved, %moved : tensor<3xi8>, tensor<3xi8>)
    outs(%empty : tensor<3xi8>) -> tensor<3xi8> loc("y")
  return %y : tensor<3xi8>
}
