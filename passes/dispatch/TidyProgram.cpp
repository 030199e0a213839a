//===- TidyProgram.cpp - Fold, share and drop ops -------------------------===//
// What --canonicalize and --cse do, in one pass: it knows whether anything
// changed. That a program is tidy is an analysis, which a pass that changes the
// program invalidates; until then there is nothing to walk and to verify again.
//===----------------------------------------------------------------------===//
#include "mlir/IR/Dominance.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Transforms/CSE.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"
#include "passes/dispatch/Passes.h"
#define DEBUG_TYPE "cleave-tidy-program"

using namespace mlir;

namespace cleave {
#define GEN_PASS_DEF_TIDYPROGRAM
#include "passes/dispatch/Passes.h.inc"
} // namespace cleave

namespace {
/// Cached as long as nothing changed since the program became tidy.
struct IsTidy {
  explicit IsTidy(Operation *) {}
};

struct TidyProgram : cleave::impl::TidyProgramBase<TidyProgram> {
  using Base::Base;
  LogicalResult initialize(MLIRContext *context) override;
  void runOnOperation() override;

private:
  bool share();
  bool fold();
  FrozenRewritePatternSet patterns;
};
} // namespace

LogicalResult TidyProgram::initialize(MLIRContext *context) {
  RewritePatternSet all(context);
  for (Dialect *dialect : context->getLoadedDialects())
    dialect->getCanonicalizationPatterns(all);
  for (RegisteredOperationName op : context->getRegisteredOperations())
    op.getCanonicalizationPatterns(all, context);
  patterns = FrozenRewritePatternSet(std::move(all));
  return success();
}

bool TidyProgram::share() {
  IRRewriter rewriter(&getContext());
  bool changed = false;
  eliminateCommonSubExpressions(rewriter, getAnalysis<DominanceInfo>(),
                                getOperation(), &changed);
  return changed;
}

bool TidyProgram::fold() {
  GreedyRewriteConfig config;
  config.setUseTopDownTraversal(true);
  // Regions have one block, and the driver drops dead ops itself.
  config.setRegionSimplificationLevel(GreedySimplifyRegionLevel::Disabled);
  bool changed = false;
  // Whether it converged does not matter: each step is right.
  (void)applyPatternsGreedily(getOperation(), patterns, config, &changed);
  return changed;
}

void TidyProgram::runOnOperation() {
  if (getCachedAnalysis<IsTidy>())
    return markAllAnalysesPreserved();
  // Fewer ops to fold when equal ones are one; folding makes ops equal.
  bool changed = share();
  if (fold()) {
    share();
    changed = true;
  }
  getAnalysis<IsTidy>();
  if (changed)
    markAnalysesPreserved<IsTidy>();
  else
    markAllAnalysesPreserved();
}
