//===- CheckModel.cpp - Report what cannot be cut -------------------------===//
// Stands before everything else, so that later phases may take static tensors,
// single blocks and an acyclic call graph for granted.
//===----------------------------------------------------------------------===//
#include "dialects/cleave/Cleave.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Interfaces/CallInterfaces.h"
#include "passes/Passes.h"
#include "passes/propagate/ProgramGraph.h"
#define DEBUG_TYPE "cleave-check-model"

using namespace mlir;

namespace cleave {
#define GEN_PASS_DEF_CHECKMODEL
#include "passes/Passes.h.inc"
} // namespace cleave

namespace {
using namespace cleave;

struct CheckModel : cleave::impl::CheckModelBase<CheckModel> {
  using Base::Base;
  void runOnOperation() override;
};

bool fitsMemory(RankedTensorType type) {
  int64_t room = (int64_t(1) << 47) / elementBytes(type.getElementType());
  for (int64_t size : type.getShape()) {
    if (size > room)
      return false;
    if (size > 1)
      room /= size;
  }
  return true;
}

/// `what` names the value in a message; naming costs a walk of the function, so
/// it is called for messages only.
LogicalResult checkType(Location loc, Type type,
                        function_ref<std::string()> what) {
  if (isa<UnrankedTensorType>(type))
    return emitError(loc) << what()
                          << " is an unranked tensor; give it a shape";
  if (auto tensor = dyn_cast<RankedTensorType>(type)) {
    if (!tensor.hasStaticShape())
      return emitError(loc)
             << what() << " has the dynamic type " << tensor
             << "; only static shapes can be cut: give each dim a size";
    if (!tensor.getElementType().isIntOrIndexOrFloat())
      return emitError(loc)
             << what() << " has the element type " << tensor.getElementType()
             << "; known are floats and integers";
    if (!fitsMemory(tensor))
      return emitError(loc) << what() << " has the type " << tensor
                            << ", which is more than 2^47 bytes: no computer "
                               "can address it";
    if (tensor.getEncoding())
      return emitError(loc)
             << what() << " has the encoding " << tensor.getEncoding()
             << ", which cannot be cut; remove it";
  }
  if (isa<TupleType>(type))
    return emitError(loc) << what() << " has the tuple type " << type
                          << "; return its members one by one";
  if (isa<BaseMemRefType, VectorType>(type))
    return emitError(loc) << what() << " has type " << type
                          << "; a model computes on tensors and scalars";
  return success();
}

std::string describe(Value value) { return "'" + valueName(value) + "'"; }

/// What to write instead of a scalar at the edge of the program.
std::string scalarHint(Type type) {
  if (!TensorType::isValidElementType(type))
    return "";
  std::string hint;
  llvm::raw_string_ostream(hint)
      << "; a scalar is a " << RankedTensorType::get({}, type);
  return hint;
}

/// Ops whose regions hold whole tensors: only these may.
bool mayHoldTensors(Operation *op) {
  return isa<ModuleOp, func::FuncOp, scf::ForOp>(op);
}

LogicalResult checkOp(Operation *op) {
  // Bodies of linalg ops are about scalars.
  for (Value result : op->getResults())
    if (failed(checkType(result.getLoc(), result.getType(),
                         [&] { return describe(result); })))
      return failure();
  if (isa<scf::IfOp, scf::WhileOp, scf::ParallelOp, scf::ForallOp,
          scf::IndexSwitchOp, scf::ExecuteRegionOp>(op)) {
    bool inBody = !mayHoldTensors(op->getParentOp());
    bool holds = llvm::any_of(op->getResultTypes(),
                              [](Type type) { return isa<TensorType>(type); });
    if (!inBody || holds)
      return op->emitOpError()
             << "is control flow around tensors, which cannot be cut; use "
                "scf.for, or select between values";
  }
  return success();
}

LogicalResult checkFunction(func::FuncOp function) {
  if (function.isExternal())
    return success();
  if (!function.getBody().hasOneBlock())
    return function.emitOpError()
           << "has " << function.getBody().getBlocks().size()
           << " blocks; a model's functions have one: use scf.for for loops";
  for (BlockArgument arg : function.getArguments())
    if (failed(checkType(arg.getLoc(), arg.getType(),
                         [&] { return describe(arg); })))
      return failure();
  for (auto [i, type] : llvm::enumerate(function.getResultTypes()))
    if (failed(checkType(function.getLoc(), type,
                         [&] { return "result " + std::to_string(i); })))
      return failure();
  for (BlockArgument arg : function.getArguments()) {
    bool marked = function.getArgAttr(arg.getArgNumber(), kWeightAttr) ||
                  function.getArgAttr(arg.getArgNumber(), kStateAttr);
    if (function.isPublic() && !isa<RankedTensorType>(arg.getType()))
      return emitError(arg.getLoc())
             << describe(arg) << " of entry '" << function.getName()
             << "' has type " << arg.getType()
             << "; entries take and return tensors"
             << scalarHint(arg.getType());
    if (marked && !function.isPublic())
      return emitError(arg.getLoc())
             << describe(arg) << " of the private function '"
             << function.getName()
             << "' is marked as weight or state; only an entry binds them";
  }
  if (function.isPublic())
    for (auto [i, type] : llvm::enumerate(function.getResultTypes()))
      if (!isa<RankedTensorType>(type))
        return function.emitOpError()
               << "returns " << type << " as result " << i
               << "; entries take and return tensors" << scalarHint(type);
  return success();
}

/// Weights and states of one name are one thing in all entries.
LogicalResult checkBindings(ModuleOp module) {
  llvm::StringMap<std::pair<BlockArgument, StringRef>> bound;
  for (func::FuncOp function : module.getOps<func::FuncOp>()) {
    if (!function.isPublic() || function.isExternal())
      continue;
    llvm::StringSet<> states;
    for (BlockArgument arg : function.getArguments())
      for (StringRef kind : {StringRef(kWeightAttr), StringRef(kStateAttr)}) {
        auto name =
            function.getArgAttrOfType<StringAttr>(arg.getArgNumber(), kind);
        if (!name)
          continue;
        if (kind == kStateAttr && !states.insert(name.getValue()).second)
          return emitError(arg.getLoc())
                 << describe(arg) << " binds the state '" << name.getValue()
                 << "' a second time in entry '" << function.getName() << "'";
        auto [it, isNew] = bound.try_emplace(name.getValue(), arg, kind);
        auto [other, otherKind] = it->second;
        if (isNew || (other.getType() == arg.getType() && otherKind == kind))
          continue;
        InFlightDiagnostic diag =
            emitError(arg.getLoc())
            << "'" << name.getValue() << "' is bound as " << arg.getType()
            << " here and as " << other.getType() << " elsewhere; one "
            << (kind == kStateAttr ? "state" : "weight")
            << " has one type and one kind in all entries";
        diag.attachNote(other.getLoc()) << "first bound here";
        return diag;
      }
    llvm::StringMap<unsigned> written;
    for (unsigned i = 0, e = function.getNumResults(); i < e; ++i) {
      auto name = function.getResultAttrOfType<StringAttr>(i, kStateAttr);
      if (!name)
        continue;
      if (!states.contains(name.getValue()))
        return function.emitOpError()
               << "writes the state '" << name.getValue() << "' as result " << i
               << ", but has no argument with that state";
      if (!written.try_emplace(name.getValue(), i).second)
        return function.emitOpError()
               << "writes the state '" << name.getValue() << "' twice";
    }
  }
  return success();
}

LogicalResult checkCalls(ModuleOp module) {
  // Depth-first over calls; a function on the path again is recursion.
  llvm::DenseMap<Operation *, int> state;
  std::function<LogicalResult(func::FuncOp)> visit =
      [&](func::FuncOp function) -> LogicalResult {
    state[function] = 1;
    WalkResult result = function.walk([&](Operation *op) {
      if (isa<CallOpInterface>(op) && !isa<func::CallOp>(op)) {
        op->emitOpError() << "calls indirectly; a model calls its functions "
                             "with func.call";
        return WalkResult::interrupt();
      }
      auto call = dyn_cast<func::CallOp>(op);
      if (!call)
        return WalkResult::advance();
      auto callee = module.lookupSymbol<func::FuncOp>(call.getCallee());
      if (!callee || callee.isExternal()) {
        call.emitOpError() << "calls '" << call.getCallee()
                           << "', which has no body; define it in the model";
        return WalkResult::interrupt();
      }
      if (state[callee] == 1) {
        InFlightDiagnostic diag = call.emitOpError()
                                  << "calls '" << call.getCallee()
                                  << "' recursively; use scf.for";
        diag.attachNote(callee.getLoc())
            << "'" << call.getCallee() << "' is entered here first";
        return WalkResult::interrupt();
      }
      if (state[callee] == 0 && failed(visit(callee)))
        return WalkResult::interrupt();
      return WalkResult::advance();
    });
    state[function] = 2;
    return failure(result.wasInterrupted());
  };
  for (func::FuncOp function : module.getOps<func::FuncOp>())
    if (state[function] == 0 && failed(visit(function)))
      return failure();
  return success();
}

LogicalResult checkMeshes(ModuleOp module) {
  MeshOp first;
  for (MeshOp mesh : module.getOps<MeshOp>()) {
    if (SymbolTable::symbolKnownUseEmpty(mesh.getSymNameAttr(), module))
      continue;
    if (first) {
      InFlightDiagnostic diag =
          mesh.emitOpError()
          << "'" << mesh.getSymName() << "' is used beside mesh '"
          << first.getSymName()
          << "'; one model is cut over one mesh: name its axes in one place";
      diag.attachNote(first.getLoc()) << "the other mesh";
      return diag;
    }
    first = mesh;
  }
  return success();
}

} // namespace

void CheckModel::runOnOperation() {
  ModuleOp module = getOperation();
  bool ok = succeeded(checkMeshes(module)) && succeeded(checkBindings(module));
  for (func::FuncOp function : module.getOps<func::FuncOp>())
    ok &= succeeded(checkFunction(function));
  module.walk([&](Operation *op) { ok &= succeeded(checkOp(op)); });
  ok = ok && succeeded(checkCalls(module));
  if (!ok)
    return signalPassFailure();
  markAllAnalysesPreserved();
}
