//===- Body.cpp - Regions on scalars, ready to run ------------------------===//
#include "test/oracle/Body.h"
#include "dialects/comm/Comm.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;

namespace cleave::oracle {

std::optional<Scalar> scalarOfAttr(Attribute attr) {
  if (auto integer = dyn_cast<IntegerAttr>(attr))
    return Scalar::ofInt(integer.getValue().getSExtValue());
  if (auto real = dyn_cast<FloatAttr>(attr))
    return Scalar::ofFloat(real.getValueAsDouble());
  return std::nullopt;
}

int64_t evaluate(AffineExpr expr, llvm::ArrayRef<int64_t> dims,
                 llvm::ArrayRef<int64_t> symbols) {
  if (auto constant = dyn_cast<AffineConstantExpr>(expr))
    return constant.getValue();
  if (auto dim = dyn_cast<AffineDimExpr>(expr))
    return dims[dim.getPosition()];
  if (auto symbol = dyn_cast<AffineSymbolExpr>(expr))
    return symbols[symbol.getPosition()];
  auto binary = cast<AffineBinaryOpExpr>(expr);
  int64_t x = evaluate(binary.getLHS(), dims, symbols);
  int64_t y = evaluate(binary.getRHS(), dims, symbols);
  int64_t quotient = y == 0 ? 0 : x / y - (x % y != 0 && (x < 0) != (y < 0));
  switch (expr.getKind()) {
  case AffineExprKind::Add:
    return x + y;
  case AffineExprKind::Mul:
    return x * y;
  case AffineExprKind::Mod:
    return x - quotient * y;
  case AffineExprKind::FloorDiv:
    return quotient;
  default:
    return quotient + (y != 0 && x % y != 0);
  }
}

//===----------------------------------------------------------------------===//
// Making a body
//===----------------------------------------------------------------------===//

class BodyBuilder {
public:
  explicit BodyBuilder(Body &body, Region *outer) : body(body), outer(outer) {}

  int slot(Value value) {
    auto [it, isNew] = slots.try_emplace(value, body.initialSlots.size());
    if (isNew)
      body.initialSlots.push_back({0});
    return it->second;
  }
  llvm::Error addOp(Operation *op, int list);
  llvm::Error addBlock(Block &block, int list);

private:
  int operandSlot(Value value) {
    if (slots.contains(value) || !isOutside(value))
      return slot(value);
    int result = slot(value);
    body.capturedScalars.push_back({value, result});
    return result;
  }
  bool isOutside(Value value) {
    return outer && !outer->isAncestor(value.getParentRegion());
  }
  int tensorIndex(Value value) {
    auto it = llvm::find(body.capturedTensors, value);
    int index = it - body.capturedTensors.begin();
    if (it == body.capturedTensors.end())
      body.capturedTensors.push_back(value);
    return index;
  }
  llvm::Error addIf(scf::IfOp op, int list);
  bool addKnown(Operation *op, Instruction &instruction);

  Body &body;
  Region *outer;
  llvm::DenseMap<Value, int> slots;
};

llvm::Error BodyBuilder::addIf(scf::IfOp op, int list) {
  int branches[2];
  for (auto [i, region] : llvm::enumerate(op->getRegions())) {
    branches[i] = body.lists.size();
    body.lists.emplace_back();
    if (region.empty())
      continue;
    if (llvm::Error error = addBlock(region.front(), branches[i]))
      return error;
    auto yields = region.front().getTerminator()->getOperands();
    for (auto [result, value] : llvm::zip(op.getResults(), yields)) {
      Instruction move;
      move.code = Instruction::Move;
      move.dst = slot(result);
      move.src = {operandSlot(value)};
      body.lists[branches[i]].push_back(move);
    }
  }
  Instruction instruction;
  instruction.code = Instruction::If;
  instruction.src = {operandSlot(op.getCondition())};
  instruction.first = branches[0];
  instruction.second = branches[1];
  body.lists[list].push_back(instruction);
  return llvm::Error::success();
}

/// Ops that are no arithmetic. False if `op` is none of them.
bool BodyBuilder::addKnown(Operation *op, Instruction &instruction) {
  if (auto index = dyn_cast<linalg::IndexOp>(op)) {
    instruction.code = Instruction::LoopIndex;
    instruction.first = index.getDim();
    return true;
  }
  if (auto extract = dyn_cast<tensor::ExtractOp>(op)) {
    instruction.code = Instruction::Extract;
    instruction.first = tensorIndex(extract.getTensor());
    for (Value index : extract.getIndices())
      instruction.src.push_back(operandSlot(index));
    return true;
  }
  if (auto apply = dyn_cast<affine::AffineApplyOp>(op)) {
    instruction.code = Instruction::Affine;
    instruction.expr = apply.getAffineMap().getResult(0);
    instruction.numDims = apply.getAffineMap().getNumDims();
    for (Value operand : apply.getMapOperands())
      instruction.src.push_back(operandSlot(operand));
    return true;
  }
  return false;
}

llvm::Error BodyBuilder::addOp(Operation *op, int list) {
  if (auto branch = dyn_cast<scf::IfOp>(op))
    return addIf(branch, list);
  if (op->hasTrait<OpTrait::ConstantLike>()) {
    Attribute value = op->getAttr("value");
    auto scalar = value ? scalarOfAttr(value) : std::nullopt;
    if (scalar) {
      body.initialSlots[slot(op->getResult(0))] = *scalar;
      return llvm::Error::success();
    }
  }
  if (isa<comm::CoordinateOp>(op)) {
    body.coordinates.push_back({op, slot(op->getResult(0))});
    return llvm::Error::success();
  }
  Instruction instruction;
  if (addKnown(op, instruction)) {
    instruction.dst = slot(op->getResult(0));
  } else if (auto known = scalarOp(op)) {
    instruction.op = *known;
    for (Value operand : op->getOperands())
      instruction.src.push_back(operandSlot(operand));
    instruction.dst = slot(op->getResult(0));
  } else {
    return llvm::createStringError("the oracle does not know '%s' on scalars",
                                   op->getName().getStringRef().str().c_str());
  }
  body.lists[list].push_back(instruction);
  return llvm::Error::success();
}

llvm::Error BodyBuilder::addBlock(Block &block, int list) {
  for (Operation &op : block.without_terminator())
    if (llvm::Error error = addOp(&op, list))
      return error;
  return llvm::Error::success();
}

llvm::Expected<Body> Body::ofBlock(Block &block) {
  Body body;
  body.lists.emplace_back();
  BodyBuilder builder(body, block.getParent());
  for (BlockArgument argument : block.getArguments())
    body.arguments.push_back(builder.slot(argument));
  if (llvm::Error error = builder.addBlock(block, 0))
    return error;
  // A yielded value may come from around the body.
  for (Value value : block.getTerminator()->getOperands()) {
    bool outside = !block.getParent()->isAncestor(value.getParentRegion());
    bool known = llvm::any_of(body.capturedScalars, [&](auto &entry) {
      return entry.first == value;
    });
    body.results.push_back(builder.slot(value));
    if (outside && !known)
      body.capturedScalars.push_back({value, body.results.back()});
  }
  return body;
}

llvm::Expected<Body> Body::ofOp(Operation *op) {
  Body body;
  body.lists.emplace_back();
  BodyBuilder builder(body, nullptr);
  for (Value operand : op->getOperands())
    body.arguments.push_back(builder.slot(operand));
  if (llvm::Error error = builder.addOp(op, 0))
    return error;
  for (Value result : op->getResults())
    body.results.push_back(builder.slot(result));
  return body;
}

//===----------------------------------------------------------------------===//
// Running it
//===----------------------------------------------------------------------===//

static Scalar extract(const Instruction &instruction,
                      const std::vector<Scalar> &slots, BodyContext &context) {
  const Tensor &tensor = *context.tensors[instruction.first];
  int64_t element = 0;
  for (auto [size, src] : llvm::zip(tensor.shape, instruction.src)) {
    int64_t at = slots[src].i;
    if (at < 0 || at >= size) {
      context.error = "tensor.extract reads index " + std::to_string(at) +
                      " of a dim of size " + std::to_string(size);
      return {0};
    }
    element = element * size + at;
  }
  return tensor.data[element];
}

static Scalar applyAffine(const Instruction &instruction,
                          const std::vector<Scalar> &slots) {
  Shape values;
  for (int src : instruction.src)
    values.push_back(slots[src].i);
  llvm::ArrayRef<int64_t> all(values);
  return Scalar::ofInt(evaluate(instruction.expr,
                                all.take_front(instruction.numDims),
                                all.drop_front(instruction.numDims)));
}

void Body::runList(int list, std::vector<Scalar> &slots,
                   BodyContext &context) const {
  for (const Instruction &instruction : lists[list]) {
    switch (instruction.code) {
    case Instruction::Compute: {
      Scalar args[4];
      unsigned n = 0;
      for (int src : instruction.src)
        args[n++] = slots[src];
      slots[instruction.dst] = instruction.op(args, context.error);
      break;
    }
    case Instruction::Move:
      slots[instruction.dst] = slots[instruction.src[0]];
      break;
    case Instruction::LoopIndex:
      slots[instruction.dst].i = context.loopIndices[instruction.first];
      break;
    case Instruction::Extract:
      slots[instruction.dst] = extract(instruction, slots, context);
      break;
    case Instruction::If:
      runList(slots[instruction.src[0]].i != 0 ? instruction.first
                                               : instruction.second,
              slots, context);
      break;
    case Instruction::Affine:
      slots[instruction.dst] = applyAffine(instruction, slots);
      break;
    }
    if (!context.error.empty())
      return;
  }
}

} // namespace cleave::oracle
