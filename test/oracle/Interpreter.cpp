//===- Interpreter.cpp - Functions, control flow, scalars -----------------===//
// Every op is run for all active ranks before the next one: ranks stay in
// lock-step. Where a loop bound or a condition differs between ranks, the
// groups of equal ones run one after the other; a communication in there does
// not find its group and is an error.
//===----------------------------------------------------------------------===//
#include "dialects/cleave/Cleave.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "test/oracle/InterpreterImpl.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace cleave::oracle {

llvm::ArrayRef<int64_t> shapeOf(Type type) {
  return cast<RankedTensorType>(type).getShape();
}

Interpreter::Interpreter(ModuleOp module, uint64_t poisonSeed, int64_t maxSteps)
    : module(module), random(poisonSeed), stepsLeft(maxSteps) {}

Interpreter::~Interpreter() = default;

//===----------------------------------------------------------------------===//
// Entry points
//===----------------------------------------------------------------------===//

llvm::Expected<func::FuncOp> Interpreter::findFunction(StringRef name) {
  auto function = module.lookupSymbol<func::FuncOp>(name);
  if (!function || function.isDeclaration())
    return llvm::createStringError("the module defines no function '%s'",
                                   name.str().c_str());
  return function;
}

llvm::Expected<std::vector<Tensor>>
Interpreter::run(StringRef name, llvm::ArrayRef<Tensor> inputs) {
  std::vector<Blocks> blocks;
  for (const Tensor &input : inputs)
    blocks.push_back({input});
  numRanks = 1;
  auto results = runBlocks(name, blocks);
  if (!results)
    return results.takeError();
  std::vector<Tensor> whole;
  for (Blocks &result : *results)
    whole.push_back(std::move(result.front()));
  return whole;
}

/// The mesh of a partitioned module; one rank if there is none.
static Mesh meshOfModule(ModuleOp module) {
  for (MeshOp op : module.getOps<MeshOp>())
    return toMesh(op);
  return {};
}

static Sharding edgeSharding(const Mesh &mesh, DictionaryAttr attrs,
                             unsigned rank) {
  if (attrs)
    if (auto attr = attrs.getAs<ShardingAttr>(kShardingAttr))
      return toSharding(mesh, attr);
  return Sharding::whole(rank, false);
}

static llvm::ArrayRef<int64_t> globalShape(DictionaryAttr attrs, Type local) {
  if (attrs)
    if (auto attr = attrs.getAs<TypeAttr>(kGlobalTypeAttr))
      return shapeOf(attr.getValue());
  return shapeOf(local);
}

llvm::Expected<std::vector<Tensor>>
Interpreter::runPartitioned(StringRef name, llvm::ArrayRef<Tensor> inputs) {
  auto function = findFunction(name);
  if (!function)
    return function.takeError();
  Mesh mesh = meshOfModule(module);
  std::vector<Blocks> blocks;
  for (auto [i, input] : llvm::enumerate(inputs)) {
    Sharding sharding =
        edgeSharding(mesh, function->getArgAttrDict(i), input.rank());
    blocks.push_back(scatter(mesh, sharding, input, random));
  }
  auto results = runBlocks(name, blocks);
  if (!results)
    return results.takeError();
  std::vector<Tensor> whole;
  for (auto [i, result] : llvm::enumerate(*results)) {
    DictionaryAttr attrs = function->getResultAttrDict(i);
    auto shape = globalShape(attrs, function->getResultTypes()[i]);
    Sharding sharding = edgeSharding(mesh, attrs, shape.size());
    if (!sharding.partial.empty())
      return llvm::createStringError("result %zu is partial at the edge", i);
    auto joined =
        gather(mesh, sharding, shape, result, "res" + std::to_string(i));
    if (!joined)
      return joined.takeError();
    whole.push_back(std::move(*joined));
  }
  return whole;
}

llvm::Expected<std::vector<Blocks>>
Interpreter::runBlocks(StringRef name, llvm::ArrayRef<Blocks> inputs) {
  auto function = findFunction(name);
  if (!function)
    return function.takeError();
  if (function->getNumArguments() != inputs.size())
    return llvm::createStringError("'%s' has %u arguments, got %zu inputs",
                                   name.str().c_str(),
                                   function->getNumArguments(), inputs.size());
  numRanks = inputs.empty() ? meshOfModule(module).numRanks()
                            : static_cast<int64_t>(inputs.front().size());
  active.clear();
  for (int rank = 0; rank < numRanks; ++rank)
    active.push_back(rank);
  std::vector<Cells> arguments, results;
  for (auto [i, input] : llvm::enumerate(inputs)) {
    Cells &cells = arguments.emplace_back();
    auto type = dyn_cast<RankedTensorType>(function->getArgumentTypes()[i]);
    for (const Tensor &block : input) {
      if (!type || type.getShape() != llvm::ArrayRef<int64_t>(block.shape))
        return llvm::createStringError("input %zu has not the type of '%s'", i,
                                       name.str().c_str());
      cells.push_back({std::make_shared<const Tensor>(block)});
    }
  }
  if (llvm::Error error = call(*function, std::move(arguments), results))
    return error;
  for (auto &[ends, sent] : inFlight)
    if (!sent.empty())
      return llvm::createStringError(
          "a block sent from rank %d to rank %d is never received",
          static_cast<int>(ends.first), static_cast<int>(ends.second));
  std::vector<Blocks> blocks;
  for (Cells &cells : results) {
    Blocks &result = blocks.emplace_back();
    for (Cell &cell : cells) {
      if (!cell.tensor)
        return llvm::createStringError("'%s' returns no tensor",
                                       name.str().c_str());
      result.push_back(*cell.tensor);
    }
  }
  return blocks;
}

//===----------------------------------------------------------------------===//
// Helpers
//===----------------------------------------------------------------------===//

llvm::Error Interpreter::failAt(Operation *op, const Twine &problem) {
  std::string text;
  llvm::raw_string_ostream os(text);
  os << "'" << op->getName() << "'";
  if (op->getNumResults() > 0)
    os << " (" << valueName(op->getResult(0)) << ")";
  os << ": " << problem;
  return llvm::createStringError(text);
}

llvm::Error Interpreter::countSteps(Operation *op, int64_t steps) {
  stepsLeft -= steps;
  if (stepsLeft < 0)
    return failAt(op, "the program takes too many steps for the oracle");
  return llvm::Error::success();
}

int64_t Interpreter::indexIn(OpFoldResult value, int rank, Frame &frame) {
  if (auto attr = dyn_cast<Attribute>(value))
    return cast<IntegerAttr>(attr).getInt();
  return frame[cast<Value>(value)][rank].scalar.i;
}

Shape Interpreter::indicesIn(llvm::ArrayRef<OpFoldResult> values, int rank,
                             Frame &frame) {
  Shape result;
  for (OpFoldResult value : values)
    result.push_back(indexIn(value, rank, frame));
  return result;
}

Tensor Interpreter::poisonTensor(Type type) {
  auto tensor = cast<RankedTensorType>(type);
  Tensor result(*Kind::of(tensor.getElementType()), tensor.getShape());
  for (Scalar &element : result.data)
    element = poison(result.kind, random);
  return result;
}

llvm::Expected<Body *> Interpreter::bodyOf(Operation *op, Block *block) {
  std::unique_ptr<Body> &body = bodies[op];
  if (body)
    return body.get();
  llvm::Expected<Body> made = block ? Body::ofBlock(*block) : Body::ofOp(op);
  if (!made)
    return made.takeError();
  body = std::make_unique<Body>(std::move(*made));
  return body.get();
}

void Interpreter::capture(const Body &body, std::vector<Scalar> &slots,
                          llvm::SmallVectorImpl<const Tensor *> &tensors,
                          int rank, Frame &frame) {
  for (auto [value, slot] : body.capturedScalars)
    slots[slot] = frame[value][rank].scalar;
  for (Value value : body.capturedTensors)
    tensors.push_back(&tensorIn(value, rank, frame));
  for (auto [op, slot] : body.coordinates)
    slots[slot].i = coordinate(op, rank);
}

//===----------------------------------------------------------------------===//
// Functions and control flow
//===----------------------------------------------------------------------===//

llvm::Error Interpreter::call(func::FuncOp function,
                              std::vector<Cells> arguments,
                              std::vector<Cells> &results) {
  if (depth >= 64)
    return failAt(function, "calls are nested too deeply");
  Block &block = function.getBody().front();
  Frame frame;
  for (auto [argument, cells] : llvm::zip(block.getArguments(), arguments))
    frame[argument] = std::move(cells);
  ++depth;
  llvm::Error error = runBlock(block, frame);
  --depth;
  if (error)
    return error;
  for (Value value : block.getTerminator()->getOperands())
    results.push_back(frame[value]);
  return llvm::Error::success();
}

llvm::Error Interpreter::runBlock(Block &block, Frame &frame) {
  for (Operation &op : block.without_terminator())
    if (llvm::Error error = runOp(&op, frame))
      return error;
  return llvm::Error::success();
}

llvm::Error Interpreter::runOp(Operation *op, Frame &frame) {
  for (Value result : op->getResults()) {
    auto tensor = dyn_cast<RankedTensorType>(result.getType());
    if (tensor && !tensor.hasStaticShape())
      return failAt(op, "the oracle knows static shapes only");
    if (!Kind::of(tensor ? tensor.getElementType() : result.getType()))
      return failAt(op, "the oracle does not know this element type");
  }
  if (auto linalgOp = dyn_cast<linalg::LinalgOp>(op))
    return runLinalg(linalgOp, frame);
  if (auto softmax = dyn_cast<linalg::SoftmaxOp>(op))
    return runSoftmax(softmax, frame);
  bool known = true;
  if (llvm::Error error = runTensor(op, frame, known))
    return error;
  if (known)
    return llvm::Error::success();
  if (llvm::Error error = runComm(op, frame, known))
    return error;
  return known ? llvm::Error::success() : runOther(op, frame);
}

llvm::Error Interpreter::runOther(Operation *op, Frame &frame) {
  if (isa<ConstraintOp, BarrierOp>(op)) {
    Cells cells = frame[op->getOperand(0)];
    frame[op->getResult(0)] = std::move(cells);
    return llvm::Error::success();
  }
  if (isa<GroupOp>(op))
    return llvm::Error::success();
  if (isa<func::CallOp>(op))
    return runCall(op, frame);
  if (auto loop = dyn_cast<scf::ForOp>(op))
    return runFor(loop, frame);
  if (auto branch = dyn_cast<scf::IfOp>(op))
    return runIf(branch, frame);
  if (op->hasTrait<OpTrait::ConstantLike>())
    return runConstant(op, frame);
  if (op->getNumResults() == 1 &&
      isa<RankedTensorType>(op->getResult(0).getType()))
    return runElementwise(op, frame);
  return runScalar(op, frame);
}

llvm::Error Interpreter::runCall(Operation *op, Frame &frame) {
  auto callee = findFunction(cast<func::CallOp>(op).getCallee());
  if (!callee)
    return callee.takeError();
  std::vector<Cells> arguments, results;
  for (Value operand : op->getOperands())
    arguments.push_back(frame[operand]);
  if (llvm::Error error = call(*callee, std::move(arguments), results))
    return error;
  for (auto [value, cells] : llvm::zip(op->getResults(), results)) {
    Cells &mine = define(value, frame);
    for (int rank : active)
      mine[rank] = cells[rank];
  }
  return llvm::Error::success();
}

llvm::Error Interpreter::runForTogether(scf::ForOp op, Frame &frame) {
  int first = active.front();
  int64_t low = frame[op.getLowerBound()][first].scalar.i;
  int64_t high = frame[op.getUpperBound()][first].scalar.i;
  int64_t step = frame[op.getStep()][first].scalar.i;
  if (step <= 0)
    return failAt(op, "the step is not positive");
  auto copy = [&](ValueRange from, ValueRange to) {
    std::vector<Cells> values; // all are read before one is written
    for (Value value : from)
      values.push_back(frame[value]);
    for (auto [value, cells] : llvm::zip(to, values))
      for (int rank : active)
        define(value, frame)[rank] = cells[rank];
  };
  copy(op.getInitArgs(), op.getRegionIterArgs());
  for (int64_t i = low; i < high; i += step) {
    if (llvm::Error error = countSteps(op, 1))
      return error;
    for (int rank : active)
      define(op.getInductionVar(), frame)[rank].scalar.i = i;
    if (llvm::Error error = runBlock(*op.getBody(), frame))
      return error;
    copy(op.getBody()->getTerminator()->getOperands(), op.getRegionIterArgs());
  }
  copy(op.getRegionIterArgs(), op.getResults());
  return llvm::Error::success();
}

llvm::Error Interpreter::runFor(scf::ForOp op, Frame &frame) {
  std::map<std::array<int64_t, 3>, llvm::SmallVector<int, 8>> groups;
  for (int rank : active)
    groups[{frame[op.getLowerBound()][rank].scalar.i,
            frame[op.getUpperBound()][rank].scalar.i,
            frame[op.getStep()][rank].scalar.i}]
        .push_back(rank);
  llvm::SmallVector<int, 8> all = active;
  for (auto &[bounds, ranks] : groups) {
    active = ranks;
    if (llvm::Error error = runForTogether(op, frame))
      return error;
  }
  active = all;
  return llvm::Error::success();
}

llvm::Error Interpreter::runIf(scf::IfOp op, Frame &frame) {
  llvm::SmallVector<int, 8> all = active, branches[2];
  for (int rank : all)
    branches[frame[op.getCondition()][rank].scalar.i == 0].push_back(rank);
  for (auto [region, ranks] : llvm::zip(op->getRegions(), branches)) {
    if (ranks.empty() || region.empty())
      continue;
    active = ranks;
    if (llvm::Error error = runBlock(region.front(), frame))
      return error;
    auto yields = region.front().getTerminator()->getOperands();
    for (auto [result, value] : llvm::zip(op.getResults(), yields)) {
      Cells cells = frame[value];
      for (int rank : ranks)
        define(result, frame)[rank] = cells[rank];
    }
  }
  active = all;
  return llvm::Error::success();
}

//===----------------------------------------------------------------------===//
// Constants and arithmetic
//===----------------------------------------------------------------------===//

static bool fillConstant(Tensor &tensor, DenseElementsAttr attr) {
  auto assign = [&](auto values, auto convert) {
    for (auto [element, value] : llvm::zip(tensor.data, values))
      element = convert(value);
  };
  if (tensor.kind.isFloat())
    assign(attr.getValues<APFloat>(), [](const APFloat &value) {
      return Scalar::ofFloat(value.convertToDouble());
    });
  else
    assign(attr.getValues<APInt>(), [](const APInt &value) {
      return Scalar::ofInt(value.getSExtValue());
    });
  return true;
}

llvm::Error Interpreter::runConstant(Operation *op, Frame &frame) {
  Value result = op->getResult(0);
  Attribute value = op->getAttr("value");
  Cells &cells = define(result, frame);
  if (auto scalar = value ? scalarOfAttr(value) : std::nullopt) {
    for (int rank : active)
      cells[rank].scalar = *scalar;
    return llvm::Error::success();
  }
  auto dense = dyn_cast_or_null<DenseElementsAttr>(value);
  if (!dense)
    return failAt(op, "the oracle does not know this constant");
  std::shared_ptr<const Tensor> &cached = constants[op];
  if (!cached) {
    Tensor tensor(*Kind::of(dense.getElementType()),
                  dense.getType().getShape());
    fillConstant(tensor, dense);
    cached = std::make_shared<const Tensor>(std::move(tensor));
  }
  for (int rank : active)
    cells[rank].tensor = cached;
  return llvm::Error::success();
}

llvm::Error Interpreter::runScalar(Operation *op, Frame &frame) {
  auto body = bodyOf(op, nullptr);
  if (!body)
    return body.takeError();
  for (int rank : active) {
    std::vector<Scalar> slots = (*body)->makeSlots();
    for (auto [operand, slot] :
         llvm::zip(op->getOperands(), (*body)->arguments))
      slots[slot] = frame[operand][rank].scalar;
    BodyContext context;
    (*body)->run(slots, context);
    if (!context.error.empty())
      return failAt(op, context.error);
    for (auto [result, slot] : llvm::zip(op->getResults(), (*body)->results))
      define(result, frame)[rank].scalar = slots[slot];
  }
  return llvm::Error::success();
}

llvm::Error Interpreter::runElementwise(Operation *op, Frame &frame) {
  auto known = scalarOp(op);
  if (!known)
    return failAt(op, "the oracle does not know this op");
  for (int rank : active) {
    Tensor result(known->out, shapeOf(op->getResult(0).getType()));
    if (llvm::Error error = countSteps(op, result.size()))
      return error;
    std::string error;
    for (int64_t i = 0; i < result.size() && error.empty(); ++i) {
      Scalar args[4];
      for (auto [arg, operand] : llvm::zip(args, op->getOperands())) {
        const Cell &cell = frame[operand][rank];
        arg = cell.tensor ? cell.tensor->data[i] : cell.scalar;
      }
      result.data[i] = (*known)(args, error);
    }
    if (!error.empty())
      return failAt(op, error);
    setTensor(op->getResult(0), rank, std::move(result), frame);
  }
  return llvm::Error::success();
}

} // namespace cleave::oracle
