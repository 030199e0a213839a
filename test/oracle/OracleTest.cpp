//===- OracleTest.cpp - The oracle finds what is broken -------------------===//
// Tests of the test: programs that are right pass, and each way of breaking a
// partitioned program is noticed, within a few dozen random programs.
//===----------------------------------------------------------------------===//
#include "dialects/comm/Comm.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Verifier.h"
#include "test/oracle/Programs.h"
#include "test/oracle/Shrink.h"
#include "test/oracle/Workers.h"
#include <unistd.h>

using namespace cleave::oracle;
using namespace mlir;

namespace {
class OracleTest : public ProgramTest {
protected:
  std::string textOf(uint64_t seed, const GeneratorOptions &options = {}) {
    auto module = generateProgram(&context, seed, options);
    EXPECT_TRUE(succeeded(verify(*module)));
    std::string text;
    llvm::raw_string_ostream os(text);
    module->print(os);
    return text;
  }
  /// Number of outcomes other than Same after `breakIt` has changed what the
  /// naive partitioner made; -1 if it never found anything to break.
  int caught(std::function<bool(ModuleOp)> breakIt, int programs = 60) {
    int found = 0, broken = 0;
    for (int seed = 1; seed <= programs; ++seed) {
      bool changed = false;
      CaseOptions options;
      options.seed = seed;
      options.partition = [&](ModuleOp module) {
        if (failed(partitionNaively(module)))
          return failure();
        changed = breakIt(module);
        return success();
      };
      Report report = runCase(&context, textOf(seed), options);
      broken += changed;
      found += changed && report.outcome != Outcome::Same;
      EXPECT_TRUE(changed || report.outcome == Outcome::Same)
          << outcomeName(report.outcome).str() << ": " << report.detail;
    }
    return broken == 0 ? -1 : found;
  }
  template <typename Op> static Op first(ModuleOp module) {
    Op found;
    module.walk([&](Op op) {
      found = op;
      return WalkResult::interrupt();
    });
    return found;
  }
};

TEST_F(OracleTest, SameSeedSameProgram) {
  EXPECT_EQ(textOf(5), textOf(5));
  EXPECT_NE(textOf(5), textOf(6));
}

TEST_F(OracleTest, RandomProgramsAreValidAndDefined) {
  for (bool floats : {false, true})
    for (uint64_t seed = 1; seed <= 60; ++seed) {
      GeneratorOptions options;
      options.floats = floats;
      CaseOptions run;
      run.seed = seed;
      run.floats = floats;
      run.partition = partitionNaively;
      Report report = runCase(&context, textOf(seed, options), run);
      EXPECT_EQ(report.outcome, Outcome::Same)
          << "seed " << seed << ": " << report.detail;
    }
}

TEST_F(OracleTest, ProgramsHoldEveryKindOfOp) {
  std::set<std::string> seen;
  for (uint64_t seed = 1; seed <= 300; ++seed)
    generateProgram(&context, seed)->walk([&](Operation *op) {
      seen.insert(op->getName().getStringRef().str());
    });
  for (const char *name : {"linalg.generic",
                           "linalg.matmul",
                           "linalg.batch_matmul",
                           "linalg.vecmat",
                           "linalg.matvec",
                           "linalg.reduce",
                           "linalg.transpose",
                           "linalg.broadcast",
                           "linalg.fill",
                           "linalg.index",
                           "tensor.extract",
                           "tensor.expand_shape",
                           "tensor.collapse_shape",
                           "tensor.extract_slice",
                           "tensor.insert_slice",
                           "tensor.concat",
                           "tensor.pad",
                           "tensor.splat",
                           "func.call",
                           "scf.for",
                           "scf.if",
                           "arith.select",
                           "arith.cmpf",
                           "arith.divui",
                           "arith.truncf",
                           "cleave.constraint",
                           "cleave.barrier",
                           "cleave.group"})
    EXPECT_TRUE(seen.count(name)) << name;
}

TEST_F(OracleTest, FindsAWrongAxis) {
  EXPECT_GT(caught([](ModuleOp module) {
              auto op = first<cleave::comm::AllGatherOp>(module);
              if (!op || op.getAxes().getRefs().size() < 2)
                return false;
              SmallVector<cleave::AxisRefAttr> refs(
                  llvm::reverse(op.getAxes().getRefs()));
              op.setAxesAttr(cleave::AxesAttr::get(module.getContext(), refs));
              return true;
            }),
            0);
}

TEST_F(OracleTest, FindsADroppedExchange) {
  // Every rank takes its own block for that of all.
  EXPECT_GT(caught([](ModuleOp module) {
              auto op = first<cleave::comm::AllGatherOp>(module);
              if (!op)
                return false;
              OpBuilder b(op);
              int64_t n = op.getType().getDimSize(op.getDim()) /
                          op.getInput().getType().getDimSize(op.getDim());
              SmallVector<Value> copies(n, op.getInput());
              Value joined =
                  tensor::ConcatOp::create(b, op.getLoc(), op.getDim(), copies);
              op.replaceAllUsesWith(joined);
              op.erase();
              return n > 1;
            }),
            0);
}

TEST_F(OracleTest, FindsAWrongOffset) {
  EXPECT_GT(caught([](ModuleOp module) {
              auto op = first<cleave::comm::SliceOp>(module);
              if (!op)
                return false;
              // The first part on every rank.
              OpBuilder b(op);
              auto type = cast<RankedTensorType>(op.getType());
              SmallVector<OpFoldResult> zeros(type.getRank(),
                                              b.getIndexAttr(0));
              SmallVector<OpFoldResult> ones(type.getRank(), b.getIndexAttr(1));
              SmallVector<OpFoldResult> sizes;
              for (int64_t size : type.getShape())
                sizes.push_back(b.getIndexAttr(size));
              Value part = tensor::ExtractSliceOp::create(
                  b, op.getLoc(), type, op.getInput(), zeros, sizes, ones);
              op.replaceAllUsesWith(part);
              op.erase();
              return true;
            }),
            0);
}

TEST_F(OracleTest, FindsPaddingThatIsRead) {
  // The blocks' padding instead of the end of the data.
  EXPECT_GT(
      caught(
          [](ModuleOp module) {
            bool changed = false;
            module.walk([&](tensor::ExtractSliceOp op) {
              auto gather =
                  op.getSource().getDefiningOp<cleave::comm::AllGatherOp>();
              if (!gather || changed)
                return;
              int64_t dim = gather.getDim();
              int64_t extra = op.getSourceType().getDimSize(dim) -
                              op.getType().getDimSize(dim);
              if (extra <= 0)
                return;
              SmallVector<int64_t> offsets(op.getStaticOffsets());
              offsets[dim] = extra;
              op.setStaticOffsets(offsets);
              changed = true;
            });
            return changed;
          },
          120),
      0);
}

TEST_F(OracleTest, TellsRejectionFromSilence) {
  CaseOptions options;
  options.partition = [](ModuleOp module) { return failure(); };
  EXPECT_EQ(runCase(&context, textOf(1), options).outcome, Outcome::Silent);
  options.partition = [](ModuleOp module) {
    return LogicalResult(module.emitError("no"));
  };
  EXPECT_EQ(runCase(&context, textOf(1), options).outcome, Outcome::Rejected);
  options.partition = [](ModuleOp module) {
    module.walk([](func::FuncOp function) {
      function.setType(FunctionType::get(function.getContext(), {}, {}));
    });
    return success();
  };
  EXPECT_EQ(runCase(&context, textOf(1), options).outcome, Outcome::Unverified);
}

TEST_F(OracleTest, SurvivesCrashesAndHangs) {
  WorkerOptions options;
  options.count = 8;
  options.jobs = 2;
  options.deadlineSeconds = 0.5;
  std::map<uint64_t, Outcome> outcomes;
  runSeeds(
      options,
      [](uint64_t seed) -> Report {
        if (seed == 3)
          ::abort();
        while (seed == 4)
          ::usleep(1000);
        return {};
      },
      [&](uint64_t seed, const Report &report) {
        outcomes[seed] = report.outcome;
        return true;
      });
  ASSERT_EQ(outcomes.size(), 8u);
  for (auto [seed, outcome] : outcomes)
    EXPECT_EQ(outcome, seed == 3   ? Outcome::Crash
                       : seed == 4 ? Outcome::Hang
                                   : Outcome::Same)
        << seed;
}

TEST_F(OracleTest, ShrinksToWhatMatters) {
  std::string text;
  for (uint64_t seed = 1; text.find("tensor.pad") == std::string::npos; ++seed)
    text = textOf(seed);
  std::string small = shrink(
      &context, text,
      [](llvm::StringRef candidate) {
        return candidate.contains("tensor.pad");
      },
      10);
  EXPECT_NE(small.find("tensor.pad"), std::string::npos);
  EXPECT_EQ(small.find("linalg."), std::string::npos) << small;
  EXPECT_LT(small.size(), 500u) << small;
}

TEST_F(OracleTest, MutantsAreReproducible) {
  std::string text = textOf(1);
  EXPECT_EQ(mutate(text, 7), mutate(text, 7));
  EXPECT_NE(mutate(text, 7), mutate(text, 8));
}
} // namespace
