//===- PlanMemory.cpp - Give every tensor a place -------------------------===//
// Functions are planned callees first: a call site needs to know how large the
// callee's frame is and which arguments it takes over. Weights and states lie
// one after the other in the resident area.
//===----------------------------------------------------------------------===//
#include "dialects/cleave/Cleave.h"
#include "mlir/Pass/PassManager.h"
#include "passes/memory/Passes.h"
#include "passes/memory/Storage.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringSet.h"
#include <map>
#define DEBUG_TYPE "cleave-plan-memory"
namespace cleave {
#define GEN_PASS_DEF_PLANMEMORY
#include "passes/memory/Passes.h.inc"
} // namespace cleave

using namespace mlir;
using namespace cleave;

namespace {
struct PlanMemory : cleave::impl::PlanMemoryBase<PlanMemory> {
  using Base::Base;
  void getDependentDialects(DialectRegistry &registry) const override {
    Base::getDependentDialects(registry);
    // Kernels are lowered to see how large their temporaries are.
    kernels::registerKernelDialects(registry);
  }
  void runOnOperation() override;
};

/// A weight or state, and where it lies.
struct Resident {
  int64_t bytes = 0;
  /// Read by an entry in this form, not only to be packed.
  bool needed = false;
};
} // namespace

std::optional<kernels::IsaLevel> cleave::parseIsa(StringRef name) {
  for (kernels::IsaLevel level : kernels::CpuIsa::all())
    if (kernels::CpuIsa::get(level).name() == name)
      return level;
  return std::nullopt;
}

static bool isPlanned(func::FuncOp func) {
  return !func.isExternal() && !func->hasAttr(dispatch::kKernelAttr);
}

/// By `residentName`, in the order of the arguments.
using Residents =
    llvm::MapVector<std::string, Resident, std::map<std::string, unsigned>>;

static Residents findResidents(ModuleOp module) {
  Residents found;
  for (auto func : module.getOps<func::FuncOp>()) {
    if (!isPlanned(func))
      continue;
    for (auto [i, type] : llvm::enumerate(func.getArgumentTypes())) {
      std::string name = residentName(func.getArgAttrDict(i));
      if (name.empty())
        continue;
      Resident &resident = found[name];
      resident.bytes = std::max(resident.bytes, bytesOf(type));
      resident.needed |= !func->hasAttr(dispatch::kInitAttr);
    }
  }
  return found;
}

/// For plain weights the packed form that takes their place: `init` copies it
/// there when nobody needs the plain one any more.
static llvm::StringMap<std::string> takenPlaces(ModuleOp module) {
  llvm::StringMap<std::string> taken;
  for (auto func : module.getOps<func::FuncOp>()) {
    if (!func->hasAttr(dispatch::kInitAttr))
      continue;
    Operation *ret = func.getBody().front().getTerminator();
    for (OpOperand &use : ret->getOpOperands())
      if (use.get().getDefiningOp<dispatch::CopyOp>()) {
        StringRef packed = func.getResultAttrOfType<StringAttr>(
            use.getOperandNumber(), dispatch::kResidentAttr);
        taken[packed.split(kPackedSeparator).first] = packed.str();
      }
  }
  return taken;
}

static int64_t placeResidents(ModuleOp module, StorageContext &context) {
  Residents found = findResidents(module);
  llvm::StringMap<std::string> taken = takenPlaces(module);
  // The last one needs no room behind it.
  int64_t end = 0;
  auto place = [&](StringRef name, int64_t bytes) {
    int64_t start = llvm::alignTo(end, kMemoryAlignment);
    context.resident[name] = start;
    end = start + bytes;
  };
  for (auto &[name, resident] : found) {
    if (context.resident.contains(name))
      continue;
    StringRef plain = StringRef(name).split(kPackedSeparator).first;
    std::string other = taken.lookup(plain);
    if (other.empty() || (name != other && name != plain)) {
      place(name, resident.bytes);
      continue;
    }
    place(plain, std::max(found[plain.str()].bytes, found[other].bytes));
    context.resident[other] = context.resident[plain];
  }
  return end;
}

static LogicalResult planAfterCallees(func::FuncOp func,
                                      StorageContext &context,
                                      llvm::StringSet<> &done) {
  if (!done.insert(func.getSymName()).second)
    return success();
  WalkResult walk = func.walk([&](func::CallOp call) {
    auto callee =
        context.symbols->lookup<func::FuncOp>(call.getCalleeAttr().getAttr());
    return WalkResult(planAfterCallees(callee, context, done));
  });
  if (walk.wasInterrupted())
    return failure();
  return Storage(func, context).run();
}

void PlanMemory::runOnOperation() {
  ModuleOp module = getOperation();
  SymbolTable symbols(module);
  StorageContext context;
  std::optional<kernels::IsaLevel> level = parseIsa(isa);
  if (!level) {
    module.emitError() << "'" << isa
                       << "' is no instruction set; known are "
                          "avx2, avx512, avx512bf16 and amx";
    return signalPassFailure();
  }
  context.isa = *level;
  context.symbols = &symbols;
  int64_t residentBytes = placeResidents(module, context);
  module->setAttr(
      dispatch::kResidentBytesAttr,
      Builder(module.getContext()).getI64IntegerAttr(residentBytes));
  llvm::StringSet<> done;
  for (auto func : module.getOps<func::FuncOp>())
    if (isPlanned(func) && failed(planAfterCallees(func, context, done)))
      return signalPassFailure();
}

/// Weights that entries read in several forms.
static std::vector<MemorySummary::Repeated> findRepeated(ModuleOp planned) {
  llvm::MapVector<std::string, MemorySummary::Repeated,
                  std::map<std::string, unsigned>>
      weights;
  for (auto &[name, resident] : findResidents(planned)) {
    auto [plain, layout] = StringRef(name).split(kPackedSeparator);
    if (!resident.needed || !plain.consume_front("weight "))
      continue;
    MemorySummary::Repeated &weight = weights[plain.str()];
    weight.name = plain;
    // The layout without the type in front.
    weight.forms.push_back({layout.split("> ").second.str(), resident.bytes});
  }
  std::vector<MemorySummary::Repeated> repeated;
  for (auto &[name, weight] : weights)
    if (weight.forms.size() > 1)
      repeated.push_back(weight);
  return repeated;
}

MemorySummary cleave::summarizeMemory(ModuleOp planned) {
  MemorySummary summary;
  auto integer = [](Operation *op, StringRef name) {
    auto value = op->getAttrOfType<IntegerAttr>(name);
    return value ? value.getInt() : 0;
  };
  summary.resident = integer(planned, dispatch::kResidentBytesAttr);
  for (auto &[name, resident] : findResidents(planned))
    if (StringRef(name).starts_with("state "))
      summary.states += llvm::alignTo(resident.bytes, kMemoryAlignment);
  summary.weights = summary.resident - summary.states;
  summary.repeated = findRepeated(planned);
  SymbolTable symbols(planned);
  for (auto func : planned.getOps<func::FuncOp>()) {
    int64_t frame = integer(func, dispatch::kFrameBytesAttr);
    if (func->hasAttr(dispatch::kInitAttr))
      summary.initArena = frame;
    if (isPlanned(func) &&
        (func.isPublic() || func->hasAttr(dispatch::kInitAttr)))
      summary.arena = std::max(summary.arena, frame);
    if (!func.isPublic())
      continue;
    MemorySummary::Entry entry;
    entry.name = func.getSymName();
    entry.arena = frame;
    for (auto [i, type] : llvm::enumerate(func.getArgumentTypes()))
      if (residentName(func.getArgAttrDict(i)).empty())
        entry.inputs += bytesOf(type);
    for (auto [i, type] : llvm::enumerate(func.getResultTypes()))
      if (residentName(func.getResultAttrDict(i)).empty())
        entry.outputs += bytesOf(type);
    func.walk([&](dispatch::CallOp call) {
      auto kernel = symbols.lookup(call.getCallee());
      entry.workspace = std::max(entry.workspace,
                                 integer(kernel, dispatch::kScratchBytesAttr));
    });
    summary.entries.push_back(entry);
  }
  return summary;
}

void cleave::buildMemoryPipeline(OpPassManager &pm, kernels::IsaLevel isa) {
  std::string name = kernels::CpuIsa::get(isa).name().str();
  // Before offsets are given: packed weights have other sizes.
  pm.addPass(createPackWeights({name}));
  pm.addPass(createPlanMemory({name}));
  pm.addPass(createVerifyPlanned());
}
