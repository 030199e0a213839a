// RUN: cleave-opt %s --cleave-verify-comm --verify-diagnostics \
// RUN:   --split-input-file

cleave.mesh @m = <["a"=2]>

func.func @branch(%x: tensor<2xf32>) -> tensor<2xf32> {
  %c0 = arith.constant 0 : index
  %i = comm.coordinate over @m ["a"]
  %first = arith.cmpi eq, %i, %c0 : index
  // expected-note@+1 {{decided here}}
  %0 = scf.if %first -> tensor<2xf32> {
    // expected-error@+1 {{'comm.all_reduce' op runs inside 'scf.if', which ranks along "a" decide differently; all ranks of a group must run the same collectives, so reduce or gather what decides}}
    %1 = comm.all_reduce sum %x over @m ["a"] : tensor<2xf32>
    scf.yield %1 : tensor<2xf32>
  } else {
    scf.yield %x : tensor<2xf32>
  }
  return %0 : tensor<2xf32>
}

// -----

cleave.mesh @m = <["a"=2]>

func.func private @inner(%x: tensor<2xf32>) -> tensor<2xf32> {
  // expected-note@+1 {{communicates here}}
  %0 = comm.all_reduce sum %x over @m ["a"] : tensor<2xf32>
  return %0 : tensor<2xf32>
}

// Through a call, and decided by a block of a cut argument.
func.func @bound(%n: tensor<2xindex> {cleave.sharding = #cleave.sharding<@m, [{"a"}]>, cleave.global_type = tensor<4xindex>},
                 %x: tensor<2xf32>) -> tensor<2xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %end = tensor.extract %n[%c0] : tensor<2xindex>
  // expected-note@+1 {{decided here}}
  %0 = scf.for %i = %c0 to %end step %c1 iter_args(%acc = %x)
      -> tensor<2xf32> {
    // expected-error@+1 {{'func.call' op runs inside 'scf.for', which ranks along "a" decide differently}}
    %1 = func.call @inner(%acc) : (tensor<2xf32>) -> tensor<2xf32>
    scf.yield %1 : tensor<2xf32>
  }
  return %0 : tensor<2xf32>
}

// -----

cleave.mesh @m = <["a"=2]>

// A reduced bound is the same everywhere, and a branch without communication
// may differ.
func.func @reduced(%n: tensor<1xi64>, %x: tensor<2xf32>) -> tensor<2xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %i = comm.coordinate over @m ["a"]
  %one = tensor.splat %i : tensor<1xindex>
  %max = comm.all_reduce max %one over @m ["a"] : tensor<1xindex>
  %end = tensor.extract %max[%c0] : tensor<1xindex>
  %first = arith.cmpi eq, %i, %c0 : index
  %0 = scf.for %k = %c0 to %end step %c1 iter_args(%acc = %x)
      -> tensor<2xf32> {
    %1 = comm.all_reduce sum %acc over @m ["a"] : tensor<2xf32>
    %2 = scf.if %first -> tensor<2xf32> {
      scf.yield %1 : tensor<2xf32>
    } else {
      scf.yield %x : tensor<2xf32>
    }
    scf.yield %2 : tensor<2xf32>
  }
  return %0 : tensor<2xf32>
}
