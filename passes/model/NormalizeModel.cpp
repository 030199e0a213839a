//===- NormalizeModel.cpp - Write computation as ops with rules -----------===//
// Propagation and partitioning know structured ops; what says the same in
// another way is rewritten here, so that they need no case for it.
//===----------------------------------------------------------------------===//
#include "dialects/cleave/Cleave.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Linalg/Transforms/Transforms.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "passes/Passes.h"
#define DEBUG_TYPE "cleave-normalize-model"

using namespace mlir;

namespace cleave {
#define GEN_PASS_DEF_NORMALIZEMODEL
#include "passes/Passes.h.inc"
} // namespace cleave

namespace {
using namespace cleave;

struct NormalizeModel : cleave::impl::NormalizeModelBase<NormalizeModel> {
  using Base::Base;
  void runOnOperation() override;
};

/// Replaces `op` and hands its annotation to the ops that make the results.
void replaceKeepingSharding(RewriterBase &rewriter, Operation *op,
                            ValueRange values) {
  SmallVector<ShardingAttr> shardings = resultShardings(op);
  for (auto [value, sharding] : llvm::zip_equal(values, shardings))
    if (Operation *def = value.getDefiningOp();
        def && sharding && def->getNumResults() == 1)
      def->setDiscardableAttr(kShardingAttr, sharding);
  rewriter.replaceOp(op, values);
}

SmallVector<utils::IteratorType> parallel(int64_t rank) {
  return SmallVector<utils::IteratorType>(rank, utils::IteratorType::parallel);
}

Value emptyOf(RewriterBase &rewriter, Location loc, RankedTensorType type) {
  return tensor::EmptyOp::create(rewriter, loc, type.getShape(),
                                 type.getElementType());
}

/// arith and math on tensors.
void rewriteElementwise(RewriterBase &rewriter, Operation *op) {
  Location loc = op->getLoc();
  rewriter.setInsertionPoint(op);
  auto shaped = cast<RankedTensorType>(op->getResult(0).getType());
  SmallVector<Value> inputs, outputs;
  SmallVector<AffineMap> maps;
  AffineMap identity = rewriter.getMultiDimIdentityMap(shaped.getRank());
  for (Value operand : op->getOperands())
    if (isa<RankedTensorType>(operand.getType())) {
      inputs.push_back(operand);
      maps.push_back(identity);
    }
  for (Type type : op->getResultTypes()) {
    outputs.push_back(emptyOf(rewriter, loc, cast<RankedTensorType>(type)));
    maps.push_back(identity);
  }
  auto generic = linalg::GenericOp::create(
      rewriter, loc, op->getResultTypes(), inputs, outputs, maps,
      parallel(shaped.getRank()),
      [&](OpBuilder &b, Location bodyLoc, ValueRange args) {
        SmallVector<Value> operands;
        unsigned next = 0;
        for (Value operand : op->getOperands())
          operands.push_back(isa<RankedTensorType>(operand.getType())
                                 ? args[next++]
                                 : operand);
        SmallVector<Type> types =
            llvm::map_to_vector(op->getResultTypes(), [](Type type) {
              return getElementTypeOrSelf(type);
            });
        OperationState state(bodyLoc, op->getName(), operands, types);
        for (NamedAttribute attr : op->getAttrs())
          if (attr.getName() != kShardingAttr)
            state.addAttribute(attr.getName(), attr.getValue());
        Operation *scalar = b.create(state);
        linalg::YieldOp::create(b, bodyLoc, scalar->getResults());
      });
  replaceKeepingSharding(rewriter, op, generic.getResults());
}

/// result[b..., s...] = source[indices[b..., k] at gathered dims, s...].
void rewriteGather(RewriterBase &rewriter, tensor::GatherOp op) {
  Location loc = op.getLoc();
  rewriter.setInsertionPoint(op);
  RankedTensorType result = op.getResultType();
  RankedTensorType source = op.getSourceType();
  int64_t batch = op.getIndicesType().getRank() - 1;
  bool reduced = result.getRank() != batch + source.getRank();
  ArrayRef<int64_t> gathered = op.getGatherDims();
  auto generic = linalg::GenericOp::create(
      rewriter, loc, result, ValueRange(), emptyOf(rewriter, loc, result),
      rewriter.getMultiDimIdentityMap(result.getRank()),
      parallel(result.getRank()),
      [&](OpBuilder &b, Location bodyLoc, ValueRange) {
        auto index = [&](int64_t dim) -> Value {
          return linalg::IndexOp::create(b, bodyLoc, dim);
        };
        SmallVector<Value> at;
        int64_t next = batch;
        for (int64_t dim = 0; dim < source.getRank(); ++dim) {
          auto it = llvm::find(gathered, dim);
          if (it == gathered.end()) {
            at.push_back(index(next++));
            continue;
          }
          if (!reduced)
            ++next;
          SmallVector<Value> where;
          for (int64_t i = 0; i < batch; ++i)
            where.push_back(index(i));
          where.push_back(arith::ConstantIndexOp::create(
              b, bodyLoc, it - gathered.begin()));
          Value found =
              tensor::ExtractOp::create(b, bodyLoc, op.getIndices(), where);
          if (!found.getType().isIndex())
            found =
                arith::IndexCastOp::create(b, bodyLoc, b.getIndexType(), found);
          at.push_back(found);
        }
        Value element =
            tensor::ExtractOp::create(b, bodyLoc, op.getSource(), at);
        linalg::YieldOp::create(b, bodyLoc, element);
      });
  replaceKeepingSharding(rewriter, op, generic.getResults());
}

void rewriteGenerate(RewriterBase &rewriter, tensor::GenerateOp op) {
  Location loc = op.getLoc();
  rewriter.setInsertionPoint(op);
  auto type = cast<RankedTensorType>(op.getType());
  auto generic = linalg::GenericOp::create(
      rewriter, loc, type, ValueRange(), emptyOf(rewriter, loc, type),
      rewriter.getMultiDimIdentityMap(type.getRank()), parallel(type.getRank()),
      [&](OpBuilder &b, Location bodyLoc, ValueRange) {
        IRMapping mapping;
        Block &body = op.getBody().front();
        for (BlockArgument arg : body.getArguments())
          mapping.map(arg,
                      linalg::IndexOp::create(b, bodyLoc, arg.getArgNumber())
                          .getResult());
        for (Operation &inner : body.without_terminator())
          b.clone(inner, mapping);
        linalg::YieldOp::create(
            b, bodyLoc,
            mapping.lookupOrDefault(body.getTerminator()->getOperand(0)));
      });
  replaceKeepingSharding(rewriter, op, generic.getResults());
}

void rewriteDim(RewriterBase &rewriter, tensor::DimOp op) {
  auto type = dyn_cast<RankedTensorType>(op.getSource().getType());
  std::optional<int64_t> index = op.getConstantIndex();
  if (!type || !index || *index < 0 || *index >= type.getRank())
    return;
  rewriter.setInsertionPoint(op);
  rewriter.replaceOpWithNewOp<arith::ConstantIndexOp>(op,
                                                      type.getDimSize(*index));
}

bool isElementwiseOnTensors(Operation *op) {
  return OpTrait::hasElementwiseMappableTraits(op) && op->getNumResults() > 0 &&
         llvm::all_of(op->getResultTypes(), llvm::IsaPred<RankedTensorType>);
}

} // namespace

void NormalizeModel::runOnOperation() {
  // Nothing calls a function without a body: CheckModel has seen to it.
  bool changed = false;
  for (auto function :
       llvm::make_early_inc_range(getOperation().getOps<func::FuncOp>()))
    if (function.isExternal()) {
      function.erase();
      changed = true;
    }
  IRRewriter rewriter(&getContext());
  SmallVector<Operation *> worklist;
  getOperation().walk([&](Operation *op) {
    if (isElementwiseOnTensors(op) ||
        isa<linalg::SoftmaxOp, tensor::GatherOp, tensor::GenerateOp,
            tensor::DimOp>(op))
      worklist.push_back(op);
  });
  for (Operation *op : worklist) {
    rewriter.setInsertionPoint(op);
    if (isElementwiseOnTensors(op))
      rewriteElementwise(rewriter, op);
    else if (auto gather = dyn_cast<tensor::GatherOp>(op))
      rewriteGather(rewriter, gather);
    else if (auto generate = dyn_cast<tensor::GenerateOp>(op))
      rewriteGenerate(rewriter, generate);
    else if (auto dim = dyn_cast<tensor::DimOp>(op))
      rewriteDim(rewriter, dim);
    else if (auto softmax = dyn_cast<linalg::SoftmaxOp>(op)) {
      FailureOr<SmallVector<Value>> parts =
          softmax.decomposeOperation(rewriter);
      if (failed(parts)) {
        op->emitOpError() << "cannot be decomposed into linalg ops";
        return signalPassFailure();
      }
      replaceKeepingSharding(rewriter, op, *parts);
    }
  }
  if (!changed && worklist.empty())
    markAllAnalysesPreserved();
}
