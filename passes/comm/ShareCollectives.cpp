//===- ShareCollectives.cpp - Compute equal collectives once --------------===//
// Upstream's CSE keeps collectives apart whose causes differ. One walk with a
// table per block, whose lookups see those of the blocks around it.
//===----------------------------------------------------------------------===//
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "passes/comm/CommUtils.h"
#include "passes/comm/Passes.h"
#include "llvm/ADT/ScopedHashTable.h"
#define DEBUG_TYPE "cleave-share-collectives"

using namespace mlir;

namespace cleave {
#define GEN_PASS_DEF_SHARECOLLECTIVES
#include "passes/comm/Passes.h.inc"
} // namespace cleave

namespace {
using namespace cleave;

struct ShareCollectives : cleave::impl::ShareCollectivesBase<ShareCollectives> {
  using Base::Base;
  void runOnOperation() override;
};

constexpr StringLiteral kCause = "cause";

/// Compares ops by all but their cause.
struct ByMeaning : llvm::DenseMapInfo<Operation *> {
  static bool isMarker(const Operation *op) {
    return op == getEmptyKey() || op == getTombstoneKey();
  }
  static unsigned getHashValue(const Operation *constOp) {
    auto *op = const_cast<Operation *>(constOp);
    llvm::hash_code hash = llvm::hash_combine(
        op->getName(), llvm::hash_combine_range(op->getOperands()),
        llvm::hash_combine_range(op->getResultTypes()));
    for (NamedAttribute attr : op->getAttrDictionary())
      if (attr.getName() != kCause)
        hash = llvm::hash_combine(hash, attr.getName(), attr.getValue());
    return hash;
  }
  static bool isEqual(const Operation *constA, const Operation *constB) {
    if (constA == constB)
      return true;
    if (isMarker(constA) || isMarker(constB))
      return false;
    auto *a = const_cast<Operation *>(constA);
    auto *b = const_cast<Operation *>(constB);
    if (a->getName() != b->getName() || a->getOperands() != b->getOperands() ||
        a->getResultTypes() != b->getResultTypes())
      return false;
    NamedAttrList left(a->getAttrDictionary()), right(b->getAttrDictionary());
    left.erase(kCause);
    right.erase(kCause);
    return left.getDictionary(a->getContext()) ==
           right.getDictionary(b->getContext());
  }
};

using Table = llvm::ScopedHashTable<Operation *, Operation *, ByMeaning>;

/// Gives `kept` the cause of `gone` as well.
void addCause(Operation *kept, Operation *gone) {
  auto own = kept->getAttrOfType<comm::CauseAttr>(kCause);
  auto other = gone->getAttrOfType<comm::CauseAttr>(kCause);
  if (auto both = comm::joinCauses(kept->getContext(), {own, other}))
    kept->setAttr(kCause, both);
}

bool shareIn(Block &block, Table &table) {
  Table::ScopeTy scope(table);
  bool changed = false;
  for (Operation &op : llvm::make_early_inc_range(block)) {
    for (Region &region : op.getRegions())
      for (Block &inner : region)
        changed |= shareIn(inner, table);
    bool pure = isa<comm::CommDialect>(op.getDialect()) && isPure(&op);
    if (!pure)
      continue;
    Operation *first = table.lookup(&op);
    if (!first) {
      table.insert(&op, &op);
      continue;
    }
    addCause(first, &op);
    op.replaceAllUsesWith(first);
    op.erase();
    changed = true;
  }
  return changed;
}

} // namespace

void ShareCollectives::runOnOperation() {
  bool changed = false;
  for (auto function : getOperation().getOps<FunctionOpInterface>()) {
    Table table;
    for (Block &block : function.getFunctionBody())
      changed |= shareIn(block, table);
  }
  if (!changed)
    markAllAnalysesPreserved();
}
