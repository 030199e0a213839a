//===- Cleave.cpp - Ops and verifiers of the cleave dialect ---------------===//
#include "dialects/cleave/Cleave.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

#include "dialects/cleave/CleaveDialect.cpp.inc"
#include "dialects/cleave/CleaveEnums.cpp.inc"
#define GET_OP_CLASSES
#include "dialects/cleave/CleaveOps.cpp.inc"

namespace cleave {

void CleaveDialect::initialize() {
  registerAttributes();
  addOperations<
#define GET_OP_LIST
#include "dialects/cleave/CleaveOps.cpp.inc"
      >();
}

MeshOp lookupMesh(Operation *op, FlatSymbolRefAttr name) {
  return SymbolTable::lookupNearestSymbolFrom<MeshOp>(op, name);
}

//===----------------------------------------------------------------------===//
// Verifying shardings
//===----------------------------------------------------------------------===//

static std::string listAxes(const Mesh &mesh) {
  std::string text;
  llvm::raw_string_ostream os(text);
  llvm::interleaveComma(mesh.axes, os, [&](const MeshAxis &axis) {
    os << '\'' << axis.name << '\'';
  });
  return text.empty() ? "none" : text;
}

LogicalResult verifyAxes(function_ref<InFlightDiagnostic()> emitError,
                         const Mesh &mesh, ArrayRef<AxisRefAttr> refs,
                         AxisList &seen) {
  for (AxisRefAttr attr : refs) {
    // C2
    std::optional<unsigned> axis = mesh.findAxis(attr.getName());
    if (!axis)
      return emitError() << "mesh '" << mesh.name << "' has no axis '"
                         << attr.getName() << "'; it has " << listAxes(mesh);
    // C3
    int64_t size = mesh.axes[*axis].size;
    if (attr.getSize() != 0) {
      int64_t pre = attr.getPre(), sub = attr.getSize();
      if (pre < 1 || sub < 2 || pre > size || sub > size ||
          size % (pre * sub) != 0)
        return emitError() << "sub-axis '" << attr.getName() << "':(" << pre
                           << ')' << sub
                           << " does not divide the axis, which has size "
                           << size << "; " << pre << " * " << sub
                           << " must divide " << size;
    }
    // C4
    AxisRef ref = toAxisRef(mesh, attr);
    bool twice = overlaps(seen, ref) ||
                 llvm::is_contained(seen, ref); // axes of size 1 too
    if (twice)
      return emitError() << "axis '" << attr.getName()
                         << "' is used twice in one sharding; a tensor can be "
                            "cut over an axis only once";
    seen.push_back(ref);
  }
  return success();
}

LogicalResult verifySharding(function_ref<InFlightDiagnostic()> emitError,
                             Operation *op, ShardingAttr sharding, Type type,
                             const Twine &what) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  if (!tensor)
    return emitError() << what << " has type " << type
                       << ", but only a ranked tensor can have a sharding";
  // C1
  MeshOp meshOp = lookupMesh(op, sharding.getMesh());
  if (!meshOp)
    return emitError() << "unknown mesh '" << sharding.getMesh().getValue()
                       << "' in the sharding of " << what
                       << "; declare it with cleave.mesh";
  Mesh mesh = toMesh(meshOp);
  AxisList seen;
  for (DimShardingAttr dim : sharding.getDims())
    if (failed(verifyAxes(emitError, mesh, dim.getAxes(), seen)))
      return failure();
  if (failed(verifyAxes(emitError, mesh, sharding.getReplicated(), seen)) ||
      failed(verifyAxes(emitError, mesh, sharding.getPartial(), seen)))
    return failure();
  // C5
  if (static_cast<int64_t>(sharding.getDims().size()) != tensor.getRank())
    return emitError() << "sharding of " << what << " has "
                       << sharding.getDims().size()
                       << " dims, but the tensor " << tensor << " has "
                       << tensor.getRank();
  // C6
  if (!tensor.hasStaticShape())
    return emitError() << what << " has the dynamic type " << tensor
                       << "; only static shapes can be cut: give each dim a "
                          "size";
  return success();
}

LogicalResult CleaveDialect::verifyOperationAttribute(Operation *op,
                                                      NamedAttribute attr) {
  if (attr.getName() != kShardingAttr)
    return op->emitOpError()
           << "has the unknown attribute '" << attr.getName()
           << "'; on ops only 'cleave.sharding' is known";
  auto emit = [&] { return op->emitOpError(); };
  SmallVector<Attribute> list;
  if (auto array = dyn_cast<ArrayAttr>(attr.getValue()))
    list.assign(array.begin(), array.end());
  else
    list.push_back(attr.getValue());
  if (list.size() != op->getNumResults())
    return emit() << "has " << op->getNumResults()
                  << " results, but 'cleave.sharding' lists " << list.size();
  for (auto [i, entry] : llvm::enumerate(list)) {
    auto sharding = dyn_cast<ShardingAttr>(entry);
    // A result that is no tensor has a unit in the list.
    if (isa<UnitAttr>(entry) &&
        !isa<RankedTensorType>(op->getResult(i).getType()))
      continue;
    if (!sharding)
      return emit() << "'cleave.sharding' must be a #cleave.sharding or a list "
                       "of them, got "
                    << entry;
    if (failed(verifySharding(emit, op, sharding,
                              op->getResult(i).getType(),
                              "result " + Twine(i))))
      return failure();
  }
  return success();
}

/// Shared by arguments and results: which attribute, on what.
static LogicalResult verifyEdgeAttribute(Operation *op, NamedAttribute attr,
                                         Type type, const Twine &what,
                                         bool isArgument) {
  auto emit = [&] { return op->emitOpError(); };
  StringRef name = attr.getName();
  if (name == kShardingAttr) {
    auto sharding = dyn_cast<ShardingAttr>(attr.getValue());
    if (!sharding)
      return emit() << "'cleave.sharding' of " << what
                    << " must be a #cleave.sharding, got " << attr.getValue();
    return verifySharding(emit, op, sharding, type, what);
  }
  if (name == kGlobalTypeAttr) {
    auto global = dyn_cast<TypeAttr>(attr.getValue());
    if (global && isa<RankedTensorType>(global.getValue()))
      return success();
    return emit() << "'cleave.global_type' of " << what
                  << " must be a tensor type, got " << attr.getValue();
  }
  bool known = name == kStateAttr || (isArgument && name == kWeightAttr);
  if (!known)
    return emit() << what << " has the unknown attribute '" << name
                  << "'; known are 'cleave.sharding', "
                  << (isArgument ? "'cleave.weight' and 'cleave.state'"
                                 : "and 'cleave.state'");
  auto text = dyn_cast<StringAttr>(attr.getValue());
  if (!text || text.getValue().empty())
    return emit() << "'" << name << "' of " << what
                  << " must be a name in quotes, got " << attr.getValue();
  return success();
}

LogicalResult CleaveDialect::verifyRegionArgAttribute(Operation *op,
                                                      unsigned region,
                                                      unsigned index,
                                                      NamedAttribute attr) {
  auto function = dyn_cast<FunctionOpInterface>(op);
  if (!function)
    return op->emitOpError() << "'" << attr.getName()
                             << "' can only stand on arguments of functions";
  return verifyEdgeAttribute(op, attr, function.getArgumentTypes()[index],
                             "argument " + Twine(index), true);
}

LogicalResult CleaveDialect::verifyRegionResultAttribute(Operation *op,
                                                         unsigned region,
                                                         unsigned index,
                                                         NamedAttribute attr) {
  auto function = dyn_cast<FunctionOpInterface>(op);
  if (!function)
    return op->emitOpError() << "'" << attr.getName()
                             << "' can only stand on results of functions";
  return verifyEdgeAttribute(op, attr, function.getResultTypes()[index],
                             "result " + Twine(index), false);
}

SmallVector<ShardingAttr> resultShardings(Operation *op) {
  SmallVector<ShardingAttr> result(op->getNumResults());
  Attribute attr = op->getDiscardableAttr(kShardingAttr);
  if (auto one = dyn_cast_or_null<ShardingAttr>(attr); one && !result.empty())
    result[0] = one;
  if (auto array = dyn_cast_or_null<ArrayAttr>(attr))
    for (auto [slot, entry] : llvm::zip(result, array))
      slot = dyn_cast<ShardingAttr>(entry);
  return result;
}

//===----------------------------------------------------------------------===//
// Ops
//===----------------------------------------------------------------------===//

LogicalResult ConstraintOp::verifySymbolUses(SymbolTableCollection &) {
  // C1
  return verifySharding([&] { return emitOpError(); }, *this, getSharding(),
                        getResult().getType(), "the value");
}

LogicalResult GroupOp::verify() {
  // C1
  int64_t id = getGroupId();
  if (id < 0)
    return emitOpError() << "has the group id " << id
                         << ", but ids start at 0";
  // C2, against the first member, which stands before this one
  Operation *function = (*this)->getParentOp();
  while (function && !isa<FunctionOpInterface>(function))
    function = function->getParentOp();
  GroupOp first;
  if (function)
    function->walk([&](GroupOp other) {
      if (static_cast<int64_t>(other.getGroupId()) != id)
        return WalkResult::advance();
      first = other;
      return WalkResult::interrupt();
    });
  if (!first || first == *this)
    return success();
  auto mine = cast<RankedTensorType>(getInput().getType());
  auto theirs = dyn_cast<RankedTensorType>(first.getInput().getType());
  if (theirs && mine.getShape() == theirs.getShape())
    return success();
  InFlightDiagnostic diag = emitOpError()
                            << "puts " << mine << " into group " << id
                            << ", whose first member has another shape: "
                            << first.getInput().getType();
  diag.attachNote(first.getLoc()) << "first member of the group";
  return diag;
}

//===----------------------------------------------------------------------===//
// Names
//===----------------------------------------------------------------------===//

static std::string nameOfLoc(Location loc) {
  if (auto name = dyn_cast<NameLoc>(loc))
    return name.getName().str();
  if (auto fused = dyn_cast<FusedLoc>(loc))
    for (Location inner : fused.getLocations())
      if (std::string name = nameOfLoc(inner); !name.empty())
        return name;
  if (auto call = dyn_cast<CallSiteLoc>(loc))
    return nameOfLoc(call.getCallee());
  return "";
}

std::string givenName(Value value) {
  if (std::string name = nameOfLoc(value.getLoc()); !name.empty())
    return name;
  if (auto arg = dyn_cast<BlockArgument>(value))
    return "arg" + std::to_string(arg.getArgNumber());
  return "";
}

std::string valueName(Value value) {
  if (std::string name = givenName(value); !name.empty())
    return name;
  std::string text;
  llvm::raw_string_ostream os(text);
  value.printAsOperand(os, OpPrintingFlags());
  return text;
}

} // namespace cleave
