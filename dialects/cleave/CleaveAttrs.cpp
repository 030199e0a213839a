//===- CleaveAttrs.cpp - Text of meshes and shardings ---------------------===//
// Parsers, printers and verifiers of the attributes, and their conversion from
// and to plain data. What needs the mesh is verified where the attribute is
// used, in Cleave.cpp.
//===----------------------------------------------------------------------===//
#include "dialects/cleave/Cleave.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

#define GET_ATTRDEF_CLASSES
#include "dialects/cleave/CleaveAttrs.cpp.inc"

namespace cleave {

void CleaveDialect::registerAttributes() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "dialects/cleave/CleaveAttrs.cpp.inc"
      >();
}

//===----------------------------------------------------------------------===//
// Axes
//===----------------------------------------------------------------------===//

static FailureOr<AxisRefAttr> parseAxisRef(AsmParser &parser) {
  std::string name;
  if (parser.parseString(&name))
    return failure();
  int64_t pre = 1, size = 0;
  if (succeeded(parser.parseOptionalColon())) {
    if (parser.parseLParen() || parser.parseInteger(pre) ||
        parser.parseRParen() || parser.parseInteger(size))
      return failure();
    if (size == 0)
      return parser.emitError(parser.getCurrentLocation(),
                              "sub-axis size must not be 0"),
             failure();
  }
  return AxisRefAttr::get(parser.getContext(), name, pre, size);
}

static void printAxisRef(AsmPrinter &printer, AxisRefAttr ref) {
  printer.printString(ref.getName());
  if (ref.getSize() != 0)
    printer << ":(" << ref.getPre() << ')' << ref.getSize();
}

Attribute AxisRefAttr::parse(AsmParser &parser, Type) {
  if (parser.parseLess())
    return {};
  FailureOr<AxisRefAttr> ref = parseAxisRef(parser);
  if (failed(ref) || parser.parseGreater())
    return {};
  return *ref;
}

void AxisRefAttr::print(AsmPrinter &printer) const {
  printer << '<';
  printAxisRef(printer, *this);
  printer << '>';
}

ParseResult parseAxes(AsmParser &parser, AxesAttr &axes) {
  SmallVector<AxisRefAttr> refs;
  auto parseOne = [&]() -> ParseResult {
    FailureOr<AxisRefAttr> ref = parseAxisRef(parser);
    if (failed(ref))
      return failure();
    refs.push_back(*ref);
    return success();
  };
  if (parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, parseOne))
    return failure();
  axes = AxesAttr::get(parser.getContext(), refs);
  return success();
}

void printAxes(AsmPrinter &printer, AxesAttr axes) {
  printer << '[';
  llvm::interleaveComma(axes.getRefs(), printer.getStream(),
                        [&](AxisRefAttr ref) { printAxisRef(printer, ref); });
  printer << ']';
}

Attribute AxesAttr::parse(AsmParser &parser, Type) {
  AxesAttr axes;
  if (parser.parseLess() || parseAxes(parser, axes) || parser.parseGreater())
    return {};
  return axes;
}

void AxesAttr::print(AsmPrinter &printer) const {
  printer << '<';
  printAxes(printer, *this);
  printer << '>';
}

//===----------------------------------------------------------------------===//
// Mesh
//===----------------------------------------------------------------------===//

Attribute MeshAxisAttr::parse(AsmParser &parser, Type) {
  std::string name;
  int64_t size;
  if (parser.parseLess() || parser.parseString(&name) || parser.parseEqual() ||
      parser.parseInteger(size) || parser.parseGreater())
    return {};
  return MeshAxisAttr::get(parser.getContext(), name, size);
}

void MeshAxisAttr::print(AsmPrinter &printer) const {
  printer << '<';
  printer.printString(getName());
  printer << '=' << getSize() << '>';
}

Attribute MeshAttr::parse(AsmParser &parser, Type) {
  SmallVector<MeshAxisAttr> axes;
  SmallVector<int64_t> ranks;
  auto parseAxis = [&]() -> ParseResult {
    std::string name;
    int64_t size;
    if (parser.parseString(&name) || parser.parseEqual() ||
        parser.parseInteger(size))
      return failure();
    axes.push_back(MeshAxisAttr::get(parser.getContext(), name, size));
    return success();
  };
  auto parseRank = [&]() { return parser.parseInteger(ranks.emplace_back()); };
  SMLoc loc = parser.getCurrentLocation();
  if (parser.parseLess() ||
      parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, parseAxis))
    return {};
  if (succeeded(parser.parseOptionalComma()) &&
      (parser.parseKeyword("ranks") || parser.parseEqual() ||
       parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, parseRank)))
    return {};
  if (parser.parseGreater())
    return {};
  return MeshAttr::getChecked([&] { return parser.emitError(loc); },
                              parser.getContext(), axes, ranks);
}

void MeshAttr::print(AsmPrinter &printer) const {
  printer << "<[";
  llvm::interleaveComma(getAxes(), printer.getStream(), [&](MeshAxisAttr axis) {
    printer.printString(axis.getName());
    printer << '=' << axis.getSize();
  });
  printer << ']';
  if (!getRanks().empty()) {
    printer << ", ranks=[";
    llvm::interleaveComma(getRanks(), printer.getStream());
    printer << ']';
  }
  printer << '>';
}

LogicalResult MeshAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                               ArrayRef<MeshAxisAttr> axes,
                               ArrayRef<int64_t> ranks) {
  llvm::StringSet<> names;
  int64_t total = 1;
  for (MeshAxisAttr axis : axes) {
    // C1
    if (axis.getName().empty())
      return emitError() << "mesh axis has an empty name";
    if (!names.insert(axis.getName()).second)
      return emitError() << "mesh axis '" << axis.getName()
                         << "' occurs twice; give each axis its own name";
    // C2
    if (axis.getSize() < 1)
      return emitError() << "mesh axis '" << axis.getName() << "' has size "
                         << axis.getSize() << ", but an axis has at least 1";
    if (axis.getSize() > INT32_MAX / total)
      return emitError() << "mesh has more than " << INT32_MAX
                         << " ranks at axis '" << axis.getName() << "'";
    total *= axis.getSize();
  }
  // C3
  if (ranks.empty())
    return success();
  if (static_cast<int64_t>(ranks.size()) != total)
    return emitError() << "mesh has " << total << " ranks, but 'ranks' lists "
                       << ranks.size();
  llvm::SmallVector<bool> seen(total, false);
  for (int64_t rank : ranks) {
    if (rank < 0 || rank >= total)
      return emitError() << "'ranks' lists " << rank
                         << ", but the mesh has ranks 0 to " << total - 1;
    if (seen[rank])
      return emitError() << "'ranks' lists " << rank << " twice";
    seen[rank] = true;
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Sharding
//===----------------------------------------------------------------------===//

static ParseResult parseRefs(AsmParser &parser,
                             SmallVectorImpl<AxisRefAttr> &refs, bool *open) {
  auto parseOne = [&]() -> ParseResult {
    if (open && *open)
      return parser.emitError(parser.getCurrentLocation(),
                              "'?' must stand last in a dim");
    if (open && succeeded(parser.parseOptionalQuestion())) {
      *open = true;
      return success();
    }
    FailureOr<AxisRefAttr> ref = parseAxisRef(parser);
    if (failed(ref))
      return failure();
    refs.push_back(*ref);
    return success();
  };
  return parser.parseCommaSeparatedList(AsmParser::Delimiter::Braces, parseOne);
}

static FailureOr<DimShardingAttr> parseDim(AsmParser &parser) {
  SmallVector<AxisRefAttr> refs;
  bool open = false;
  int64_t priority = -1;
  if (parseRefs(parser, refs, &open))
    return failure();
  SMLoc loc = parser.getCurrentLocation();
  StringRef keyword;
  if (succeeded(parser.parseOptionalKeyword(&keyword))) {
    if (!keyword.consume_front("p") || keyword.getAsInteger(10, priority) ||
        priority < 0 || priority > INT32_MAX)
      return parser.emitError(
                 loc, "expected a priority such as 'p0' or 'p1' after a dim"),
             failure();
    if (refs.empty() && !open)
      return parser.emitError(loc, "a closed dim without axes cannot have a "
                                   "priority; nothing would be propagated"),
             failure();
  }
  return DimShardingAttr::get(parser.getContext(), refs, open, priority);
}

static void printDim(AsmPrinter &printer, DimShardingAttr dim) {
  printer << '{';
  llvm::interleaveComma(dim.getAxes(), printer.getStream(),
                        [&](AxisRefAttr ref) { printAxisRef(printer, ref); });
  if (dim.getOpen())
    printer << (dim.getAxes().empty() ? "?" : ", ?");
  printer << '}';
  if (dim.getPriority() >= 0)
    printer << 'p' << dim.getPriority();
}

Attribute DimShardingAttr::parse(AsmParser &parser, Type) {
  if (parser.parseLess())
    return {};
  FailureOr<DimShardingAttr> dim = parseDim(parser);
  if (failed(dim) || parser.parseGreater())
    return {};
  return *dim;
}

void DimShardingAttr::print(AsmPrinter &printer) const {
  printer << '<';
  printDim(printer, *this);
  printer << '>';
}

Attribute ShardingAttr::parse(AsmParser &parser, Type) {
  FlatSymbolRefAttr mesh;
  SmallVector<DimShardingAttr> dims;
  SmallVector<AxisRefAttr> replicated, partial;
  std::string kind = "sum";
  auto parseOne = [&]() -> ParseResult {
    FailureOr<DimShardingAttr> dim = parseDim(parser);
    if (failed(dim))
      return failure();
    dims.push_back(*dim);
    return success();
  };
  if (parser.parseLess() || parser.parseAttribute(mesh) ||
      parser.parseComma() ||
      parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, parseOne))
    return {};
  while (succeeded(parser.parseOptionalComma())) {
    SMLoc loc = parser.getCurrentLocation();
    StringRef keyword;
    if (parser.parseKeyword(&keyword) || parser.parseEqual())
      return {};
    if (keyword == "replicated" && replicated.empty()) {
      if (parseRefs(parser, replicated, nullptr))
        return {};
    } else if (keyword == "partial" && partial.empty()) {
      SMLoc kindLoc = parser.getCurrentLocation();
      StringRef kindName;
      if (parser.parseKeyword(&kindName))
        return {};
      if (!parseReduction(kindName))
        return parser.emitError(kindLoc)
                   << "unknown reduction kind '" << kindName
                   << "'; known are sum, prod, max, min, umax, umin, maxnum, "
                      "minnum, and, or, xor",
               Attribute();
      kind = kindName.str();
      if (parseRefs(parser, partial, nullptr))
        return {};
    } else {
      return parser.emitError(loc)
                 << "expected 'replicated' or 'partial' once, got '" << keyword
                 << "'",
             Attribute();
    }
  }
  if (parser.parseGreater())
    return {};
  return ShardingAttr::get(parser.getContext(), mesh, dims, replicated, kind,
                           partial);
}

void ShardingAttr::print(AsmPrinter &printer) const {
  raw_ostream &os = printer.getStream();
  auto ref = [&](AxisRefAttr axis) { printAxisRef(printer, axis); };
  printer << '<';
  printer.printAttribute(getMesh());
  printer << ", [";
  llvm::interleaveComma(getDims(), os,
                        [&](DimShardingAttr dim) { printDim(printer, dim); });
  printer << ']';
  if (!getReplicated().empty()) {
    printer << ", replicated={";
    llvm::interleaveComma(getReplicated(), os, ref);
    printer << '}';
  }
  if (!getPartial().empty()) {
    printer << ", partial=" << getKind() << '{';
    llvm::interleaveComma(getPartial(), os, ref);
    printer << '}';
  }
  printer << '>';
}

ParseResult parseShardingBody(AsmParser &parser, ShardingAttr &sharding) {
  sharding =
      llvm::dyn_cast_or_null<ShardingAttr>(ShardingAttr::parse(parser, Type()));
  return success(static_cast<bool>(sharding));
}

//===----------------------------------------------------------------------===//
// Plain data
//===----------------------------------------------------------------------===//

Mesh toMesh(MeshAttr attr, StringRef name) {
  Mesh mesh;
  mesh.name = name.str();
  for (MeshAxisAttr axis : attr.getAxes())
    mesh.axes.push_back({axis.getName().str(), axis.getSize()});
  mesh.ranks.assign(attr.getRanks().begin(), attr.getRanks().end());
  return mesh;
}

MeshAttr withAxes(function_ref<InFlightDiagnostic()> emitError, MeshAttr mesh,
                  ArrayRef<MeshAxisAttr> axes) {
  return MeshAttr::getChecked(emitError, mesh.getContext(), axes,
                              mesh.getRanks());
}

Mesh toMesh(MeshOp op) { return toMesh(op.getMesh(), op.getSymName()); }

AxisRef toAxisRef(const Mesh &mesh, AxisRefAttr attr) {
  std::optional<unsigned> axis = mesh.findAxis(attr.getName());
  assert(axis && "axes are verified before they are converted");
  if (attr.getSize() == 0)
    return mesh.whole(*axis);
  return {*axis, attr.getPre(), attr.getSize()};
}

static AxisList toAxisList(const Mesh &mesh, ArrayRef<AxisRefAttr> refs) {
  AxisList result;
  for (AxisRefAttr ref : refs)
    result.push_back(toAxisRef(mesh, ref));
  return result;
}

AxisList toAxes(const Mesh &mesh, AxesAttr attr) {
  return toAxisList(mesh, attr.getRefs());
}

static SmallVector<AxisRefAttr> toRefs(MLIRContext *context, const Mesh &mesh,
                                       ArrayRef<AxisRef> axes) {
  SmallVector<AxisRefAttr> refs;
  for (AxisRef ref : axes) {
    const MeshAxis &axis = mesh.axes[ref.axis];
    bool whole = ref.pre == 1 && ref.size == axis.size;
    refs.push_back(AxisRefAttr::get(context, axis.name, whole ? 1 : ref.pre,
                                    whole ? 0 : ref.size));
  }
  return refs;
}

AxesAttr toAxesAttr(MLIRContext *context, const Mesh &mesh,
                    ArrayRef<AxisRef> axes) {
  return AxesAttr::get(context, toRefs(context, mesh, axes));
}

Sharding toSharding(const Mesh &mesh, ShardingAttr attr) {
  Sharding result;
  for (DimShardingAttr dim : attr.getDims()) {
    DimSharding &to = result.dims.emplace_back();
    to.axes = mergeAxes(toAxisList(mesh, dim.getAxes()));
    to.open = dim.getOpen();
    if (dim.getPriority() >= 0)
      to.priority = dim.getPriority();
  }
  result.replicated = normalizeAxisSet(toAxisList(mesh, attr.getReplicated()));
  result.partial = normalizeAxisSet(toAxisList(mesh, attr.getPartial()));
  result.kind = *parseReduction(attr.getKind());
  return result;
}

ShardingAttr toShardingAttr(MLIRContext *context, const Mesh &mesh,
                            const Sharding &sharding) {
  SmallVector<DimShardingAttr> dims;
  for (const DimSharding &dim : sharding.dims)
    dims.push_back(DimShardingAttr::get(
        context, toRefs(context, mesh, dim.axes), dim.open,
        dim.priority ? static_cast<int64_t>(*dim.priority) : -1));
  return ShardingAttr::get(context, FlatSymbolRefAttr::get(context, mesh.name),
                           dims, toRefs(context, mesh, sharding.replicated),
                           reductionName(sharding.kind),
                           toRefs(context, mesh, sharding.partial));
}

} // namespace cleave
