//===- NameEdges.cpp - Keep the names of an entry's arguments and results -===//
// Later passes give results other producers; the name that a user wrote, from
// the location of the value, stays on the function as an attribute.
//===----------------------------------------------------------------------===//
#include "dialects/cleave/Cleave.h"
#include "dialects/dispatch/Dispatch.h"
#include "passes/dispatch/Passes.h"
#include "llvm/ADT/StringSet.h"
#define DEBUG_TYPE "cleave-name-edges"
namespace cleave {
#define GEN_PASS_DEF_NAMEEDGES
#include "passes/dispatch/Passes.h.inc"
} // namespace cleave

using namespace mlir;
using namespace cleave;

namespace {
struct NameEdges : cleave::impl::NameEdgesBase<NameEdges> {
  using Base::Base;
  void runOnOperation() override;
};
} // namespace

/// The name in the location, or the fallback where there is none or where
/// another argument or result has it already.
static StringAttr nameOf(Value value, const Twine &fallback,
                         llvm::StringSet<> &taken) {
  MLIRContext *context = value.getContext();
  auto named = value.getLoc()->findInstanceOf<NameLoc>();
  // A value of several results shares its location with the others.
  auto result = dyn_cast<OpResult>(value);
  bool alone = !result || result.getOwner()->getNumResults() == 1;
  // "%y" is only what the text calls it.
  bool given = named && !named.getName().getValue().starts_with("%");
  if (given && alone && taken.insert(named.getName()).second)
    return named.getName();
  return StringAttr::get(context, fallback);
}

/// Adds the name to the attributes that one argument or result has.
static DictionaryAttr withName(DictionaryAttr attrs, Value value,
                               const Twine &fallback,
                               llvm::StringSet<> &taken) {
  MLIRContext *context = value.getContext();
  if (attrs && attrs.get(dispatch::kNameAttr))
    return attrs;
  NamedAttrList named(attrs);
  named.set(dispatch::kNameAttr, nameOf(value, fallback, taken));
  return named.getDictionary(context);
}

static void nameEntry(func::FuncOp func) {
  llvm::StringSet<> inputs, outputs;
  // All at once: to set one is to write the list of all anew.
  SmallVector<DictionaryAttr> attrs;
  for (BlockArgument argument : func.getArguments()) {
    unsigned i = argument.getArgNumber();
    attrs.push_back(
        withName(func.getArgAttrDict(i), argument, "arg" + Twine(i), inputs));
  }
  func.setAllArgAttrs(attrs);
  attrs.clear();
  for (OpOperand &use :
       func.getBody().front().getTerminator()->getOpOperands()) {
    unsigned i = use.getOperandNumber();
    attrs.push_back(withName(func.getResultAttrDict(i), use.get(),
                             "res" + Twine(i), outputs));
  }
  func.setAllResultAttrs(attrs);
}

void NameEdges::runOnOperation() {
  for (auto func : getOperation().getOps<func::FuncOp>())
    if (func.isPublic() && !func.isExternal())
      nameEntry(func);
  // Analyses and verifiers of ops don't look at names.
  markAllAnalysesPreserved();
}
