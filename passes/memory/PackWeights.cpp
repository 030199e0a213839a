//===- PackWeights.cpp - Lay weights out as products want -----------------===//
// A product reads a packed weight in the order in which it computes. A weight
// reaches products through calls, so what an argument of a private function is
// packed as is decided for all functions together: all its readers want one
// layout, and every call passes a weight or such an argument. An entry's weight
// may be wanted in several forms; each is an argument of its own.
//===----------------------------------------------------------------------===//
#include "dialects/cleave/Cleave.h"
#include "passes/memory/Passes.h"
#include "passes/memory/Storage.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringSet.h"
#include <functional>
#include <map>
#define DEBUG_TYPE "cleave-pack-weights"
namespace cleave {
#define GEN_PASS_DEF_PACKWEIGHTS
#include "passes/memory/Passes.h.inc"
} // namespace cleave

using namespace mlir;
using namespace cleave;

namespace {
struct PackWeights : cleave::impl::PackWeightsBase<PackWeights> {
  using Base::Base;
  void getDependentDialects(DialectRegistry &registry) const override {
    Base::getDependentDialects(registry);
    kernels::registerKernelDialects(registry);
  }
  void runOnOperation() override;
};

class Packer {
public:
  Packer(ModuleOp module, kernels::IsaLevel isa)
      : module(module), symbols(module), target(kernels::CpuIsa::get(isa)) {}
  void run();

private:
  // Decisions.
  void collect();
  void decide();
  bool dropUnfit();
  std::string wanted(OpOperand &use);
  std::string wantedByAll(BlockArgument argument);
  bool isPackedSource(Value value, StringRef layout);
  const kernels::PackPlan *planFor(dispatch::CallOp call, unsigned operand);

  // Changes.
  void packPrivateArguments(func::FuncOp func);
  void packWeights(func::FuncOp entry);
  void useVariants();
  func::FuncOp variantOf(func::FuncOp kernel, ArrayRef<unsigned> operands);
  void buildInit();

  struct Packing {
    DictionaryAttr attributes; // of the plain argument
    RankedTensorType plain;
    std::string layout;
  };

  ModuleOp module;
  SymbolTable symbols;
  kernels::CpuIsa target;
  SmallVector<func::FuncOp> funcs; // callees first
  DenseMap<StringAttr, SmallVector<func::CallOp>> callSites;
  DenseMap<std::pair<StringAttr, unsigned>, std::optional<kernels::PackPlan>>
      plans;
  llvm::StringMap<kernels::PackPlan> layouts;
  /// Layout of arguments of private functions; empty: plain.
  DenseMap<Value, std::string> packed;
  DenseSet<Value> unfit;
  llvm::StringMap<func::FuncOp> variants;
  llvm::MapVector<std::string, Packing, std::map<std::string, unsigned>>
      packings;
};
} // namespace

//===----------------------------------------------------------------------===//
// Decisions
//===----------------------------------------------------------------------===//

void Packer::collect() {
  llvm::StringSet<> done;
  std::function<void(func::FuncOp)> visit = [&](func::FuncOp func) {
    if (func.isExternal() || func->hasAttr(dispatch::kKernelAttr) ||
        !done.insert(func.getSymName()).second)
      return;
    func.walk([&](func::CallOp call) {
      auto callee = symbols.lookup<func::FuncOp>(call.getCallee());
      callSites[callee.getSymNameAttr()].push_back(call);
      visit(callee);
    });
    funcs.push_back(func);
  };
  for (auto func : module.getOps<func::FuncOp>())
    visit(func);
}

const kernels::PackPlan *Packer::planFor(dispatch::CallOp call,
                                         unsigned operand) {
  if (operand >= call.getInputs().size())
    return nullptr;
  auto key = std::pair(call.getCalleeAttr().getAttr(), operand);
  auto [it, fresh] = plans.try_emplace(key);
  if (fresh) {
    it->second = kernels::planPacking(
        symbols.lookup<func::FuncOp>(call.getCallee()), operand, target);
    if (it->second)
      layouts.try_emplace(it->second->key, *it->second);
  }
  return it->second ? &*it->second : nullptr;
}

/// The layout that one reader wants, or "" for the plain one.
std::string Packer::wanted(OpOperand &use) {
  if (auto call = dyn_cast<dispatch::CallOp>(use.getOwner())) {
    const kernels::PackPlan *plan = planFor(call, use.getOperandNumber());
    return plan ? plan->key : "";
  }
  if (auto call = dyn_cast<func::CallOp>(use.getOwner())) {
    auto callee = symbols.lookup<func::FuncOp>(call.getCallee());
    return packed.lookup(callee.getArgument(use.getOperandNumber()));
  }
  return "";
}

std::string Packer::wantedByAll(BlockArgument argument) {
  std::string layout;
  for (OpOperand &use : argument.getUses()) {
    std::string one = wanted(use);
    if (one.empty() || (!layout.empty() && one != layout))
      return "";
    layout = one;
  }
  return layout;
}

/// Whether a weight, or an argument that is packed so, is passed.
bool Packer::isPackedSource(Value value, StringRef layout) {
  auto argument = dyn_cast<BlockArgument>(value);
  auto func = argument
                  ? dyn_cast<func::FuncOp>(argument.getOwner()->getParentOp())
                  : func::FuncOp();
  if (!func)
    return false;
  if (func.isPublic())
    return func.getArgAttr(argument.getArgNumber(), kWeightAttr) != nullptr;
  return packed.lookup(argument) == layout;
}

bool Packer::dropUnfit() {
  bool dropped = false;
  for (func::FuncOp func : funcs)
    for (BlockArgument argument : func.getArguments()) {
      std::string layout = packed.lookup(argument);
      if (layout.empty())
        continue;
      bool fits = llvm::all_of(
          callSites[func.getSymNameAttr()], [&](func::CallOp call) {
            return isPackedSource(call.getOperand(argument.getArgNumber()),
                                  layout);
          });
      if (!fits)
        dropped |= unfit.insert(argument).second;
    }
  return dropped;
}

void Packer::decide() {
  do {
    packed.clear();
    for (func::FuncOp func : funcs) {
      if (func.isPublic())
        continue;
      for (BlockArgument argument : func.getArguments())
        if (isa<RankedTensorType>(argument.getType()) &&
            !unfit.contains(argument))
          if (std::string layout = wantedByAll(argument); !layout.empty())
            packed[argument] = layout;
    }
  } while (dropUnfit());
}

//===----------------------------------------------------------------------===//
// Changes
//===----------------------------------------------------------------------===//

void Packer::packPrivateArguments(func::FuncOp func) {
  for (BlockArgument argument : func.getArguments())
    if (auto it = packed.find(argument); it != packed.end())
      argument.setType(layouts.at(it->second).packed);
  func.setType(FunctionType::get(func.getContext(),
                                 func.getBody().front().getArgumentTypes(),
                                 func.getResultTypes()));
}

/// Of the packed form: how the plain one is cut says nothing about it.
static DictionaryAttr packedAttributes(DictionaryAttr plain, StringRef layout) {
  NamedAttrList list(plain);
  list.erase(kShardingAttr);
  list.erase(kGlobalTypeAttr);
  list.set(dispatch::kPackedAttr, StringAttr::get(plain.getContext(), layout));
  return list.getDictionary(plain.getContext());
}

void Packer::packWeights(func::FuncOp entry) {
  llvm::BitVector unused(entry.getNumArguments());
  for (unsigned i = 0, e = entry.getNumArguments(); i < e; ++i) {
    DictionaryAttr attributes = entry.getArgAttrDict(i);
    if (!attributes || !attributes.contains(kWeightAttr))
      continue;
    BlockArgument plain = entry.getArgument(i);
    llvm::MapVector<std::string, SmallVector<OpOperand *>,
                    std::map<std::string, unsigned>>
        readers;
    for (OpOperand &use : plain.getUses())
      if (std::string layout = wanted(use); !layout.empty())
        readers[layout].push_back(&use);
    for (auto &[layout, uses] : readers) {
      DictionaryAttr all = packedAttributes(attributes, layout);
      packings.try_emplace(
          residentName(all),
          Packing{attributes, cast<RankedTensorType>(plain.getType()), layout});
      unsigned position = entry.getNumArguments();
      (void)entry.insertArgument(position, layouts.at(layout).packed, all,
                                 plain.getLoc());
      for (OpOperand *use : uses)
        use->set(entry.getArgument(position));
    }
    if (!readers.empty() && plain.use_empty())
      unused.set(i);
  }
  unused.resize(entry.getNumArguments());
  (void)entry.eraseArguments(unused);
}

func::FuncOp Packer::variantOf(func::FuncOp kernel,
                               ArrayRef<unsigned> operands) {
  std::string key = kernel.getSymName().str();
  for (unsigned operand : operands)
    key += "|" + std::to_string(operand);
  func::FuncOp &variant = variants[key];
  if (variant)
    return variant;
  variant = kernel.clone();
  variant.setSymName((kernel.getSymName() + "_packed").str());
  symbols.insert(variant, Block::iterator(kernel));
  for (unsigned operand : operands)
    kernels::applyPacking(variant,
                          *plans.at({kernel.getSymNameAttr(), operand}));
  return variant;
}

/// Calls whose operands are packed now call kernels that read them so.
void Packer::useVariants() {
  module.walk([&](dispatch::CallOp call) {
    auto kernel = symbols.lookup<func::FuncOp>(call.getCallee());
    SmallVector<unsigned> operands;
    for (auto [i, input] : llvm::enumerate(call.getInputs()))
      if (input.getType() != kernel.getArgumentTypes()[i])
        operands.push_back(i);
    if (!operands.empty())
      call.setCallee(variantOf(kernel, operands).getSymName());
  });
  llvm::StringSet<> called;
  module.walk([&](dispatch::CallOp call) { called.insert(call.getCallee()); });
  for (auto func : llvm::make_early_inc_range(module.getOps<func::FuncOp>()))
    if (func->hasAttr(dispatch::kKernelAttr) &&
        !called.contains(func.getSymName()))
      symbols.erase(func);
}

/// Plain weights in, packed ones out; run once after loading.
void Packer::buildInit() {
  if (packings.empty())
    return;
  // The last form is packed over the plain one where nobody needs that.
  llvm::StringMap<StringRef> lastForm;
  for (auto &[name, packing] : packings)
    lastForm[residentName(packing.attributes)] = name;
  for (func::FuncOp func : funcs)
    for (unsigned i = 0, e = func.getNumArguments(); i < e; ++i)
      lastForm.erase(residentName(func.getArgAttrDict(i)));

  OpBuilder b = OpBuilder::atBlockEnd(module.getBody());
  Location loc = module.getLoc();
  auto init = func::FuncOp::create(b, loc, "init",
                                   FunctionType::get(b.getContext(), {}, {}));
  init.setPrivate();
  init->setAttr(dispatch::kInitAttr, b.getUnitAttr());
  symbols.insert(init);
  Block *body = init.addEntryBlock();
  llvm::StringMap<func::FuncOp> packKernels;
  llvm::StringMap<Value> plainArguments;
  SmallVector<Value> results;
  SmallVector<DictionaryAttr> resultAttributes, argumentAttributes;
  b.setInsertionPointToEnd(body);
  for (auto &[name, packing] : packings) {
    const kernels::PackPlan &plan = layouts.at(packing.layout);
    func::FuncOp &kernel = packKernels[plan.key];
    if (!kernel) {
      kernel = kernels::buildPackKernel(module, plan, "pack");
      kernel->setAttr(dispatch::kKernelAttr, b.getUnitAttr());
      kernel.setPrivate();
      // Several layouts: the symbol table finds free names.
      kernel->remove();
      symbols.insert(kernel);
    }
    std::string plainName = residentName(packing.attributes);
    Value &plain = plainArguments[plainName];
    if (!plain) {
      plain = body->addArgument(packing.plain, loc);
      argumentAttributes.push_back(packing.attributes);
    }
    Value empty = tensor::EmptyOp::create(b, loc, plan.packed.getShape(),
                                          plan.packed.getElementType());
    Value made = dispatch::CallOp::create(b, loc, kernel.getSymName(),
                                          ValueRange(plain), ValueRange(empty))
                     .getResult(0);
    if (lastForm.lookup(plainName) == name)
      made = dispatch::CopyOp::create(b, loc, made.getType(), made);
    results.push_back(made);
    resultAttributes.push_back(b.getDictionaryAttr(
        b.getNamedAttr(dispatch::kResidentAttr, b.getStringAttr(name))));
  }
  func::ReturnOp::create(b, loc, results);
  init.setType(FunctionType::get(b.getContext(), body->getArgumentTypes(),
                                 ValueRange(results).getTypes()));
  init.setAllArgAttrs(argumentAttributes);
  init.setAllResultAttrs(resultAttributes);
}

void Packer::run() {
  collect();
  decide();
  // Readers are asked before any type changes.
  for (func::FuncOp func : funcs)
    if (func.isPublic())
      packWeights(func);
  for (func::FuncOp func : funcs)
    if (!func.isPublic())
      packPrivateArguments(func);
  useVariants();
  buildInit();
}

void PackWeights::runOnOperation() {
  std::optional<kernels::IsaLevel> level = parseIsa(isa);
  if (!level) {
    getOperation().emitError()
        << "'" << isa
        << "' is no instruction set; known are avx2, avx512, avx512bf16 "
           "and amx";
    return signalPassFailure();
  }
  Packer(getOperation(), *level).run();
}
