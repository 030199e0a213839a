//===- Passes.td - From a planned module to machine code -----*- tablegen -*-===//
#ifndef CLEAVE_PASSES_LOWER_PASSES
#define CLEAVE_PASSES_LOWER_PASSES

include "mlir/Pass/PassBase.td"

def LowerProgram : Pass<"cleave-lower-program", "mlir::ModuleOp"> {
  let summary = "Turn planned functions into calls in the LLVM dialect";
  let description = [{
    Every function but the kernels becomes an `llvm.func` of pointers and
    calls; communication becomes calls of the runtime on static structs; and
    the program's description, `cleave_program_<isa>`, is added. Kernels stay
    as they are: each is compiled by itself and found in the cache if it was
    compiled before.
  }];
  let dependentDialects = ["mlir::LLVM::LLVMDialect"];
  let options = [
    Option<"isa", "isa", "std::string", /*default=*/"\"avx512\"",
           "Instruction set of the kernels: avx2, avx512, avx512bf16 or amx "
           "(default: avx512)">
  ];
}

def VerifyLowered : Pass<"cleave-verify-lowered", "mlir::ModuleOp"> {
  let summary = "Check that only kernels and LLVM remain";
  let description = [{
    The gate after the phase `lower`.
  }];
}

#endif // CLEAVE_PASSES_LOWER_PASSES
