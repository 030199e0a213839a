// Values on two meshes do not meet in one op without a word: the mesh of a
// model is one.
// RUN: cleave-opt %s --cleave-check-model -verify-diagnostics

// expected-note@+1 {{the other mesh}}
cleave.mesh @m = <["a"=2]>
// expected-error@+1 {{'cleave.mesh' op 'n' is used beside mesh 'm'; one model is cut over one mesh: name its axes in one place}}
cleave.mesh @n = <["b"=4]>

func.func @forward(%x: tensor<8xf32> {cleave.sharding = #cleave.sharding<@m, [{"a"}]>},
                   %y: tensor<8xf32> {cleave.sharding = #cleave.sharding<@n, [{"b"}]>}) -> tensor<8xf32> {
  %empty = tensor.empty() : tensor<8xf32>
  %z = linalg.add ins(%x, %y : tensor<8xf32>, tensor<8xf32>)
    outs(%empty : tensor<8xf32>) -> tensor<8xf32>
  return %z : tensor<8xf32>
}
