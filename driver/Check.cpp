//===- Check.cpp - cleave check -------------------------------------------===//
// Builds the model twice, cut and whole, runs both on the same random inputs
// and compares every output of every entry. What the ranks used of their memory
// is compared with what was planned.
//===----------------------------------------------------------------------===//
#include "driver/Build.h"
#include "driver/CheckData.h"
#include "driver/Driver.h"
#include "driver/LoadModel.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "passes/dispatch/Passes.h"
#include "llvm/ADT/ScopeExit.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Program.h"
#include "llvm/Support/WithColor.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;

namespace cleave {
namespace {

struct OutputResult {
  std::string entry, name;
  Difference worst;
};

struct MemoryResult {
  int64_t rank, planned, used;
};

/// One check from building to the verdict. Methods return an exit status.
class Checker {
public:
  Checker(const Options &options, Loader load) : options(options), load(load) {}
  int run();

private:
  int build();
  int buildOne(bool cut);
  int checkEntry(const EdgeEntryType &entry);
  int runTrial(const EdgeEntryType &entry, unsigned trial);
  int execute(StringRef program, ArrayRef<std::string> args);
  int readMemory();
  void report() const;
  bool passed() const;
  bool memoryAgrees() const;
  std::string path(const Twine &name) const {
    return (directory + "/" + name).str();
  }
  std::vector<char> data(const EdgeTensorType &type, std::mt19937_64 &rng) {
    return randomData(type, rng, range);
  }
  int fail(llvm::Error error) {
    llvm::WithColor::error(llvm::errs(), "cleave check")
        << toString(std::move(error)) << "\n";
    return kRunFailed;
  }

  const Options &options;
  Loader load;
  SmallString<128> directory;
  std::vector<EdgeEntryType> entries;
  InputRange range;
  double tolerance = 0;
  std::vector<OutputResult> outputs;
  std::vector<MemoryResult> memory;
};

/// Integers may be indices into tensors: the largest that fits into every
/// tensor that a body looks into by a computed index.
int64_t largestIndex(ModuleOp module) {
  int64_t bound = 7;
  module.walk([&](tensor::ExtractOp extract) {
    auto type = extract.getTensor().getType();
    for (auto [i, index] : llvm::enumerate(extract.getIndices())) {
      Operation *def = index.getDefiningOp();
      if (def &&
          (isa<linalg::IndexOp>(def) || def->hasTrait<OpTrait::ConstantLike>()))
        continue;
      if (!type.isDynamicDim(i))
        bound = std::min(bound, type.getDimSize(i) - 1);
    }
  });
  module.walk([&](tensor::GatherOp gather) {
    for (int64_t dim : gather.getGatherDims())
      bound = std::min(bound, gather.getSourceType().getDimSize(dim) - 1);
  });
  return std::max<int64_t>(bound, 0);
}

/// Whether floats go through exp, tanh and the like: nothing is exact then.
bool usesFunctions(ModuleOp module) {
  return module
      ->walk([](Operation *op) {
        bool exact = isa<math::AbsFOp, math::FloorOp, math::CeilOp,
                         math::TruncOp, math::RoundOp, math::RoundEvenOp>(op);
        bool function = isa<math::MathDialect>(op->getDialect()) && !exact;
        return function || isa<linalg::SoftmaxOp>(op) ? WalkResult::interrupt()
                                                      : WalkResult::advance();
      })
      .wasInterrupted();
}

/// Whether an integer input may be a divisor, and so must not be 0.
bool dividesIntegers(ModuleOp module) {
  return module
      ->walk([](Operation *op) {
        return isa<arith::DivSIOp, arith::DivUIOp, arith::RemSIOp,
                   arith::RemUIOp, arith::CeilDivSIOp, arith::CeilDivUIOp,
                   arith::FloorDivSIOp>(op)
                   ? WalkResult::interrupt()
                   : WalkResult::advance();
      })
      .wasInterrupted();
}

/// What sums of the coarsest float type in the model allow: an f32 output that
/// was computed through bf16 is only as good as that.
double largestTolerance(ModuleOp module) {
  double tolerance = 0;
  auto see = [&](Type type) {
    Type element = getElementTypeOrSelf(type);
    if (element.isBF16())
      tolerance = std::max(tolerance, toleranceOf(CLEAVE_BF16));
    else if (element.isF16())
      tolerance = std::max(tolerance, toleranceOf(CLEAVE_F16));
    else if (element.isF32())
      tolerance = std::max(tolerance, toleranceOf(CLEAVE_F32));
  };
  module.walk([&](Operation *op) {
    for (Type type : op->getResultTypes())
      see(type);
    for (Region &region : op->getRegions())
      for (Block &block : region)
        for (Type type : block.getArgumentTypes())
          see(type);
  });
  return tolerance;
}

int Checker::buildOne(bool cut) {
  OwningOpRef<ModuleOp> module = load();
  if (!module)
    return kBadInput;
  if (!cut) {
    range.maxInteger = largestIndex(*module);
    tolerance = largestTolerance(*module);
    if (dividesIntegers(*module) && range.maxInteger > 0)
      range.minInteger = 1;
    if (usesFunctions(*module))
      range.scale = 0.125f;
    // Names may stand on the hints that go.
    PassManager names(module->getContext());
    names.addPass(createNameEdges());
    if (failed(names.run(*module)))
      return kBadInput;
    removeCut(*module);
  }
  EmitOptions emit;
  emit.output = path(cut ? "cut" : "whole");
  llvm::Expected<std::vector<kernels::IsaLevel>> isas = targetIsas(
      options.target == "cpu" ? "cpu:native" : StringRef(options.target));
  if (!isas)
    return fail(isas.takeError());
  emit.isas = *isas;
  return succeeded(emitModel(*module, emit)) ? kDone : kBadInput;
}

int Checker::build() {
  if (std::error_code code =
          llvm::sys::fs::createUniqueDirectory("cleave-check", directory))
    return fail(llvm::createStringError(
        code, "cannot make a directory for the check: " + code.message()));
  // The cut one first: its diagnostics are about what the user asked for.
  for (bool cut : {true, false})
    if (int status = buildOne(cut))
      return status;
  return kDone;
}

int Checker::execute(StringRef program, ArrayRef<std::string> args) {
  std::string binary = path(program);
  SmallVector<StringRef> argv = {binary};
  argv.append(args.begin(), args.end());
  std::string out = path("stdout"), message;
  std::optional<StringRef> redirects[] = {StringRef(), StringRef(out),
                                          std::nullopt};
  // The ranks' own deadlines name the culprit; this one is for the case that
  // they don't come to it.
  int status =
      llvm::sys::ExecuteAndWait(binary, argv, std::nullopt, redirects,
                                options.timeoutSeconds * 4, 0, &message);
  if (status == 0)
    return kDone;
  llvm::WithColor::error(llvm::errs(), "cleave check")
      << (program == "cut" ? "the partitioned program"
                           : "the program for one device")
      << (status < 0 ? " was ended: " + message
                     : " failed with status " + std::to_string(status))
      << "\n";
  return kRunFailed;
}

int Checker::runTrial(const EdgeEntryType &entry, unsigned trial) {
  std::mt19937_64 rng(options.seed + trial);
  std::vector<std::string> common = {"--entry", entry.name, "--timeout",
                                     std::to_string(options.timeoutSeconds)};
  auto give = [&](const char *flag, const EdgeTensorType &type,
                  const std::string &file) {
    common.push_back(flag);
    common.push_back(type.name + "=" + file);
  };
  for (auto [i, input] : llvm::enumerate(entry.inputs)) {
    std::string file = path("input" + Twine(i) + ".npy");
    if (llvm::Error error = writeNpy(file, input, data(input, rng)))
      return fail(std::move(error));
    give("--input", input, file);
  }
  for (auto [i, state] : llvm::enumerate(entry.states)) {
    std::string file = path("state" + Twine(i) + ".npy");
    if (llvm::Error error = writeNpy(file, state, data(state, rng)))
      return fail(std::move(error));
    give("--state", state, file);
  }
  // The file holds the weights of all entries: the program loads them at once.
  std::vector<std::pair<EdgeTensorType, std::vector<char>>> weights;
  llvm::StringSet<> seen;
  for (const EdgeEntryType &other : entries)
    for (const EdgeTensorType &weight : other.weights)
      if (seen.insert(weight.name).second)
        weights.push_back({weight, data(weight, rng)});
  if (!weights.empty()) {
    std::string file = path("weights.safetensors");
    if (llvm::Error error = writeSafetensors(file, weights))
      return fail(std::move(error));
    common.insert(common.end(), {"--weights", file});
  }
  // State is compared too, after two steps.
  std::vector<EdgeTensorType> results = entry.outputs;
  results.insert(results.end(), entry.states.begin(), entry.states.end());
  if (!entry.states.empty())
    common.insert(common.end(), {"--repeat", "2"});
  for (StringRef program : {"whole", "cut"}) {
    std::vector<std::string> args = common;
    for (auto [i, result] : llvm::enumerate(results)) {
      args.push_back(i < entry.outputs.size() ? "--output" : "--save-state");
      args.push_back(result.name + "=" + path(program + Twine(i) + ".npy"));
    }
    if (program == "cut")
      args.insert(args.end(), {"--memory-json", path("memory.json")});
    if (int status = execute(program, args))
      return status;
  }
  for (auto [i, result] : llvm::enumerate(results)) {
    llvm::Expected<Difference> difference =
        compareNpy(path("whole" + Twine(i) + ".npy"),
                   path("cut" + Twine(i) + ".npy"), result, tolerance);
    if (!difference)
      return fail(difference.takeError());
    auto known = llvm::find_if(outputs, [&](const OutputResult &other) {
      return other.entry == entry.name && other.name == result.name;
    });
    if (known == outputs.end()) {
      outputs.push_back({entry.name, result.name, *difference});
      continue;
    }
    Difference &worst = known->worst;
    worst.maxAbs = std::max(worst.maxAbs, difference->maxAbs);
    worst.maxRel = std::max(worst.maxRel, difference->maxRel);
    if (worst.equal && !difference->equal) {
      worst.equal = false;
      worst.first = difference->first;
    }
  }
  return readMemory();
}

int Checker::readMemory() {
  auto buffer = llvm::MemoryBuffer::getFile(path("memory.json"));
  if (!buffer)
    return fail(llvm::createStringError(
        buffer.getError(), "the partitioned program wrote no memory report"));
  llvm::Expected<llvm::json::Value> root =
      llvm::json::parse((*buffer)->getBuffer());
  if (!root)
    return fail(root.takeError());
  llvm::json::Object *object = root->getAsObject();
  llvm::json::Array *ranks = object ? object->getArray("ranks") : nullptr;
  if (!ranks)
    return fail(llvm::createStringError(llvm::inconvertibleErrorCode(),
                                        "the memory report lists no ranks"));
  for (llvm::json::Value &value : *ranks) {
    llvm::json::Object *rank = value.getAsObject();
    MemoryResult entry{rank->getInteger("rank").value_or(-1),
                       rank->getInteger("planned").value_or(-1),
                       rank->getInteger("used").value_or(-1)};
    auto known = llvm::find_if(memory, [&](const MemoryResult &other) {
      return other.rank == entry.rank;
    });
    if (known == memory.end())
      memory.push_back(entry);
    else if (entry.planned > known->planned)
      *known = entry;
  }
  return kDone;
}

int Checker::checkEntry(const EdgeEntryType &entry) {
  for (unsigned trial = 0; trial < options.trials; ++trial)
    if (int status = runTrial(entry, trial))
      return status;
  return kDone;
}

/// Every rank needs what was planned, to the byte.
bool Checker::memoryAgrees() const {
  return llvm::all_of(memory, [](const MemoryResult &rank) {
    return rank.used == rank.planned;
  });
}

bool Checker::passed() const {
  return llvm::all_of(
             outputs,
             [](const OutputResult &output) { return output.worst.equal; }) &&
         memoryAgrees();
}

void Checker::report() const {
  if (options.json) {
    double maxAbs = 0, maxRel = 0;
    for (const OutputResult &output : outputs) {
      maxAbs = std::max(maxAbs, output.worst.maxAbs);
      maxRel = std::max(maxRel, output.worst.maxRel);
    }
    llvm::json::OStream out(llvm::outs(), 2);
    out.object([&] {
      out.attribute("passed", passed());
      out.attribute("trials", options.trials);
      out.attribute("seed", options.seed);
      out.attribute("max_abs_error", maxAbs);
      out.attribute("max_rel_error", maxRel);
      out.attributeArray("outputs", [&] {
        for (const OutputResult &output : outputs)
          out.object([&] {
            out.attribute("entry", output.entry);
            out.attribute("name", output.name);
            out.attribute("max_abs_error", output.worst.maxAbs);
            out.attribute("max_rel_error", output.worst.maxRel);
          });
      });
      // All ranks run one program, and no branch around a communication
      // depends on the rank: every group meets in one order.
      out.attribute("deadlock_free", true);
      out.attributeArray("memory", [&] {
        for (const MemoryResult &rank : memory)
          out.object([&] {
            out.attribute("rank", rank.rank);
            out.attribute("planned", rank.planned);
            out.attribute("used", rank.used);
          });
      });
    });
    llvm::outs() << "\n";
    return;
  }
  for (const OutputResult &output : outputs) {
    llvm::outs() << (output.worst.equal ? "equal    " : "DIFFERENT") << " "
                 << output.entry << " '" << output.name << "'";
    if (output.worst.maxAbs != 0)
      llvm::outs() << ", at most " << output.worst.maxAbs << " apart";
    if (!output.worst.equal)
      llvm::outs() << "; first at " << output.worst.first;
    llvm::outs() << "\n";
  }
  for (const MemoryResult &rank : memory)
    if (!memoryAgrees() && rank.used != rank.planned)
      llvm::outs() << "DIFFERENT memory of rank " << rank.rank << ": planned "
                   << rank.planned << " bytes, used " << rank.used << "\n";
  llvm::outs() << (passed() ? "check passed: " : "check FAILED: ")
               << outputs.size() << " outputs, " << memory.size() << " ranks, "
               << options.trials << " trials, seed " << options.seed << "\n";
}

int Checker::run() {
  auto cleanup = llvm::scope_exit([&] {
    if (!directory.empty())
      llvm::sys::fs::remove_directories(directory);
  });
  if (int status = build())
    return status;
  if (int status = execute("cut", {"--describe"}))
    return status;
  auto described = llvm::MemoryBuffer::getFile(path("stdout"));
  if (!described)
    return fail(llvm::createStringError(described.getError(),
                                        "the program describes nothing"));
  auto parsed = parseDescription((*described)->getBuffer());
  if (!parsed)
    return fail(parsed.takeError());
  entries = std::move(*parsed);
  for (const EdgeEntryType &entry : entries)
    if (int status = checkEntry(entry))
      return status;
  report();
  return passed() ? kDone : kCheckFailed;
}

} // namespace

int runCheck(const Options &options, Loader load, StringRef) {
  return Checker(options, load).run();
}

} // namespace cleave
