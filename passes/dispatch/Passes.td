//===- Passes.td - From ops to kernels -----------------------*- tablegen -*-===//
#ifndef CLEAVE_PASSES_DISPATCH_PASSES
#define CLEAVE_PASSES_DISPATCH_PASSES

include "mlir/Pass/PassBase.td"

def NameEdges : Pass<"cleave-name-edges", "mlir::ModuleOp"> {
  let summary = "Keep the names of an entry's arguments and results";
  let description = [{
    Sets `dispatch.name` from the location of the argument or of the returned
    value, or `argN` and `resN`; an attribute that is there already stays.
  }];
  let dependentDialects = ["cleave::dispatch::DispatchDialect"];
}

def PrepareKernels : Pass<"cleave-prepare-kernels", "mlir::ModuleOp"> {
  let summary = "Bring ops into the few forms that kernels are made of";
  let description = [{
    After this pass, element-wise ops on tensors are linalg ops; splats and
    splat constants are fills; an init that is not read is a `tensor.empty`;
    transposes are folded into the products that read them; `comm.slice` is an
    `extract_slice` at an offset computed from the coordinate; and coordinates
    are computed at the begin of the function.
  }];
  let dependentDialects = ["mlir::arith::ArithDialect",
                           "mlir::linalg::LinalgDialect",
                           "mlir::tensor::TensorDialect"];
}

def OutlineKernels : Pass<"cleave-outline-kernels", "mlir::ModuleOp"> {
  let summary = "Form groups of ops and make each a kernel";
  let description = [{
    Ops that are best computed together (see Groups.h) move into a private
    function in destination-passing style with the attribute `dispatch.kernel`;
    a `dispatch.call` stands in their place. Slices, fills and other cheap
    producers are repeated in every kernel that reads them; nothing else is
    computed twice.
  }];
  let dependentDialects = ["cleave::dispatch::DispatchDialect"];
}

def ShareKernels : Pass<"cleave-share-kernels", "mlir::ModuleOp"> {
  let summary = "Keep one kernel of those that compute the same";
  let description = [{
    Kernels are equal when their ops, types, constants and data flow are.
  }];
  let dependentDialects = ["cleave::dispatch::DispatchDialect"];
}

def TidyProgram : Pass<"cleave-tidy-program", "mlir::ModuleOp"> {
  let summary = "Fold, share and drop ops";
  let description = [{
    Makes equal ops one, folds and canonicalizes, and drops what nobody reads.
  }];
}

def VerifyDispatched : Pass<"cleave-verify-dispatched", "mlir::ModuleOp"> {
  let summary = "Check that functions hold only calls, views and scalars";
  let description = [{
    The gate after the phase `dispatch`. Names every op that should be inside a
    kernel.
  }];
}

#endif // CLEAVE_PASSES_DISPATCH_PASSES
