//===- Generator.cpp - Values and the order of random programs ------------===//
#include "dialects/cleave/Cleave.h"
#include "dialects/comm/Comm.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/IR/Verifier.h"
#include "test/oracle/GeneratorImpl.h"
#include <cmath>

using namespace mlir;

namespace cleave::oracle {

void registerOracleDialects(DialectRegistry &registry) {
  registry.insert<CleaveDialect, comm::CommDialect, func::FuncDialect,
                  arith::ArithDialect, math::MathDialect, scf::SCFDialect,
                  linalg::LinalgDialect, tensor::TensorDialect,
                  affine::AffineDialect>();
}

ProgramGenerator::ProgramGenerator(MLIRContext *context, uint64_t seed,
                                   const GeneratorOptions &options)
    : options(options), random(seed * 2654435761u + 17), b(context),
      loc(b.getUnknownLoc()) {}

//===----------------------------------------------------------------------===//
// Sizes and types
//===----------------------------------------------------------------------===//

int64_t ProgramGenerator::randomSize() {
  if (!sizes.empty() && random.chance(85))
    return random.pick(sizes);
  return random.between(1, 17);
}

bool ProgramGenerator::fits(llvm::ArrayRef<int64_t> shape) const {
  // A reduction may drop a dim of size 0 and keep the others.
  int64_t elements = 1;
  for (int64_t size : shape)
    elements *= std::max<int64_t>(size, 1);
  return elements <= options.maxElements;
}

Shape ProgramGenerator::randomShape(int64_t rank) {
  Shape shape;
  for (int64_t i = 0; i < rank; ++i)
    shape.push_back(randomSize());
  while (!fits(shape))
    random.pick(shape) = random.between(1, 3);
  return shape;
}

Type ProgramGenerator::randomElement() {
  if (options.floats)
    return random.chance(85) ? Type(b.getF32Type()) : b.getF64Type();
  switch (random.below(12)) {
  case 0:
    return b.getBF16Type();
  case 1:
    return b.getF16Type();
  case 2:
    return b.getF64Type();
  case 3:
  case 4:
    return b.getI32Type();
  case 5:
    return b.getI64Type();
  case 6:
    return b.getI8Type();
  default:
    return b.getF32Type();
  }
}

double ProgramGenerator::exactLimit(Type element) const {
  if (options.floats)
    return 64; // keeps rounding errors far below the tolerance
  if (element.isBF16())
    return 256;
  if (element.isF16())
    return 2048;
  if (element.isF32())
    return 1 << 24;
  return element.isF64() ? 0x1p53 : HUGE_VAL;
}

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

/// Prefers young values, so that programs get deep.
Bounded *
ProgramGenerator::pickValue(llvm::function_ref<bool(const Bounded &)> accept) {
  llvm::SmallVector<Bounded *> found;
  for (Bounded &value : pool)
    if (accept(value))
      found.push_back(&value);
  if (found.empty())
    return nullptr;
  size_t i = std::max(random.below(found.size()), random.below(found.size()));
  return found[i];
}

Value ProgramGenerator::scalar(Type element, double number) {
  if (auto real = dyn_cast<FloatType>(element))
    return arith::ConstantFloatOp::create(
        b, loc, real, APFloat([&] {
          APFloat value(number);
          bool lost;
          value.convert(real.getFloatSemantics(), APFloat::rmNearestTiesToEven,
                        &lost);
          return value;
        }()));
  if (element.isIndex())
    return arith::ConstantIndexOp::create(b, loc, number);
  unsigned width = cast<IntegerType>(element).getWidth();
  return arith::ConstantIntOp::create(
      b, loc, element, wrap(static_cast<int64_t>(number), width));
}

Value ProgramGenerator::empty(llvm::ArrayRef<int64_t> shape, Type element) {
  return tensor::EmptyOp::create(b, loc, shape, element);
}

Bounded ProgramGenerator::filled(llvm::ArrayRef<int64_t> shape, Type element,
                                 double number) {
  auto type = RankedTensorType::get(shape, element);
  Value value = scalar(element, number);
  Value result;
  if (random.chance(10))
    result = tensor::SplatOp::create(b, loc, value, type);
  else
    result = linalg::FillOp::create(b, loc, value, empty(shape, element))
                 .getResult(0);
  return {result, std::fabs(number)};
}

Bounded ProgramGenerator::denseConstant(llvm::ArrayRef<int64_t> shape,
                                        Type element) {
  auto type = RankedTensorType::get(shape, element);
  llvm::SmallVector<Attribute> numbers;
  for (int64_t i = 0; i < numElements(shape); ++i) {
    int64_t number = random.between(-4, 4);
    numbers.push_back(
        isa<FloatType>(element)
            ? Attribute(b.getFloatAttr(element, number))
            : b.getIntegerAttr(
                  element,
                  wrap(number, cast<IntegerType>(element).getWidth())));
  }
  auto attr = DenseElementsAttr::get(type, numbers);
  return {arith::ConstantOp::create(b, loc, type, attr), 4};
}

/// Weighted sum of the indices.
Bounded ProgramGenerator::iota(llvm::ArrayRef<int64_t> shape, Type element) {
  int64_t rank = shape.size();
  int64_t weight = element.isBF16() ? 1 : random.between(1, 3);
  double bound = 0;
  for (int64_t size : shape)
    bound += weight * size;
  auto op = generic(
      {}, {empty(shape, element)}, {b.getMultiDimIdentityMap(rank)},
      llvm::SmallVector<bool>(rank, false), [&](ValueRange) {
        Value sum = scalar(b.getIndexType(), 0);
        for (int64_t d = 0; d < rank; ++d) {
          Value index = linalg::IndexOp::create(b, loc, d);
          Value factor = scalar(b.getIndexType(), weight);
          sum = arith::AddIOp::create(
              b, loc, sum, arith::MulIOp::create(b, loc, index, factor));
        }
        Type narrow = isa<IntegerType>(element) ? element : b.getI32Type();
        Value value = arith::IndexCastOp::create(b, loc, narrow, sum);
        if (isa<FloatType>(element))
          value = arith::SIToFPOp::create(b, loc, element, value);
        return llvm::SmallVector<Value>{value};
      });
  return {op.getResult(0), bound};
}

Bounded ProgramGenerator::fresh(llvm::ArrayRef<int64_t> shape, Type element) {
  unsigned draw = random.below(100);
  Block &block = entry.getBody().front();
  bool mayAdd = !inCallee && block.getNumArguments() < 8;
  if (mayAdd && draw < 65)
    return {block.addArgument(RankedTensorType::get(shape, element), loc), 4};
  if (draw < 75 && numElements(shape) <= 64 && numElements(shape) > 0)
    return denseConstant(shape, element);
  if (draw < 90)
    return filled(shape, element, random.between(-3, 3));
  Bounded result = iota(shape, element);
  return result.bound <= exactLimit(element)
             ? result
             : filled(shape, element, random.between(-3, 3));
}

Bounded ProgramGenerator::tame(Bounded value, double bound) {
  bound = std::floor(bound);
  if (!isa<FloatType>(value.element()) || value.bound <= bound)
    return value;
  if (bound < 1)
    return {};
  auto op = generic(
      {value.value}, {empty(value.shape(), value.element())},
      llvm::SmallVector<AffineMap>(2, b.getMultiDimIdentityMap(value.rank())),
      llvm::SmallVector<bool>(value.rank(), false), [&](ValueRange args) {
        Value high = scalar(value.element(), bound);
        Value low = scalar(value.element(), -bound);
        Value x = arith::MinimumFOp::create(b, loc, args[0], high);
        return llvm::SmallVector<Value>{
            arith::MaximumFOp::create(b, loc, x, low)};
      });
  return {op.getResult(0), bound};
}

//===----------------------------------------------------------------------===//
// Ops
//===----------------------------------------------------------------------===//

/// One or two products whose sum stays partial, and a linear op on them.
bool ProgramGenerator::addPartial() {
  if (!options.partials || inCallee || nesting > 0)
    return false;
  Bounded *found = pickValue([](const Bounded &v) {
    return v.rank() == 2 && !v.element().isInteger(1);
  });
  if (!found)
    return false;
  Type element = found->element();
  int64_t rows = found->shape()[0], terms = found->shape()[1];
  int64_t columns = random.between(1, 5);
  double bound = std::floor(std::sqrt(exactLimit(element) / 4 / terms));
  Bounded x = tame(*found, std::fmin(bound, found->bound));
  if (!x.value || !fits({rows, columns}) || !fits({terms, columns}))
    return false;
  auto product = [&]() -> Value {
    Bounded y = tame(fresh({terms, columns}, element), std::fmin(bound, 4));
    Bounded zero = filled({rows, columns}, element, 0);
    auto op = linalg::MatmulOp::create(b, loc, TypeRange{zero.type()},
                                       ValueRange{x.value, y.value},
                                       ValueRange{zero.value});
    partialSums.push_back(op);
    return op.getResult(0);
  };
  double total = x.bound * std::fmin(bound, 4) * terms;
  Value sum = product();
  auto type = cast<RankedTensorType>(sum.getType());
  if (random.chance(50)) {
    Value other = random.chance(50) ? product() : sum;
    auto op =
        linalg::AddOp::create(b, loc, TypeRange{type}, ValueRange{sum, other},
                              ValueRange{empty(type.getShape(), element)});
    add(op.getResult(0), 2 * total);
    return true;
  }
  llvm::SmallVector<int64_t> order{1, 0};
  auto op = linalg::TransposeOp::create(b, loc, sum,
                                        empty({columns, rows}, element), order);
  add(op->getResult(0), total);
  return true;
}

//===----------------------------------------------------------------------===//
// The program
//===----------------------------------------------------------------------===//

bool ProgramGenerator::addOp() {
  using Add = bool (ProgramGenerator::*)();
  struct Choice {
    unsigned weight;
    Add add;
    bool inFloats = true, inExact = true;
  };
  using P = ProgramGenerator;
  static const Choice choices[] = {
      {14, &P::addElementwise},
      {6, &P::addNamedElementwise},
      {3, &P::addTensorArith},
      {4, &P::addCast, false},
      {4, &P::addCompareSelect, false},
      {4, &P::addMask},
      {2, &P::addDivision, false},
      {7, &P::addProduct},
      {6, &P::addContraction},
      {5, &P::addShared},
      {8, &P::addReduce},
      {2, &P::addMultiReduce},
      {3, &P::addArgMax, false},
      {2, &P::addOrdered, false},
      {2, &P::addWindow},
      {3, &P::addScatterAdd, false},
      {8, &P::addSoftmax, true, false},
      {6, &P::addNorm, true, false},
      {5, &P::addTranspose},
      {4, &P::addBroadcast},
      {5, &P::addExpand},
      {5, &P::addCollapse},
      {6, &P::addExtractSlice},
      {5, &P::addInsertSlice},
      {5, &P::addConcat},
      {5, &P::addPad},
      {4, &P::addEmbedding, false},
      {3, &P::addGather, false},
      {2, &P::addGenerate},
      {3, &P::addCall},
      {4, &P::addLoop},
      {4, &P::addAccumulation},
      {2, &P::addPartial},
  };
  unsigned total = 0;
  auto allowed = [&](const Choice &choice) {
    return options.floats ? choice.inFloats : choice.inExact;
  };
  for (const Choice &choice : choices)
    total += allowed(choice) ? choice.weight : 0;
  unsigned draw = random.below(total);
  for (const Choice &choice : choices) {
    if (!allowed(choice))
      continue;
    if (draw < choice.weight)
      return (this->*choice.add)();
    draw -= choice.weight;
  }
  return false;
}

void ProgramGenerator::addOps(int count) {
  for (int tries = 4 * count; count > 0 && tries > 0; --tries)
    count -= addOp();
}

/// Returns some values, always the last one, and marks weights and state.
void ProgramGenerator::finishEntry() {
  llvm::SmallVector<Value> results{pool.back().value};
  int more = random.below(3);
  for (int i = 0; i < more; ++i)
    results.push_back(random.pick(pool).value);
  func::ReturnOp::create(b, loc, results);
  llvm::SmallVector<Type> resultTypes(ValueRange(results).getTypes());
  Block &block = entry.getBody().front();
  entry.setType(b.getFunctionType(block.getArgumentTypes(), resultTypes));
  bool hasState = random.chance(10);
  for (unsigned i = 0; i < block.getNumArguments(); ++i) {
    auto same = llvm::find(resultTypes, block.getArgument(i).getType());
    if (hasState && same != resultTypes.end()) {
      entry.setArgAttr(i, kStateAttr, b.getStringAttr("s"));
      entry.setResultAttr(same - resultTypes.begin(), kStateAttr,
                          b.getStringAttr("s"));
      hasState = false;
    } else if (random.chance(25)) {
      entry.setArgAttr(i, kWeightAttr, b.getStringAttr("w" + Twine(i)));
    }
  }
}

OwningOpRef<ModuleOp> ProgramGenerator::run() {
  OwningOpRef<ModuleOp> owner(ModuleOp::create(loc));
  module = *owner;
  int numSizes = random.between(2, 4);
  for (int i = 0; i < numSizes; ++i)
    sizes.push_back(random.chance(60) ? random.between(2, 9)
                                      : random.between(1, 17));
  if (random.chance(3))
    sizes.push_back(0);
  int numElementTypes = random.between(1, 2);
  for (int i = 0; i < numElementTypes; ++i)
    elements.push_back(randomElement());
  b.setInsertionPointToEnd(module.getBody());
  entry = func::FuncOp::create(b, loc, kEntry, b.getFunctionType({}, {}));
  Block *block = entry.addEntryBlock();
  b.setInsertionPointToEnd(block);
  int numFirst = random.between(1, 3);
  for (int i = 0; i < numFirst; ++i) {
    auto type = RankedTensorType::get(randomShape(random.between(1, 4)),
                                      random.pick(elements));
    pool.push_back({block->addArgument(type, loc), 4});
  }
  addOps(random.between(options.minOps, options.maxOps));
  finishEntry();
  shardRandomly(module, random, options, partialSums, accumulated);
  return owner;
}

OwningOpRef<ModuleOp> generateProgram(MLIRContext *context, uint64_t seed,
                                      const GeneratorOptions &options) {
  return ProgramGenerator(context, seed, options).run();
}

std::vector<Tensor> randomInputs(func::FuncOp function, uint64_t seed,
                                 bool fractions) {
  Random random(seed ^ 0x5bd1e995);
  std::vector<Tensor> result;
  for (Type type : function.getArgumentTypes()) {
    auto tensor = cast<RankedTensorType>(type);
    Kind kind = *Kind::of(tensor.getElementType());
    Tensor &input = result.emplace_back(kind, tensor.getShape());
    bool wild = random.chance(20);
    for (Scalar &element : input.data) {
      if (kind.isFloat())
        element.f = fractions ? random.between(-128, 128) / 64.0
                              : random.between(-4, 4);
      else if (wild)
        element.i = wrap(random.next(), kind.bits);
      else
        element.i = wrap(random.between(-8, 8), kind.bits);
    }
  }
  return result;
}

} // namespace cleave::oracle
