//===- Math.cpp - Math without calls --------------------------------------===//
#include "passes/lower/kernels/Internal.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Transforms/Passes.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Math/Transforms/Passes.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

using namespace mlir;
using namespace cleave::kernels;

LogicalResult cleave::kernels::expandMath(func::FuncOp kernel,
                                          const CpuIsa &isa) {
  MLIRContext *context = kernel.getContext();
  {
    RewritePatternSet patterns(context);
    populateMathF32ExpansionPatterns(patterns, [](StringRef) { return true; });
    math::populateExpansionPatterns(
        patterns, {"sinh", "cosh", "tan", "asinh", "acosh", "atanh", "exp2",
                   "powf", "fpowi"});
    populateMathPolynomialApproximationPatterns(
        patterns, [](StringRef) { return true; });
    if (failed(applyPatternsGreedily(kernel, std::move(patterns))))
      return failure();
  }
  PassManager pm(context);
  arith::ArithEmulateUnsupportedFloatsOptions emulate;
  emulate.sourceTypeStrs = {"bf16"};
  pm.addPass(arith::createArithEmulateUnsupportedFloats(emulate));
  arith::ArithExpandOpsPassOptions expand;
  expand.includeBf16 = true;
  pm.addPass(arith::createArithExpandOpsPass(expand));
  return pm.run(kernel->getParentOfType<ModuleOp>());
}
