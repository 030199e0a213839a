//===- Passes.td - Where everything lies ---------------------*- tablegen -*-===//
#ifndef CLEAVE_PASSES_MEMORY_PASSES
#define CLEAVE_PASSES_MEMORY_PASSES

include "mlir/Pass/PassBase.td"

class MemoryPass<string flag> : Pass<flag, "mlir::ModuleOp"> {
  let dependentDialects = ["cleave::dispatch::DispatchDialect"];
  let options = [
    Option<"isa", "isa", "std::string", /*default=*/"\"avx512\"",
           "Instruction set that kernels are compiled for: avx2, avx512, "
           "avx512bf16 or amx (default: avx512)">
  ];
}

def PackWeights : MemoryPass<"cleave-pack-weights"> {
  let summary = "Lay weights out as the products that read them want";
  let description = [{
    A weight that every reader wants in the same packed layout is an argument of
    the packed type, marked `dispatch.packed`; a private function `init` packs
    it once after loading. Readers that want different layouts get a form each,
    and where someone reads the weight as it is, that form stays too; else the
    last form takes its place.
  }];
}

def PlanMemory : MemoryPass<"cleave-plan-memory"> {
  let summary = "Give every tensor a place in the memory of a rank";
  let description = [{
    Decides which tensors share a buffer (in-place updates, loop-carried values,
    state), inserts copies where a buffer would be overwritten too early, and
    gives every buffer an offset in the frame of its function. The attributes it
    leaves are described with the dialect `dispatch`.
  }];
}

def VerifyPlanned : Pass<"cleave-verify-planned", "mlir::ModuleOp"> {
  let summary = "Check that every tensor has a place";
  let description = [{
    The gate after the phase `memory`.
  }];
}

#endif // CLEAVE_PASSES_MEMORY_PASSES
