//===- Bufferize.cpp - From tensors to buffers and loops ------------------===//
// The path that takes every kernel: one-shot bufferization of the function,
// linalg to loops, temporaries on the stack or in the scratch argument.
//===----------------------------------------------------------------------===//
#include "mlir/Dialect/Bufferization/IR/BufferizableOpInterface.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Bufferization/Transforms/OneShotAnalysis.h"
#include "mlir/Dialect/Bufferization/Transforms/Transforms.h"
#include "mlir/Dialect/Linalg/Transforms/Transforms.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Interfaces/DestinationStyleOpInterface.h"
#include "passes/lower/kernels/Internal.h"

using namespace mlir;
using namespace cleave::kernels;

/// The operand whose storage `value` would take over, if there is one.
static OpOperand *tiedInit(Value value) {
  auto result = dyn_cast<OpResult>(value);
  if (!result)
    return nullptr;
  if (auto op = dyn_cast<DestinationStyleOpInterface>(result.getOwner()))
    return op.getDpsInitOperand(result.getResultNumber());
  if (auto loop = dyn_cast<scf::ForOp>(result.getOwner()))
    return &loop.getInitArgsMutable()[result.getResultNumber()];
  return nullptr;
}

/// Lets the value that is returned be computed in its destination where its
/// own storage is an empty tensor.
static void computeInPlace(Value returned, Value destination) {
  OpOperand *use = tiedInit(returned);
  while (use && !use->get().getDefiningOp<tensor::EmptyOp>()) {
    // Someone else reads this step: bufferization would copy anyway.
    if (!use->get().hasOneUse())
      return;
    use = tiedInit(use->get());
  }
  if (use && use->get().getType() == destination.getType())
    use->set(destination);
}

void cleave::kernels::passByBuffer(func::FuncOp kernel) {
  Block &body = kernel.getBody().front();
  auto ret = cast<func::ReturnOp>(body.getTerminator());
  unsigned numOutputs = ret.getNumOperands();
  unsigned firstOutput = kernel.getNumArguments() - numOutputs;
  OpBuilder b = OpBuilder::atBlockBegin(&body);
  Location loc = kernel.getLoc();
  SmallVector<Value> outputs, tensors;
  for (BlockArgument argument : body.getArguments()) {
    auto type = dyn_cast<RankedTensorType>(argument.getType());
    if (!type)
      continue;
    bool isOutput = argument.getArgNumber() >= firstOutput;
    if (type.getNumElements() == 0) {
      // Nothing to read or write; such a buffer has no layout in LLVM.
      argument.replaceAllUsesWith(tensor::EmptyOp::create(
          b, loc, type.getShape(), type.getElementType()));
      argument.setType(MemRefType::get({1}, type.getElementType()));
      if (isOutput) {
        outputs.push_back(Value());
        tensors.push_back(Value());
      }
      continue;
    }
    argument.setType(MemRefType::get(type.getShape(), type.getElementType()));
    auto tensor = bufferization::ToTensorOp::create(
        b, loc, type, argument, /*restrict=*/true, /*writable=*/isOutput);
    argument.replaceAllUsesExcept(tensor.getResult(), tensor);
    if (isOutput) {
      outputs.push_back(argument);
      tensors.push_back(tensor);
    }
  }
  b.setInsertionPoint(ret);
  for (auto [value, buffer, tensor] :
       llvm::zip_equal(ret.getOperands(), outputs, tensors)) {
    if (!buffer)
      continue;
    computeInPlace(value, tensor);
    bufferization::MaterializeInDestinationOp::create(
        b, loc, /*result=*/Type(), value, buffer, /*restrict=*/false,
        /*writable=*/true);
  }
  ret.getOperandsMutable().clear();
  kernel.setType(
      FunctionType::get(kernel.getContext(), body.getArgumentTypes(), {}));
  // Attributes of arguments were read before; LLVM would not know them.
  kernel.setAllArgAttrs(SmallVector<DictionaryAttr>(
      kernel.getNumArguments(), DictionaryAttr::get(kernel.getContext())));
  kernel.removeResAttrsAttr();
}

/// Values that loops carry stay in the buffer they came in: what an iteration
/// yields is copied there unless it was computed there.
static void carryInPlace(scf::ForOp loop) {
  auto yield = cast<scf::YieldOp>(loop.getBody()->getTerminator());
  OpBuilder b(yield);
  for (OpOperand &use : yield->getOpOperands()) {
    if (!isa<RankedTensorType>(use.get().getType()))
      continue;
    Value carried = loop.getRegionIterArgs()[use.getOperandNumber()];
    Value source = use.get();
    while (OpOperand *init = tiedInit(source))
      source = init->get();
    if (source == carried)
      continue;
    Value value = use.get();
    // Two carried values may change places: copy before either is written.
    if (isa<BlockArgument>(source) &&
        cast<BlockArgument>(source).getOwner() == loop.getBody())
      value = bufferization::AllocTensorOp::create(
          b, loop.getLoc(), cast<RankedTensorType>(value.getType()),
          ValueRange(), value);
    use.set(value);
  }
  for (OpOperand &use : yield->getOpOperands()) {
    if (!isa<RankedTensorType>(use.get().getType()))
      continue;
    Value carried = loop.getRegionIterArgs()[use.getOperandNumber()];
    Value source = use.get();
    while (OpOperand *init = tiedInit(source))
      source = init->get();
    if (source != carried)
      use.set(bufferization::MaterializeInDestinationOp::create(
                  b, loop.getLoc(), use.get(), carried)
                  ->getResult(0));
  }
}

LogicalResult cleave::kernels::bufferize(func::FuncOp kernel) {
  kernel.walk([](scf::ForOp loop) { carryInPlace(loop); });
  bufferization::OneShotBufferizationOptions options;
  options.bufferizeFunctionBoundaries = false;
  options.unknownTypeConverterFn =
      [](TensorType type, Attribute space,
         const bufferization::BufferizationOptions &) {
        return bufferization::getMemRefTypeWithStaticIdentityLayout(type,
                                                                    space);
      };
  options.bufferAlignment = kBufferAlignment;
  // One empty tensor with two users would be one buffer with two contents.
  SmallVector<tensor::EmptyOp> empties;
  kernel.walk([&](tensor::EmptyOp op) { empties.push_back(op); });
  for (tensor::EmptyOp op : empties)
    for (OpOperand &use : llvm::make_early_inc_range(op->getUses())) {
      OpBuilder b(use.getOwner());
      use.set(b.clone(*op)->getResult(0));
    }
  bufferization::BufferizationState state;
  return bufferization::runOneShotBufferize(kernel, options, state);
}

void cleave::kernels::expandCopies(func::FuncOp kernel) {
  SmallVector<memref::CopyOp> copies;
  kernel.walk([&](memref::CopyOp copy) { copies.push_back(copy); });
  for (memref::CopyOp copy : copies) {
    OpBuilder b(copy);
    if (copy.getSource() != copy.getTarget())
      linalg::CopyOp::create(b, copy.getLoc(), copy.getSource(),
                             copy.getTarget());
    copy.erase();
  }
}

LogicalResult cleave::kernels::lowerToLoops(func::FuncOp kernel) {
  SmallVector<linalg::LinalgOp> ops;
  kernel.walk([&](linalg::LinalgOp op) { ops.push_back(op); });
  IRRewriter rewriter(kernel.getContext());
  for (linalg::LinalgOp op : ops) {
    rewriter.setInsertionPoint(op);
    if (failed(linalg::linalgOpToLoops(rewriter, op)))
      return op.emitOpError("has no lowering to loops");
    rewriter.eraseOp(op);
  }
  return success();
}

FailureOr<int64_t> cleave::kernels::placeTemporaries(func::FuncOp kernel) {
  SmallVector<memref::AllocOp> allocs;
  kernel.walk([&](memref::AllocOp alloc) { allocs.push_back(alloc); });
  // Buffers never outlive the kernel, nor an iteration of a loop.
  kernel.walk([](memref::DeallocOp dealloc) { dealloc.erase(); });
  DataLayout layout;
  int64_t onStack = 0, inScratch = 0;
  Block &entry = kernel.getBody().front();
  OpBuilder b = OpBuilder::atBlockBegin(&entry);
  SmallVector<std::pair<memref::AllocOp, int64_t>> large;
  for (memref::AllocOp alloc : allocs) {
    if (alloc->use_empty()) {
      alloc.erase();
      continue;
    }
    MemRefType type = alloc.getType();
    if (!type.hasStaticShape())
      return alloc.emitOpError("allocates a buffer of a size only known when "
                               "it runs; kernels have static shapes");
    int64_t bytes =
        type.getNumElements() *
        llvm::divideCeil(layout.getTypeSizeInBits(type.getElementType()), 8);
    bytes = llvm::alignTo(bytes, kBufferAlignment);
    if (onStack + bytes > kStackBytes) {
      large.push_back({alloc, inScratch});
      inScratch += bytes;
      continue;
    }
    onStack += bytes;
    b.setInsertionPointToStart(&entry);
    auto stack = memref::AllocaOp::create(
        b, alloc.getLoc(), type, b.getI64IntegerAttr(kBufferAlignment));
    alloc.replaceAllUsesWith(stack.getResult());
    alloc.erase();
  }
  if (large.empty())
    return 0;
  auto bytesType = MemRefType::get({inScratch}, b.getI8Type());
  if (failed(kernel.insertArgument(kernel.getNumArguments(), bytesType, {},
                                   kernel.getLoc())))
    return failure();
  Value scratch = entry.getArguments().back();
  b.setInsertionPointToStart(&entry);
  for (auto [alloc, offset] : large) {
    Value at = arith::ConstantIndexOp::create(b, alloc.getLoc(), offset);
    auto view = memref::ViewOp::create(b, alloc.getLoc(), alloc.getType(),
                                       scratch, at, ValueRange());
    alloc.replaceAllUsesWith(view.getResult());
    alloc.erase();
  }
  return inScratch;
}
