//===- TieWeights.cpp - Weights that are one tensor -----------------------===//
#include "driver/TieWeights.h"
#include "dialects/cleave/Cleave.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "runtime/io/WeightMap.h"
#include "llvm/ADT/StringMap.h"

using namespace mlir;
using namespace cleave;

/// An entry's argument that is a weight.
namespace {
struct Binding {
  BlockArgument argument;
  StringAttr name;
  Attribute sharding; // null if it is not annotated
};
} // namespace

static SmallVector<Binding> findBindings(ModuleOp module) {
  SmallVector<Binding> bindings;
  for (auto func : module.getOps<func::FuncOp>())
    for (unsigned i = 0, e = func.getNumArguments(); i < e; ++i)
      if (auto name = func.getArgAttrOfType<StringAttr>(i, kWeightAttr);
          name && !func.isExternal())
        bindings.push_back(
            {func.getArgument(i), name, func.getArgAttr(i, kShardingAttr)});
  return bindings;
}

/// Why two weights cannot be one, or nothing.
static StringRef difference(const Binding &a, const Binding &b) {
  if (a.argument.getType() != b.argument.getType())
    return "has another type";
  if (a.sharding && b.sharding && a.sharding != b.sharding)
    return "is cut differently";
  return "";
}

llvm::Error cleave::tieWeights(ModuleOp module, StringRef path) {
  rt::WeightMap map;
  rt::Status status = map.open(path.str());
  if (!status.ok())
    return llvm::createStringError(status.message());
  SmallVector<Binding> bindings = findBindings(module);
  llvm::StringMap<Binding> firsts;
  // All bindings of a name get the new one, or none.
  llvm::StringMap<StringAttr> renamed;
  for (const Binding &binding : bindings) {
    std::string key = map.find(binding.name.str()).key();
    auto [it, isNew] = firsts.try_emplace(key, binding);
    const Binding &first = it->second;
    if (isNew || first.name == binding.name)
      continue;
    StringRef why = difference(first, binding);
    auto [other, isFirst] = renamed.try_emplace(binding.name, first.name);
    if (why.empty() || (!isFirst && !other->second))
      continue;
    other->second = nullptr;
    emitWarning(binding.argument.getLoc())
        << "the weight '" << binding.name.getValue()
        << "' is the same tensor as '" << first.name.getValue() << "', but "
        << why << "; it is stored twice";
  }
  for (const Binding &binding : bindings)
    if (StringAttr name = renamed.lookup(binding.name)) {
      auto func =
          cast<func::FuncOp>(binding.argument.getOwner()->getParentOp());
      func.setArgAttr(binding.argument.getArgNumber(), kWeightAttr, name);
    }
  return llvm::Error::success();
}
