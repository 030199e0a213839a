//===- Passes.td - Passes of the model, propagate, partition phases -------===//
#ifndef CLEAVE_PASSES_PASSES
#define CLEAVE_PASSES_PASSES

include "mlir/Pass/PassBase.td"

//===----------------------------------------------------------------------===//
// model
//===----------------------------------------------------------------------===//

def CheckModel : Pass<"cleave-check-model", "mlir::ModuleOp"> {
  let summary = "Report what cannot be cut, at the line where it stands";
  let description = [{
    The gate before all other phases. Reports dynamic shapes, unranked tensors,
    tuples, functions with several blocks, calls of functions without a body,
    recursion, several meshes in one model, and control flow other than
    `scf.for` around tensors. Changes nothing.
  }];
}

def NormalizeModel : Pass<"cleave-normalize-model", "mlir::ModuleOp"> {
  let summary = "Write all computation as linalg ops with sharding rules";
  let description = [{
    Element-wise `arith` and `math` ops on tensors become `linalg.generic`,
    `linalg.softmax` and other aggregates are decomposed, `tensor.gather` and
    `tensor.generate` become `linalg.generic` with `tensor.extract`, and
    `tensor.dim` becomes a constant. A `cleave.sharding` of such an op moves to
    what replaces it.
  }];
  let dependentDialects = ["mlir::arith::ArithDialect",
                           "mlir::linalg::LinalgDialect",
                           "mlir::tensor::TensorDialect"];
}

//===----------------------------------------------------------------------===//
// propagate
//===----------------------------------------------------------------------===//

def PropagateShardings : Pass<"cleave-propagate-shardings", "mlir::ModuleOp"> {
  let summary = "Give every value a sharding";
  let description = [{
    Spreads the shardings that the model gives through all functions at once,
    until nothing changes, and writes the result as `cleave.sharding` on every
    argument, result and op. Decides where partial values are reduced, too.
  }];
}

def VerifyPlaced : Pass<"cleave-verify-placed", "mlir::ModuleOp"> {
  let summary = "Check that every tensor has a closed sharding";
}

//===----------------------------------------------------------------------===//
// partition
//===----------------------------------------------------------------------===//

def PartitionTensors : Pass<"cleave-partition-tensors", "mlir::ModuleOp"> {
  let summary = "Turn the model into the program of one rank";
  let description = [{
    Tensors become the blocks that one rank holds, ops work on blocks, and where
    two shardings of a value meet, the cheapest collectives move it. Each
    collective says which op and which cut caused it.
  }];
  let dependentDialects = ["::cleave::comm::CommDialect",
                           "mlir::arith::ArithDialect",
                           "mlir::linalg::LinalgDialect",
                           "mlir::scf::SCFDialect",
                           "mlir::tensor::TensorDialect"];
}

def VerifyLocal : Pass<"cleave-verify-local", "mlir::ModuleOp"> {
  let summary = "Check that only one rank's ops are left";
}

#endif // CLEAVE_PASSES_PASSES
