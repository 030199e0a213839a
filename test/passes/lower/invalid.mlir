// RUN: cleave-opt %s --cleave-verify-lowered --split-input-file \
// RUN:   --verify-diagnostics

// expected-error@+1 {{'func.func' op remains after lowering; outside of kernels only the LLVM dialect may}}
func.func @function(%x: tensor<4xf32>) {
  return
}

// -----

llvm.func @scalars(%x: i64) -> i64 {
  // expected-error@+1 {{'arith.addi' op remains after lowering}}
  %0 = arith.addi %x, %x : i64
  llvm.return %0 : i64
}

// -----

func.func private @kernel(%x: tensor<4xf32>) -> tensor<4xf32>
    attributes {dispatch.kernel} {
  return %x : tensor<4xf32>
}
llvm.func @fine(%x: i64) -> i64 {
  llvm.return %x : i64
}
