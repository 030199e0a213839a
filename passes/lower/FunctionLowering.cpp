//===- FunctionLowering.cpp - A planned function as machine calls ---------===//
#include "passes/lower/FunctionLowering.h"
#include "passes/dispatch/Groups.h"
#include "passes/lower/RuntimeAbi.h"
#include "passes/memory/Storage.h"

using namespace mlir;
using namespace cleave;

std::string cleave::symbolFor(StringRef name, StringRef isa) {
  return ("cleave." + name + "." + isa).str();
}

FunctionLowering::FunctionLowering(func::FuncOp func, StringRef isa,
                                   const ProgramEdge &edge,
                                   SymbolTable &symbols, StaticData &data)
    : func(func), isaName(isa), edge(edge), mesh(edge.mesh), symbols(symbols),
      data(data), b(func.getContext()), loc(func.getLoc()) {}

//===----------------------------------------------------------------------===//
// Small things
//===----------------------------------------------------------------------===//

Value FunctionLowering::integer(int64_t value) {
  return LLVM::ConstantOp::create(b, loc, b.getI64Type(),
                                  b.getI64IntegerAttr(value));
}

Value FunctionLowering::integer32(int32_t value) {
  return LLVM::ConstantOp::create(b, loc, b.getI32Type(),
                                  b.getI32IntegerAttr(value));
}

Value FunctionLowering::offset(Value pointer, int64_t bytes) {
  if (bytes == 0)
    return pointer;
  return LLVM::GEPOp::create(b, loc, pointer.getType(), b.getI8Type(), pointer,
                             ArrayRef<LLVM::GEPArg>{integer(bytes)});
}

Value FunctionLowering::address(const Datum &datum) {
  auto pointer = LLVM::LLVMPointerType::get(b.getContext());
  return LLVM::AddressOfOp::create(b, loc, pointer, datum.symbol);
}

Type FunctionLowering::machineType(Type scalar) {
  if (scalar.isIndex())
    return b.getI64Type();
  // Whether a bf16 passes in a vector register depends on the CPU.
  return scalar.isBF16() ? b.getI16Type() : scalar;
}

Value FunctionLowering::machine(Value scalar) {
  Type type = machineType(scalar.getType());
  if (scalar.getType().isBF16())
    return arith::BitcastOp::create(b, loc, type, scalar);
  if (!scalar.getType().isIndex())
    return scalar;
  return UnrealizedConversionCastOp::create(b, loc, type, scalar).getResult(0);
}

Value FunctionLowering::fromMachine(Value passed, Type scalar) {
  if (scalar.isBF16())
    return arith::BitcastOp::create(b, loc, scalar, passed);
  return scalar.isIndex() ? asIndex(passed) : passed;
}

Value FunctionLowering::asIndex(Value integer) {
  return UnrealizedConversionCastOp::create(b, loc, b.getIndexType(), integer)
      .getResult(0);
}

void FunctionLowering::check(Value status) {
  Value bad = LLVM::ICmpOp::create(b, loc, LLVM::ICmpPredicate::ne, status,
                                   integer32(0));
  Block *next = target.addBlock();
  LLVM::CondBrOp::create(b, loc, bad, exit, ValueRange(status), next,
                         ValueRange());
  b.setInsertionPointToStart(next);
}

/// Where the plan put it.
Value FunctionLowering::pointerTo(Attribute place) {
  auto at = cast<dispatch::AtAttr>(place);
  Block &entry = target.getBody().front();
  if (at.getBase() == dispatch::PlaceBase::frame)
    return offset(entry.getArgument(1), at.getValue());
  if (at.getBase() == dispatch::PlaceBase::resident)
    return offset(entry.getArgument(2), at.getValue());
  if (at.getBase() == dispatch::PlaceBase::arg)
    return lookup(func.getArgument(at.getValue()));
  if (at.getBase() == dispatch::PlaceBase::result) {
    // After the arguments come the results that no argument is taken over for.
    unsigned position = 3 + func.getNumArguments();
    for (int64_t i = 0; i < at.getValue(); ++i) {
      auto other =
          func.getResultAttrOfType<dispatch::AtAttr>(i, dispatch::kAtAttr);
      position += other && other.getBase() == dispatch::PlaceBase::result;
    }
    return entry.getArgument(position);
  }
  return Value();
}

Value FunctionLowering::weightPointer(int64_t index) {
  auto pointer = LLVM::LLVMPointerType::get(b.getContext());
  static_assert(offsetof(CleaveContext, weights) == 0);
  Value context = target.getBody().front().getArgument(0);
  Value table = LLVM::LoadOp::create(b, loc, pointer, context);
  return LLVM::LoadOp::create(b, loc, pointer,
                              offset(table, index * int64_t(sizeof(void *))));
}

void FunctionLowering::placeResults(Operation *op) {
  auto places = op->getAttrOfType<ArrayAttr>(dispatch::kAtAttr);
  for (OpResult result : op->getResults())
    if (isTensor(result.getType()))
      values[result] = pointerTo(places[result.getResultNumber()]);
}

//===----------------------------------------------------------------------===//
// Signature
//===----------------------------------------------------------------------===//

static bool isRoot(func::FuncOp func) {
  return func.isPublic() || func->hasAttr(dispatch::kInitAttr);
}

/// Where callers want the results: tensors that take over no argument first,
/// then scalars.
static SmallVector<unsigned> returnedThroughPointers(func::FuncOp func) {
  SmallVector<unsigned> tensors, scalars;
  if (isRoot(func))
    return tensors;
  for (auto [i, type] : llvm::enumerate(func.getResultTypes())) {
    auto at = func.getResultAttrOfType<dispatch::AtAttr>(i, dispatch::kAtAttr);
    if (!isTensor(type))
      scalars.push_back(i);
    else if (at.getBase() == dispatch::PlaceBase::result)
      tensors.push_back(i);
  }
  tensors.append(scalars);
  return tensors;
}

LLVM::LLVMFuncOp FunctionLowering::declare() {
  auto pointer = LLVM::LLVMPointerType::get(b.getContext());
  SmallVector<Type> types(3, pointer);
  if (!isRoot(func)) {
    for (Type type : func.getArgumentTypes())
      types.push_back(isTensor(type) ? pointer : machineType(type));
    types.append(returnedThroughPointers(func).size(), pointer);
  }
  b.setInsertionPoint(func);
  auto result = LLVM::LLVMFuncOp::create(
      b, loc, symbolFor(func.getSymName(), isaName),
      LLVM::LLVMFunctionType::get(b.getI32Type(), types),
      LLVM::Linkage::Internal);
  return result;
}

void FunctionLowering::mapArguments() {
  Block &entry = target.getBody().front();
  for (BlockArgument argument : func.getArguments()) {
    unsigned i = argument.getArgNumber();
    if (isRoot(func)) {
      auto weight =
          edge.weightIndices.find(residentName(func.getArgAttrDict(i)));
      if (weight != edge.weightIndices.end()) {
        values[argument] = weightPointer(weight->second);
        continue;
      }
      values[argument] = pointerTo(
          func.getArgAttrOfType<dispatch::AtAttr>(i, dispatch::kAtAttr));
      continue;
    }
    Value passed = entry.getArgument(3 + i);
    values[argument] = isTensor(argument.getType())
                           ? passed
                           : fromMachine(passed, argument.getType());
  }
}

//===----------------------------------------------------------------------===//
// Ops
//===----------------------------------------------------------------------===//

/// In the first block, so that loops do not grow the stack.
Value FunctionLowering::slotFor(Type scalar) {
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(&target.getBody().front());
  return LLVM::AllocaOp::create(b, loc,
                                LLVM::LLVMPointerType::get(b.getContext()),
                                machineType(scalar), integer(1));
}

/// LLVM keeps an i1 in a byte, as buffers do.
Value FunctionLowering::load(Type scalar, Value pointer) {
  return fromMachine(LLVM::LoadOp::create(b, loc, machineType(scalar), pointer),
                     scalar);
}

void FunctionLowering::lowerReturn(func::ReturnOp ret) {
  unsigned position = 3 + func.getNumArguments();
  for (unsigned i : returnedThroughPointers(func)) {
    Value pointer = target.getBody().front().getArgument(position++);
    if (!isTensor(ret.getOperand(i).getType()))
      LLVM::StoreOp::create(b, loc, machine(lookup(ret.getOperand(i))),
                            pointer);
  }
  LLVM::BrOp::create(b, loc, ValueRange(integer32(0)), exit);
}

LogicalResult FunctionLowering::lowerCall(dispatch::CallOp call) {
  auto kernel = symbols.lookup<func::FuncOp>(call.getCallee());
  SmallVector<Value> arguments;
  for (Value input : call.getInputs())
    arguments.push_back(isTensor(input.getType()) ? lookup(input)
                                                  : machine(lookup(input)));
  for (Value result : call.getResults())
    arguments.push_back(lookup(result));
  auto scratch =
      kernel->getAttrOfType<IntegerAttr>(dispatch::kScratchBytesAttr);
  if (scratch && scratch.getInt() > 0)
    arguments.push_back(offset(
        target.getBody().front().getArgument(1),
        call->getAttrOfType<IntegerAttr>(dispatch::kScratchAttr).getInt()));
  std::string symbol =
      kernel->getAttrOfType<StringAttr>(dispatch::kSymbolAttr).str();
  if (!symbols.lookup(symbol)) {
    OpBuilder at =
        OpBuilder::atBlockBegin(func->getParentOfType<ModuleOp>().getBody());
    auto declared = LLVM::LLVMFuncOp::create(
        at, kernel.getLoc(), symbol,
        LLVM::LLVMFunctionType::get(
            LLVM::LLVMVoidType::get(b.getContext()),
            llvm::to_vector(ValueRange(arguments).getTypes())));
    symbols.insert(declared);
  }
  std::string name = kernel.getSymName().str();
  if (call.getNumResults())
    if (std::string value = givenName(call.getResult(0)); !value.empty())
      name += " '" + value + "'";
  Value context = target.getBody().front().getArgument(0);
  LLVM::CallOp::create(b, loc, TypeRange(), kRuntimeTraceBegin,
                       ValueRange{context, address(data.string(name))});
  LLVM::CallOp::create(b, loc, TypeRange(), symbol, arguments);
  LLVM::CallOp::create(b, loc, TypeRange(), kRuntimeTraceEnd,
                       ValueRange{context});
  return success();
}

LogicalResult FunctionLowering::lowerCall(func::CallOp call) {
  auto callee = symbols.lookup<func::FuncOp>(call.getCallee());
  Block &entry = target.getBody().front();
  auto frame = call->getAttrOfType<IntegerAttr>(dispatch::kFrameAttr);
  SmallVector<Value> arguments = {
      entry.getArgument(0),
      offset(entry.getArgument(1), frame ? frame.getInt() : 0),
      entry.getArgument(2)};
  for (Value operand : call.getOperands())
    arguments.push_back(isTensor(operand.getType()) ? lookup(operand)
                                                    : machine(lookup(operand)));
  SmallVector<std::pair<OpResult, Value>> slots;
  for (unsigned i : returnedThroughPointers(callee)) {
    OpResult result = call->getResult(i);
    if (!isTensor(result.getType()))
      slots.push_back({result, slotFor(result.getType())});
    arguments.push_back(isTensor(result.getType()) ? lookup(result)
                                                   : slots.back().second);
  }
  auto made =
      LLVM::CallOp::create(b, loc, TypeRange(b.getI32Type()),
                           symbolFor(callee.getSymName(), isaName), arguments);
  check(made.getResult());
  for (auto [result, slot] : slots)
    values[result] = load(result.getType(), slot);
  return success();
}

LogicalResult FunctionLowering::lowerComm(Operation *op) {
  FailureOr<Datum> comm = commDatum(op, mesh, data);
  if (failed(comm))
    return failure();
  auto pointer = LLVM::LLVMPointerType::get(b.getContext());
  Value none = LLVM::ZeroOp::create(b, loc, pointer);
  Value input = isa<comm::RecvOp>(op) ? none : lookup(op->getOperand(0));
  Value output = op->getNumResults() ? lookup(op->getResult(0)) : none;
  auto made = LLVM::CallOp::create(
      b, loc, TypeRange(b.getI32Type()), kRuntimeComm,
      ValueRange{target.getBody().front().getArgument(0),
                 address(data.addressOf(*comm)), input, output});
  check(made.getResult());
  return success();
}

void FunctionLowering::lowerCoordinate(Operation *op) {
  AxisList axes = toAxes(mesh, cast<comm::CoordinateOp>(op).getAxes());
  auto made = LLVM::CallOp::create(
      b, loc, TypeRange(b.getI64Type()), kRuntimeCoordinate,
      ValueRange{target.getBody().front().getArgument(0),
                 address(data.addressOf(data.axes(axes)))});
  values[op->getResult(0)] = asIndex(made.getResult());
}

/// The address of a view: an offset where a slice begins.
void FunctionLowering::lowerView(Operation *op) {
  Value pointer = lookup(op->getOperand(0));
  if (auto slice = dyn_cast<tensor::ExtractSliceOp>(op)) {
    RankedTensorType type = slice.getSourceType();
    int64_t stride = bytesOf(type);
    for (auto [size, at] :
         llvm::zip(type.getShape(), slice.getMixedOffsets())) {
      stride /= std::max<int64_t>(size, 1);
      if (auto fixed = dyn_cast<Attribute>(at)) {
        pointer = offset(pointer, cast<IntegerAttr>(fixed).getInt() * stride);
        continue;
      }
      Value index = machine(lookup(cast<Value>(at)));
      Value bytes = LLVM::MulOp::create(b, loc, index, integer(stride));
      pointer = LLVM::GEPOp::create(b, loc, pointer.getType(), b.getI8Type(),
                                    pointer, ArrayRef<LLVM::GEPArg>{bytes});
    }
  }
  values[op->getResult(0)] = pointer;
}

void FunctionLowering::lowerExtract(Operation *op) {
  auto extract = cast<tensor::ExtractOp>(op);
  Value index = integer(0);
  for (auto [size, at] : llvm::zip(extract.getTensor().getType().getShape(),
                                   extract.getIndices())) {
    index = LLVM::MulOp::create(b, loc, index, integer(size));
    index = LLVM::AddOp::create(b, loc, index, machine(lookup(at)));
  }
  Type type = extract.getType(), element = machineType(type);
  Value source = lookup(extract.getTensor());
  Value pointer = LLVM::GEPOp::create(b, loc, source.getType(), element, source,
                                      ArrayRef<LLVM::GEPArg>{index});
  values[extract] = load(type, pointer);
}

LogicalResult FunctionLowering::lowerLoop(scf::ForOp loop) {
  Type integerType = loop.getLowerBound().getType();
  SmallVector<Value> inits = {machine(lookup(loop.getLowerBound()))};
  SmallVector<Type> types = {machineType(integerType)};
  for (Value init : loop.getInitArgs())
    if (!isTensor(init.getType())) {
      inits.push_back(machine(lookup(init)));
      types.push_back(machineType(init.getType()));
    }
  Value upper = machine(lookup(loop.getUpperBound()));
  Value step = machine(lookup(loop.getStep()));
  Block *header = target.addBlock(), *body = target.addBlock(),
        *after = target.addBlock();
  header->addArguments(types, SmallVector<Location>(types.size(), loc));
  LLVM::BrOp::create(b, loc, inits, header);

  b.setInsertionPointToStart(header);
  auto predicate = loop.getUnsignedCmp() ? LLVM::ICmpPredicate::ult
                                         : LLVM::ICmpPredicate::slt;
  Value more =
      LLVM::ICmpOp::create(b, loc, predicate, header->getArgument(0), upper);
  LLVM::CondBrOp::create(b, loc, more, body, after);

  // What the header carries is the loop's value both inside and after.
  b.setInsertionPointToStart(body);
  placeResults(loop);
  values[loop.getInductionVar()] =
      fromMachine(header->getArgument(0), integerType);
  unsigned position = 1;
  for (auto [argument, result] :
       llvm::zip(loop.getRegionIterArgs(), loop.getResults()))
    values[argument] =
        isTensor(argument.getType())
            ? lookup(result)
            : fromMachine(header->getArgument(position++), argument.getType());
  if (failed(lower(*loop.getBody())))
    return failure();
  SmallVector<Value> next = {
      LLVM::AddOp::create(b, loc, header->getArgument(0), step)};
  for (Value yielded : loop.getBody()->getTerminator()->getOperands())
    if (!isTensor(yielded.getType()))
      next.push_back(machine(lookup(yielded)));
  LLVM::BrOp::create(b, loc, next, header);

  b.setInsertionPointToStart(after);
  placeResults(loop);
  position = 1;
  for (OpResult result : loop.getResults())
    if (!isTensor(result.getType()))
      values[result] =
          fromMachine(header->getArgument(position++), result.getType());
  return success();
}

/// Scalar arithmetic stays as it is; conversions to LLVM follow.
LogicalResult FunctionLowering::lowerScalar(Operation *op) {
  StringRef dialect = op->getName().getDialectNamespace();
  if (dialect != "arith" && dialect != "math" && dialect != "index")
    return op->emitOpError() << "has no lowering outside of kernels";
  IRMapping map;
  for (Value operand : op->getOperands())
    map.map(operand, lookup(operand));
  Operation *copy = b.clone(*op, map);
  for (auto [old, fresh] : llvm::zip(op->getResults(), copy->getResults()))
    values[old] = fresh;
  return success();
}

LogicalResult FunctionLowering::lower(Operation *op) {
  if (auto loop = dyn_cast<scf::ForOp>(op))
    return lowerLoop(loop);
  if (isViewOp(op)) {
    lowerView(op);
    return success();
  }
  auto constant = dyn_cast<arith::ConstantOp>(op);
  if (constant && isTensor(constant.getType())) {
    values[constant] =
        address(data.tensor(cast<ElementsAttr>(constant.getValue())));
    return success();
  }
  placeResults(op);
  return llvm::TypeSwitch<Operation *, LogicalResult>(op)
      .Case([&](dispatch::CallOp call) { return lowerCall(call); })
      .Case([&](func::CallOp call) { return lowerCall(call); })
      .Case([&](comm::CoordinateOp) { return lowerCoordinate(op), success(); })
      .Case([&](tensor::ExtractOp) { return lowerExtract(op), success(); })
      .Case<tensor::EmptyOp, scf::YieldOp>([](auto) { return success(); })
      .Case([&](dispatch::CopyOp copy) {
        LLVM::MemcpyOp::create(b, loc, lookup(copy.getResult()),
                               lookup(copy.getInput()),
                               integer(bytesOf(copy.getType())),
                               /*isVolatile=*/false);
        return success();
      })
      .Case([&](func::ReturnOp ret) { return lowerReturn(ret), success(); })
      .Default([&](Operation *other) {
        if (other->getName().getDialectNamespace() == "comm")
          return lowerComm(other);
        return lowerScalar(other);
      });
}

LogicalResult FunctionLowering::lower(Block &block) {
  for (Operation &op : block) {
    Location outer = loc;
    loc = op.getLoc();
    if (failed(lower(&op)))
      return failure();
    loc = outer;
  }
  return success();
}

LogicalResult FunctionLowering::run() {
  target = declare();
  Block *entry = target.addEntryBlock(b);
  exit = target.addBlock();
  exit->addArgument(b.getI32Type(), loc);
  b.setInsertionPointToStart(exit);
  LLVM::ReturnOp::create(b, loc, exit->getArgument(0));
  b.setInsertionPointToStart(entry);
  mapArguments();
  return lower(func.getBody().front());
}
