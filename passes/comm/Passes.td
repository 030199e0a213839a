//===- Passes.td - Passes of the comm phase -------------------------------===//
#ifndef CLEAVE_PASSES_COMM_PASSES
#define CLEAVE_PASSES_COMM_PASSES

include "mlir/Pass/PassBase.td"

def SimplifyComm : Pass<"cleave-simplify-comm", "mlir::ModuleOp"> {
  let summary = "Fold collectives into fewer and smaller ones";
  let description = [{
    Rewrites neighbouring collectives by their algebra: a reduction of which
    each rank keeps a part becomes a `comm.reduce_scatter`, a gather that is cut
    again disappears, gathers and slices over several axes of a dim become one,
    and what is equal on all ranks is not reduced by max, min, and, or.
  }];
  let dependentDialects = ["::cleave::comm::CommDialect",
                           "mlir::tensor::TensorDialect"];
}

def ShareCollectives : Pass<"cleave-share-collectives", "mlir::ModuleOp"> {
  let summary = "Compute equal collectives once";
  let description = [{
    Two collectives with the same operands and attributes are one, whatever
    caused them; the one that is left has the causes of both. The first may
    stand in an outer block.
  }];
}

def DelayReductions : Pass<"cleave-delay-reductions", "mlir::ModuleOp"> {
  let summary = "Reduce later where it is less";
  let description = [{
    Lets summands through ops that are linear in them where one reduction
    replaces several or the reduced tensor is smaller. A loop that adds
    reduced values to what it carries adds the summands, and reduces once after
    the last trip.
  }];
  let dependentDialects = ["::cleave::comm::CommDialect",
                           "mlir::arith::ArithDialect",
                           "mlir::linalg::LinalgDialect",
                           "mlir::tensor::TensorDialect"];
}

def CombineCollectives : Pass<"cleave-combine-collectives", "mlir::ModuleOp"> {
  let summary = "Send small tensors together";
  let description = [{
    Independent collectives of one kind and group that stand one after another
    become one over a joined buffer, where starting a collective takes longer
    than copying. Nothing waits for longer than before: the joined one stands
    before the first user of its parts.
  }];
  let dependentDialects = ["::cleave::comm::CommDialect",
                           "mlir::tensor::TensorDialect"];
}

def HoistInvariants : Pass<"cleave-hoist-invariants", "mlir::ModuleOp"> {
  let summary = "Move what does not change out of loops";
  let description = [{
    Collectives are pure, so one whose operands no trip changes runs once,
    before the loop.
  }];
}

def VerifyComm : Pass<"cleave-verify-comm", "mlir::ModuleOp"> {
  let summary = "Check that all ranks run the same collectives";
  let description = [{
    Reports every collective inside a branch or loop whose condition or bounds
    can differ between ranks: the others would wait for ever.
  }];
}

#endif // CLEAVE_PASSES_COMM_PASSES
