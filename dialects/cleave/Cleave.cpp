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
  auto mesh = SymbolTable::lookupNearestSymbolFrom<MeshOp>(op, name);
  // Users may be verified before a mesh that was written without its attribute.
  return mesh && mesh.getMeshAttr() ? mesh : MeshOp();
}

std::string listClosestFirst(StringRef wanted, ArrayRef<StringRef> known) {
  if (known.empty())
    return "none";
  SmallVector<std::pair<unsigned, StringRef>> sorted;
  for (StringRef name : known)
    sorted.emplace_back(wanted.edit_distance(name), name);
  llvm::sort(sorted);
  std::string text;
  llvm::raw_string_ostream os(text);
  llvm::interleaveComma(sorted, os, [&](const auto &entry) {
    os << '\'' << entry.second << '\'';
  });
  return text;
}

FailureOr<MeshOp> requireMesh(function_ref<InFlightDiagnostic()> emitError,
                              Operation *op, FlatSymbolRefAttr name,
                              const Twine &what) {
  if (MeshOp mesh = lookupMesh(op, name))
    return mesh;
  SmallVector<StringRef> known;
  if (Operation *table = SymbolTable::getNearestSymbolTable(op))
    for (Region &region : table->getRegions())
      for (MeshOp mesh : region.getOps<MeshOp>())
        known.push_back(mesh.getSymName());
  InFlightDiagnostic diag = emitError();
  diag << "unknown mesh '" << name.getValue() << "' " << what << "; ";
  if (known.empty())
    diag << "declare it with cleave.mesh";
  else
    diag << "known are " << listClosestFirst(name.getValue(), known);
  return failure();
}

//===----------------------------------------------------------------------===//
// Verifying shardings
//===----------------------------------------------------------------------===//

static std::string listAxes(const Mesh &mesh, StringRef wanted) {
  SmallVector<StringRef> names;
  for (const MeshAxis &axis : mesh.axes)
    names.push_back(axis.name);
  return listClosestFirst(wanted, names);
}

LogicalResult verifyAxes(function_ref<InFlightDiagnostic()> emitError,
                         const Mesh &mesh, ArrayRef<AxisRefAttr> refs,
                         AxisList &seen) {
  for (AxisRefAttr attr : refs) {
    // C2
    std::optional<unsigned> axis = mesh.findAxis(attr.getName());
    if (!axis)
      return emitError() << "mesh '" << mesh.name << "' has no axis '"
                         << attr.getName() << "'; it has "
                         << listAxes(mesh, attr.getName());
    // C3
    int64_t size = mesh.axes[*axis].size;
    if (attr.getSize() != 0) {
      int64_t pre = attr.getPre(), sub = attr.getSize();
      if (sub < 2)
        return emitError() << "sub-axis '" << attr.getName() << "':(" << pre
                           << ')' << sub << " has size " << sub
                           << ", but a sub-axis has at least 2; drop it";
      if (pre < 1 || pre > size || sub > size || size % (pre * sub) != 0)
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
                         << "' is used twice; a sharding or a group names an "
                            "axis only once";
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
  FailureOr<MeshOp> meshOp = requireMesh(emitError, op, sharding.getMesh(),
                                         "in the sharding of " + what);
  if (failed(meshOp))
    return failure();
  Mesh mesh = toMesh(*meshOp);
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
                       << sharding.getDims().size() << " dims, but the tensor "
                       << tensor << " has " << tensor.getRank();
  // C6
  if (!tensor.hasStaticShape())
    return emitError() << what << " has the dynamic type " << tensor
                       << "; only static shapes can be cut: give each dim a "
                          "size";
  // C7
  if (sharding.getPartial().empty())
    return success();
  auto emit = [&] { return std::move(emitError() << what << ' '); };
  return verifyReductionKind(emit, *parseReduction(sharding.getKind()),
                             tensor.getElementType());
}

LogicalResult verifyReductionKind(function_ref<InFlightDiagnostic()> emitError,
                                  ReductionKind kind, Type elementType) {
  bool forIntegers = kind == ReductionKind::And || kind == ReductionKind::Or ||
                     kind == ReductionKind::Xor ||
                     kind == ReductionKind::UMax || kind == ReductionKind::UMin;
  bool forFloats =
      kind == ReductionKind::MaxNum || kind == ReductionKind::MinNum;
  bool isFloat = isa<FloatType>(elementType);
  if (!(forIntegers && isFloat) && !(forFloats && !isFloat))
    return success();
  return emitError() << "reduces " << elementType << " with '"
                     << reductionName(kind) << "', which is for "
                     << (forFloats ? "floats" : "integers");
}

//===----------------------------------------------------------------------===//
// Discardable attributes
//===----------------------------------------------------------------------===//

LogicalResult CleaveDialect::verifyOperationAttribute(Operation *op,
                                                      NamedAttribute attr) {
  // C4
  if (attr.getName() != kShardingAttr)
    return op->emitOpError()
           << "has the unknown attribute '" << attr.getName().strref()
           << "'; on ops only 'cleave.sharding' is known";
  // C1
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
    if (list.size() > 1 && isa<UnitAttr>(entry))
      continue;
    auto sharding = dyn_cast<ShardingAttr>(entry);
    // A result that is no tensor has a unit in the list.
    if (isa<UnitAttr>(entry) &&
        !isa<RankedTensorType>(op->getResult(i).getType()))
      continue;
    if (!sharding)
      return emit() << "'cleave.sharding' must be a #cleave.sharding or a list "
                       "of them, got "
                    << entry;
    if (failed(verifySharding(emit, op, sharding, op->getResult(i).getType(),
                              "result " + Twine(i))))
      return failure();
  }
  return success();
}

namespace {
/// An argument or a result of a function, with its attributes.
struct Edge {
  FunctionOpInterface function;
  bool isArgument;
  unsigned index;

  Type type() {
    return isArgument ? function.getArgumentTypes()[index]
                      : function.getResultTypes()[index];
  }
  std::string name() const {
    return (isArgument ? "argument " : "result ") + std::to_string(index);
  }
  Attribute get(StringRef attr) {
    return isArgument ? function.getArgAttr(index, attr)
                      : function.getResultAttr(index, attr);
  }
};
} // namespace

/// C2 and C3: `attr` is cleave.weight or cleave.state.
static LogicalResult verifyName(Edge edge, NamedAttribute attr) {
  Operation *op = edge.function;
  // C2
  auto text = dyn_cast<StringAttr>(attr.getValue());
  if (!text || text.getValue().empty())
    return op->emitOpError()
           << "'" << attr.getName().strref() << "' of " << edge.name()
           << " must be a name in quotes, got " << attr.getValue();
  StringRef other = attr.getName() == kStateAttr ? kWeightAttr : kStateAttr;
  if (edge.isArgument && edge.get(other))
    return op->emitOpError()
           << edge.name()
           << " has both 'cleave.weight' and 'cleave.state'; a weight stays as "
              "it is, state is replaced: keep one";
  // C3
  if (edge.isArgument)
    return success();
  for (unsigned i = 0; i < edge.function.getNumArguments(); ++i) {
    Edge argument{edge.function, true, i};
    if (argument.get(kStateAttr) == text && argument.type() != edge.type())
      return op->emitOpError()
             << edge.name() << " replaces the state " << text
             << " and has type " << edge.type() << ", but " << argument.name()
             << " has type " << argument.type()
             << "; state keeps its type between calls";
  }
  return success();
}

static LogicalResult verifyEdgeAttribute(Edge edge, NamedAttribute attr) {
  Operation *op = edge.function;
  auto emit = [&] { return op->emitOpError(); };
  StringRef name = attr.getName();
  if (name == kShardingAttr) {
    // C1
    auto sharding = dyn_cast<ShardingAttr>(attr.getValue());
    if (!sharding)
      return emit() << "'cleave.sharding' of " << edge.name()
                    << " must be a #cleave.sharding, got " << attr.getValue();
    return verifySharding(emit, op, sharding, edge.type(), edge.name());
  }
  if (name == kStateAttr || (edge.isArgument && name == kWeightAttr))
    return verifyName(edge, attr);
  // C4
  if (name == kGlobalTypeAttr) {
    auto global = dyn_cast<TypeAttr>(attr.getValue());
    if (global && isa<RankedTensorType>(global.getValue()))
      return success();
    return emit() << "'cleave.global_type' of " << edge.name()
                  << " must be a tensor type, got " << attr.getValue();
  }
  return emit() << edge.name() << " has the unknown attribute '" << name
                << "'; known are 'cleave.sharding'"
                << (edge.isArgument ? ", 'cleave.weight'" : "")
                << " and 'cleave.state'";
}

static LogicalResult verifyRegionAttribute(Operation *op, bool isArgument,
                                           unsigned index,
                                           NamedAttribute attr) {
  auto function = dyn_cast<FunctionOpInterface>(op);
  if (!function)
    return op->emitOpError()
           << "has '" << attr.getName().strref() << "', which can only "
           << "stand on arguments and results of functions";
  return verifyEdgeAttribute({function, isArgument, index}, attr);
}

LogicalResult CleaveDialect::verifyRegionArgAttribute(Operation *op, unsigned,
                                                      unsigned index,
                                                      NamedAttribute attr) {
  return verifyRegionAttribute(op, /*isArgument=*/true, index, attr);
}

LogicalResult CleaveDialect::verifyRegionResultAttribute(Operation *op,
                                                         unsigned,
                                                         unsigned index,
                                                         NamedAttribute attr) {
  return verifyRegionAttribute(op, /*isArgument=*/false, index, attr);
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
    return emitOpError() << "has the group id " << id << ", but ids start at 0";
  // C2, against the first member, which stands before this one
  Operation *function = (*this)->getParentOp();
  while (function && !isa<FunctionOpInterface>(function))
    function = function->getParentOp();
  GroupOp first;
  if (function)
    function->walk([&](GroupOp other) {
      // Ops inside isolated regions may not be verified yet.
      if (!other.getGroupIdAttr() || other->getNumOperands() != 1 ||
          static_cast<int64_t>(other.getGroupId()) != id)
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
