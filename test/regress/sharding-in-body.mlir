// An annotation on a scalar op inside a body is refused.
// RUN: cleave-opt %s -verify-diagnostics

cleave.mesh @m = <["a"=2]>

func.func @forward(%x: tensor<8xf32>) -> tensor<8xf32> {
  %empty = tensor.empty() : tensor<8xf32>
  %y = linalg.map ins(%x : tensor<8xf32>) outs(%empty : tensor<8xf32>)
    (%in: f32, %out: f32) {
      // expected-error@+1 {{'arith.addf' op result 0 has type 'f32', but only a ranked tensor can have a sharding}}
      %s = arith.addf %in, %in {cleave.sharding = #cleave.sharding<@m, []>} : f32
      linalg.yield %s : f32
    }
  return %y : tensor<8xf32>
}
