//===- ProgramData.cpp - What a program says about itself -----------------===//
#include "passes/lower/ProgramData.h"
#include "dialects/comm/Comm.h"
#include "dialects/dispatch/Dispatch.h"
#include "passes/dispatch/Groups.h"
#include "passes/lower/FunctionLowering.h"
#include "passes/lower/RuntimeAbi.h"
#include "passes/memory/Storage.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/JSON.h"

using namespace mlir;
using namespace cleave;

//===----------------------------------------------------------------------===//
// Reading the module
//===----------------------------------------------------------------------===//

static int64_t integerAttr(Operation *op, StringRef name) {
  auto attr = op->getAttrOfType<IntegerAttr>(name);
  return attr ? attr.getInt() : 0;
}

/// `attributes` of an argument or result, and its type here.
static EdgeTensor readTensor(DictionaryAttr attributes, Type local,
                             Location loc, const Twine &fallbackName) {
  EdgeTensor tensor;
  tensor.block = cast<RankedTensorType>(local);
  tensor.type = tensor.block;
  tensor.source = sourceOf(loc);
  tensor.name = fallbackName.str();
  if (!attributes)
    return tensor;
  if (auto type = attributes.getAs<TypeAttr>(kGlobalTypeAttr))
    tensor.type = cast<RankedTensorType>(type.getValue());
  tensor.sharding = attributes.getAs<ShardingAttr>(kShardingAttr);
  if (auto name = attributes.getAs<StringAttr>(dispatch::kNameAttr))
    tensor.name = name.str();
  tensor.storeName = tensor.name;
  auto weight = attributes.getAs<StringAttr>(kWeightAttr);
  if (auto key = weight ? weight : attributes.getAs<StringAttr>(kStateAttr))
    tensor.storeName = key.str();
  if (auto at = attributes.getAs<dispatch::AtAttr>(dispatch::kAtAttr))
    tensor.offset = at.getValue();
  return tensor;
}

namespace {
class EdgeReader {
public:
  EdgeReader(ProgramEdge &edge) : edge(edge) {}
  void readLayout(func::FuncOp func);
  void readEntry(func::FuncOp func);
  void readInit(func::FuncOp func);

private:
  void addResident(DictionaryAttr attributes, EdgeTensor tensor,
                   EdgeEntry *entry);
  ProgramEdge &edge;
  llvm::StringSet<> known, laidOut;
};
} // namespace

/// "weight 'up' tensor<4x16xf32> n=1 ... at 128".
void EdgeReader::readLayout(func::FuncOp func) {
  for (auto [i, type] : llvm::enumerate(func.getArgumentTypes())) {
    DictionaryAttr attributes = func.getArgAttrDict(i);
    std::string name = residentName(attributes);
    if (name.empty() || !laidOut.insert(name).second)
      continue;
    EdgeTensor tensor = readTensor(attributes, type, func.getLoc(), "");
    bool isWeight = attributes.contains(kWeightAttr);
    llvm::raw_string_ostream line(edge.layout);
    line << (isWeight ? "weight '" : "state '") << tensor.storeName << "' "
         << type;
    if (auto packed = attributes.getAs<StringAttr>(dispatch::kPackedAttr))
      line << " packed from " << packed.getValue();
    line << " at " << tensor.offset << "\n";
  }
}

void EdgeReader::addResident(DictionaryAttr attributes, EdgeTensor tensor,
                             EdgeEntry *entry) {
  bool isWeight = attributes.contains(kWeightAttr);
  tensor.role = isWeight ? CLEAVE_WEIGHT : CLEAVE_STATE;
  auto &names = isWeight ? entry->weights : entry->states;
  if (!llvm::is_contained(names, tensor.storeName))
    names.push_back(tensor.storeName);
  // A packed form is made here; the plain one is what the file holds.
  if (attributes.contains(dispatch::kPackedAttr))
    return;
  if (!known.insert((isWeight ? "weight " : "state ") + tensor.storeName)
           .second)
    return;
  if (isWeight)
    edge.weightIndices[residentName(attributes)] = edge.weights.size();
  (isWeight ? edge.weights : edge.states).push_back(tensor);
}

void EdgeReader::readInit(func::FuncOp func) {
  edge.init = func.getSymName();
  edge.initArenaBytes = integerAttr(func, dispatch::kFrameBytesAttr);
  EdgeEntry ignored;
  for (auto [i, type] : llvm::enumerate(func.getArgumentTypes()))
    addResident(func.getArgAttrDict(i),
                readTensor(func.getArgAttrDict(i), type,
                           func.getArgument(i).getLoc(), "arg" + Twine(i)),
                &ignored);
}

void EdgeReader::readEntry(func::FuncOp func) {
  EdgeEntry entry;
  entry.name = func.getSymName();
  entry.arenaBytes = integerAttr(func, dispatch::kFrameBytesAttr);
  for (auto [i, type] : llvm::enumerate(func.getArgumentTypes())) {
    DictionaryAttr attributes = func.getArgAttrDict(i);
    EdgeTensor tensor = readTensor(
        attributes, type, func.getArgument(i).getLoc(), "arg" + Twine(i));
    if (!residentName(attributes).empty()) {
      addResident(attributes, tensor, &entry);
      continue;
    }
    tensor.role = CLEAVE_INPUT;
    entry.inputs.push_back(tensor);
  }
  Operation *ret = func.getBody().front().getTerminator();
  for (auto [i, type] : llvm::enumerate(func.getResultTypes())) {
    DictionaryAttr attributes = func.getResultAttrDict(i);
    if (!residentName(attributes).empty())
      continue;
    EdgeTensor tensor = readTensor(
        attributes, type, ret->getOperand(i).getLoc(), "res" + Twine(i));
    tensor.role = CLEAVE_OUTPUT;
    entry.outputs.push_back(tensor);
  }
  edge.entries.push_back(std::move(entry));
}

/// Follows a tensor to where it comes from: true if that may be the resident
/// area. Arguments of private functions are what their callers pass.
static bool mayBeResident(Value value, llvm::DenseSet<Value> &seen) {
  value = viewSource(value);
  if (!seen.insert(value).second)
    return false;
  auto isResident = [](Attribute place) {
    auto at = dyn_cast_or_null<dispatch::AtAttr>(place);
    return at && at.getBase() == dispatch::PlaceBase::resident;
  };
  if (auto result = dyn_cast<OpResult>(value)) {
    auto places =
        result.getOwner()->getAttrOfType<ArrayAttr>(dispatch::kAtAttr);
    return places && isResident(places[result.getResultNumber()]);
  }
  auto argument = cast<BlockArgument>(value);
  auto func = dyn_cast<func::FuncOp>(argument.getOwner()->getParentOp());
  if (!func) // what a loop carries lies where its result does
    return mayBeResident(cast<scf::ForOp>(argument.getOwner()->getParentOp())
                             .getTiedLoopResult(argument),
                         seen);
  unsigned i = argument.getArgNumber();
  if (isResident(func.getArgAttr(i, dispatch::kAtAttr)))
    return true;
  if (func.isPublic())
    return false;
  auto uses = SymbolTable::getSymbolUses(func, func->getParentOp());
  return llvm::any_of(*uses, [&](SymbolTable::SymbolUse use) {
    auto call = dyn_cast<func::CallOp>(use.getUser());
    return call && mayBeResident(call.getOperand(i), seen);
  });
}

/// The flags of CleaveProgram. Nothing but views is placed where a plain weight
/// is, since that is never written; so all its readers follow its argument.
static int64_t residentUse(ModuleOp planned) {
  int64_t flags = 0;
  planned.walk([&](Operation *op) {
    if (op->getDialect()->getNamespace() != "comm" ||
        isa<comm::CoordinateOp>(op))
      return;
    llvm::DenseSet<Value> seen;
    for (ValueRange values :
         {ValueRange(op->getOperands()), ValueRange(op->getResults())})
      for (Value value : values)
        if (isTensor(value) && mayBeResident(value, seen))
          flags |= CLEAVE_SHARES_RESIDENT;
  });
  return flags;
}

FailureOr<ProgramEdge> ProgramEdge::read(ModuleOp planned) {
  ProgramEdge edge;
  for (auto mesh : planned.getOps<MeshOp>()) {
    if (!edge.mesh.name.empty()) {
      InFlightDiagnostic error = mesh.emitError()
                                 << "'" << mesh.getSymName()
                                 << "' is a second mesh; a program has one";
      return error;
    }
    edge.mesh = toMesh(mesh);
  }
  edge.residentBytes = integerAttr(planned, dispatch::kResidentBytesAttr);
  edge.flags = residentUse(planned);
  EdgeReader reader(edge);
  for (auto func : planned.getOps<func::FuncOp>())
    if (func->hasAttr(dispatch::kInitAttr))
      reader.readInit(func);
  for (auto func : planned.getOps<func::FuncOp>())
    if (func.isPublic() && !func.isExternal())
      reader.readEntry(func);
  for (auto func : planned.getOps<func::FuncOp>())
    if (func.isPublic() || func->hasAttr(dispatch::kInitAttr))
      reader.readLayout(func);
  return edge;
}

//===----------------------------------------------------------------------===//
// Manifest
//===----------------------------------------------------------------------===//

static llvm::json::Object describe(const Mesh &mesh, const EdgeTensor &tensor) {
  std::string type;
  llvm::raw_string_ostream(type) << tensor.type;
  Sharding sharding = tensor.sharding
                          ? toSharding(mesh, tensor.sharding)
                          : Sharding::whole(tensor.type.getRank(), false);
  return llvm::json::Object{{"name", tensor.name},
                            {"type", type},
                            {"sharding", toString(mesh, sharding)}};
}

static llvm::json::Array describe(const Mesh &mesh,
                                  ArrayRef<EdgeTensor> tensors) {
  llvm::json::Array array;
  for (const EdgeTensor &tensor : tensors)
    array.push_back(describe(mesh, tensor));
  return array;
}

/// Those that an entry uses, described by the name they are stored under.
static llvm::json::Array describeStored(const Mesh &mesh,
                                        ArrayRef<EdgeTensor> tensors,
                                        ArrayRef<std::string> names) {
  llvm::json::Array array;
  for (const EdgeTensor &tensor : tensors)
    if (llvm::is_contained(names, tensor.storeName)) {
      llvm::json::Object object = describe(mesh, tensor);
      object["name"] = tensor.storeName;
      array.push_back(std::move(object));
    }
  return array;
}

std::string cleave::manifestOf(const ProgramEdge &edge,
                               const MemorySummary &memory) {
  const Mesh &mesh = edge.mesh;
  llvm::json::Array entries;
  for (const EdgeEntry &entry : edge.entries)
    entries.push_back(llvm::json::Object{
        {"name", entry.name},
        {"inputs", describe(mesh, entry.inputs)},
        {"outputs", describe(mesh, entry.outputs)},
        {"weights", describeStored(mesh, edge.weights, entry.weights)},
        {"state", describeStored(mesh, edge.states, entry.states)},
        {"memory", llvm::json::Object{{"arena", entry.arenaBytes}}}});
  llvm::json::Array axes;
  for (const MeshAxis &axis : mesh.axes)
    axes.push_back(
        llvm::json::Object{{"name", axis.name}, {"size", axis.size}});
  llvm::json::Object object{
      {"entries", std::move(entries)},
      {"mesh",
       llvm::json::Object{{"name", mesh.name}, {"axes", std::move(axes)}}},
      {"ranks", mesh.numRanks()},
      {"memory", llvm::json::Object{{"weights", memory.weights},
                                    {"state", memory.states},
                                    {"resident", memory.resident},
                                    {"arena", memory.arena},
                                    {"total", memory.total()}}}};
  return llvm::formatv("{0:2}", llvm::json::Value(std::move(object)));
}

//===----------------------------------------------------------------------===//
// Structs
//===----------------------------------------------------------------------===//

// The data below lists the fields in order; a new field changes the size.
static_assert(sizeof(CleaveTensor) == 3 * 8 + 2 * 4 + 6 * 8);
static_assert(sizeof(CleaveEntry) == 7 * 8);
static_assert(sizeof(CleaveProgram) == 8 + 2 * 4 + 17 * 8);

static FailureOr<Datum> tensorDatum(ModuleOp module, const Mesh &mesh,
                                    const EdgeTensor &tensor,
                                    StaticData &data) {
  using D = Datum;
  std::optional<CleaveDtype> dtype = dtypeOf(tensor.type.getElementType());
  if (!dtype) {
    InFlightDiagnostic error =
        module.emitError() << "'" << tensor.name << "' has elements of type "
                           << tensor.type.getElementType()
                           << "; programs take and give f32, bf16, f16, f64, "
                              "i64, i32, i16, i8 and i1";
    return error;
  }
  Sharding sharding = tensor.sharding
                          ? toSharding(mesh, tensor.sharding)
                          : Sharding::whole(tensor.type.getRank(), false);
  std::vector<D> dims;
  for (const DimSharding &dim : sharding.dims)
    dims.push_back(data.axes(dim.axes));
  return D::record({data.string(tensor.name), data.string(tensor.source),
                    data.string(tensor.storeName), D::i32(*dtype),
                    D::i32(tensor.role), D::i64(tensor.type.getRank()),
                    data.integers(tensor.type.getShape()),
                    data.integers(tensor.block.getShape()),
                    data.addressOfArray(std::move(dims)), D::i64(tensor.offset),
                    D::i64(bytesOf(tensor.block))});
}

/// A count and the address of the structs.
static LogicalResult addTensors(ModuleOp module, const Mesh &mesh,
                                ArrayRef<EdgeTensor> tensors, StaticData &data,
                                std::vector<Datum> &fields) {
  std::vector<Datum> elements;
  for (const EdgeTensor &tensor : tensors) {
    FailureOr<Datum> datum = tensorDatum(module, mesh, tensor, data);
    if (failed(datum))
      return failure();
    elements.push_back(std::move(*datum));
  }
  fields.push_back(Datum::i64(elements.size()));
  fields.push_back(data.addressOfArray(std::move(elements)));
  return success();
}

static CleaveIsa isaValue(kernels::IsaLevel level) {
  switch (level) {
  case kernels::IsaLevel::avx2:
    return CLEAVE_ISA_AVX2;
  case kernels::IsaLevel::avx512:
    return CLEAVE_ISA_AVX512;
  case kernels::IsaLevel::avx512bf16:
    return CLEAVE_ISA_AVX512_BF16;
  case kernels::IsaLevel::amx:
    return CLEAVE_ISA_AMX;
  }
  llvm_unreachable("all levels are listed");
}

LogicalResult cleave::defineProgram(ModuleOp module, const ProgramEdge &edge,
                                    StringRef manifest, kernels::IsaLevel level,
                                    StaticData &data) {
  using D = Datum;
  const Mesh &mesh = edge.mesh;
  std::string isa = kernels::CpuIsa::get(level).name().str();
  std::vector<D> entries;
  for (const EdgeEntry &entry : edge.entries) {
    std::vector<D> fields = {data.string(entry.name)};
    if (failed(addTensors(module, mesh, entry.inputs, data, fields)) ||
        failed(addTensors(module, mesh, entry.outputs, data, fields)))
      return failure();
    fields.push_back(D::i64(entry.arenaBytes));
    fields.push_back(D::pointer(symbolFor(entry.name, isa)));
    entries.push_back(D::record(std::move(fields)));
  }
  std::vector<D> axisNames;
  SmallVector<int64_t> axisSizes, ranks;
  for (const MeshAxis &axis : mesh.axes) {
    axisNames.push_back(data.string(axis.name));
    axisSizes.push_back(axis.size);
  }
  for (int64_t i = 0; i < mesh.numRanks(); ++i)
    ranks.push_back(mesh.ranks.empty() ? i : mesh.ranks[i]);
  std::vector<D> fields = {D::i64(CLEAVE_ABI_MAGIC),
                           D::i32(CLEAVE_ABI_VERSION),
                           D::i32(isaValue(level)),
                           D::i64(mesh.axes.size()),
                           data.addressOfArray(std::move(axisNames)),
                           data.integers(axisSizes),
                           D::i64(mesh.numRanks()),
                           data.integers(ranks),
                           D::i64(entries.size()),
                           data.addressOfArray(std::move(entries))};
  if (failed(addTensors(module, mesh, edge.weights, data, fields)) ||
      failed(addTensors(module, mesh, edge.states, data, fields)))
    return failure();
  fields.push_back(D::i64(edge.residentBytes));
  fields.push_back(edge.init.empty() ? D::null()
                                     : D::pointer(symbolFor(edge.init, isa)));
  fields.push_back(D::i64(edge.initArenaBytes));
  fields.push_back(D::i64(edge.flags));
  fields.push_back(data.string(edge.layout));
  fields.push_back(data.string(manifest));
  data.define("cleave_program_" + isa, D::record(std::move(fields)));
  return success();
}
