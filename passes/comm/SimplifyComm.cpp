//===- SimplifyComm.cpp - Fold collectives into fewer and smaller ---------===//
// The algebra of collectives as local patterns. Each makes the program move
// fewer bytes or run fewer collectives, so the greedy driver ends. They hold
// because a group's members differ only in the op's axes: what one member
// does over other axes, all of its group do as well.
//===----------------------------------------------------------------------===//
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Tensor/Transforms/Transforms.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"
#include "passes/comm/CommUtils.h"
#include "passes/comm/Passes.h"
#include "passes/propagate/Rules.h"
#define DEBUG_TYPE "cleave-simplify-comm"

using namespace mlir;

namespace cleave {
#define GEN_PASS_DEF_SIMPLIFYCOMM
#include "passes/comm/Passes.h.inc"
} // namespace cleave

namespace {
using namespace cleave;
using namespace cleave::comm;

struct SimplifyComm : cleave::impl::SimplifyCommBase<SimplifyComm> {
  using Base::Base;
  void runOnOperation() override;
};

//===----------------------------------------------------------------------===//
// Axes
//===----------------------------------------------------------------------===//

/// Merged axes: ["a":(1)2, "a":(2)2] counts as ["a"].
AxisList axesOf(Operation *op, FlatSymbolRefAttr mesh, AxesAttr axes) {
  return mergeAxes(toAxes(meshOf(op, mesh), axes));
}

/// Whether both have the same digits, in any order.
bool sameSet(ArrayRef<AxisRef> a, ArrayRef<AxisRef> b) {
  return normalizeAxisSet(a) == normalizeAxisSet(b);
}

bool disjoint(ArrayRef<AxisRef> a, ArrayRef<AxisRef> b) {
  return llvm::none_of(a, [&](AxisRef ref) { return overlaps(b, ref); });
}

/// Removes the common major axes of both.
void dropCommonPrefix(AxisList &a, AxisList &b) {
  alignAxes(a, b);
  size_t common = 0;
  while (common < a.size() && common < b.size() && a[common] == b[common])
    ++common;
  a.erase(a.begin(), a.begin() + common);
  b.erase(b.begin(), b.begin() + common);
}

template <typename A, typename B> bool sameMesh(A a, B b) {
  return a.getMeshAttr() == b.getMeshAttr();
}

CauseAttr causeOf(CauseAttr first, CauseAttr second) {
  return first ? first : second;
}

//===----------------------------------------------------------------------===//
// Gathers, slices, exchanges
//===----------------------------------------------------------------------===//

/// A collective among one rank is its input.
template <typename Op> struct DropLonely : OpRewritePattern<Op> {
  using OpRewritePattern<Op>::OpRewritePattern;
  LogicalResult matchAndRewrite(Op op, PatternRewriter &rewriter) const final {
    if (op.getInput().getType() != op.getType() ||
        axesSize(axesOf(op, op.getMeshAttr(), op.getAxes())) != 1)
      return failure();
    rewriter.replaceOp(op, op.getInput());
    return success();
  }
};

/// What nobody wrote need not be moved.
template <typename Op> struct DropUndefined : OpRewritePattern<Op> {
  using OpRewritePattern<Op>::OpRewritePattern;
  LogicalResult matchAndRewrite(Op op, PatternRewriter &rewriter) const final {
    if (!op.getInput().template getDefiningOp<tensor::EmptyOp>())
      return failure();
    rewriter.replaceOpWithNewOp<tensor::EmptyOp>(op, op.getType().getShape(),
                                                 op.getType().getElementType());
    return success();
  }
};

/// A realign of nothing, or of what nobody wrote, is what it was put into.
struct DropRealignOfNothing : OpRewritePattern<RealignOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(RealignOp op,
                                PatternRewriter &rewriter) const final {
    if (op.getInput().getType().getNumElements() != 0 &&
        op.getType().getNumElements() != 0 &&
        !op.getInput().getDefiningOp<tensor::EmptyOp>())
      return failure();
    rewriter.replaceOp(op, op.getInit());
    return success();
  }
};

/// gather over "b", then over "a" of the same dim: one over ["a", "b"].
struct MergeGathers : OpRewritePattern<AllGatherOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(AllGatherOp outer,
                                PatternRewriter &rewriter) const final {
    auto inner = outer.getInput().getDefiningOp<AllGatherOp>();
    if (!inner || !inner->hasOneUse() || inner.getDim() != outer.getDim() ||
        !sameMesh(inner, outer))
      return failure();
    AxisList axes = axesOf(outer, outer.getMeshAttr(), outer.getAxes());
    AxisList minor = axesOf(inner, inner.getMeshAttr(), inner.getAxes());
    if (!disjoint(axes, minor))
      return failure();
    axes.append(minor.begin(), minor.end());
    Mesh mesh = meshOf(outer, outer.getMeshAttr());
    rewriter.replaceOpWithNewOp<AllGatherOp>(
        outer, outer.getType(), inner.getInput(), outer.getDimAttr(),
        outer.getMeshAttr(), toAxesAttr(getContext(), mesh, mergeAxes(axes)),
        joinCauses(getContext(), {inner.getCauseAttr(), outer.getCauseAttr()}));
    return success();
  }
};

/// Slice over "a", then over "b" of the same dim: one over ["a", "b"].
struct MergeSlices : OpRewritePattern<SliceOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(SliceOp second,
                                PatternRewriter &rewriter) const final {
    auto first = second.getInput().getDefiningOp<SliceOp>();
    if (!first || first.getDim() != second.getDim() || !sameMesh(first, second))
      return failure();
    AxisList axes = axesOf(first, first.getMeshAttr(), first.getAxes());
    AxisList minor = axesOf(second, second.getMeshAttr(), second.getAxes());
    if (!disjoint(axes, minor))
      return failure();
    axes.append(minor.begin(), minor.end());
    Mesh mesh = meshOf(second, second.getMeshAttr());
    rewriter.replaceOpWithNewOp<SliceOp>(
        second, second.getType(), first.getInput(), second.getDimAttr(),
        second.getMeshAttr(), toAxesAttr(getContext(), mesh, mergeAxes(axes)),
        causeOf(second.getCauseAttr(), first.getCauseAttr()));
    return success();
  }
};

/// A slice of a gather. Of the same dim, equal major axes cancel; of another
/// dim, the same axes make an all_to_all and others slice before the gather.
struct SliceOfGather : OpRewritePattern<SliceOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(SliceOp slice,
                                PatternRewriter &rewriter) const final {
    auto gather = slice.getInput().getDefiningOp<AllGatherOp>();
    if (!gather || !sameMesh(gather, slice))
      return failure();
    AxisList gathered = axesOf(gather, gather.getMeshAttr(), gather.getAxes());
    AxisList cut = axesOf(slice, slice.getMeshAttr(), slice.getAxes());
    if (gather.getDim() == slice.getDim())
      return cancel(slice, gather, gathered, cut, rewriter);
    if (!gather->hasOneUse())
      return failure();
    if (gathered == cut) {
      rewriter.replaceOpWithNewOp<AllToAllOp>(
          slice, slice.getType(), gather.getInput(), slice.getDimAttr(),
          gather.getDimAttr(), slice.getMeshAttr(), slice.getAxesAttr(),
          causeOf(gather.getCauseAttr(), slice.getCauseAttr()));
      return success();
    }
    if (!disjoint(gathered, cut))
      return failure();
    auto type = cast<RankedTensorType>(gather.getInput().getType());
    SmallVector<int64_t> shape(type.getShape());
    shape[slice.getDim()] = slice.getType().getDimSize(slice.getDim());
    Value part = SliceOp::create(rewriter, slice.getLoc(), type.clone(shape),
                                 gather.getInput(), slice.getDimAttr(),
                                 slice.getMeshAttr(), slice.getAxesAttr(),
                                 slice.getCauseAttr());
    rewriter.replaceOpWithNewOp<AllGatherOp>(
        slice, slice.getType(), part, gather.getDimAttr(), gather.getMeshAttr(),
        gather.getAxesAttr(), gather.getCauseAttr());
    return success();
  }

  LogicalResult cancel(SliceOp slice, AllGatherOp gather, AxisList gathered,
                       AxisList cut, PatternRewriter &rewriter) const {
    dropCommonPrefix(gathered, cut);
    Mesh mesh = meshOf(slice, slice.getMeshAttr());
    if (gathered.empty() && cut.empty()) {
      rewriter.replaceOp(slice, gather.getInput());
      return success();
    }
    if (gathered.empty()) {
      rewriter.replaceOpWithNewOp<SliceOp>(
          slice, slice.getType(), gather.getInput(), slice.getDimAttr(),
          slice.getMeshAttr(), toAxesAttr(getContext(), mesh, cut),
          slice.getCauseAttr());
      return success();
    }
    // With other users the whole is gathered anyway.
    if (!cut.empty() || !gather->hasOneUse())
      return failure();
    rewriter.replaceOpWithNewOp<AllGatherOp>(
        slice, slice.getType(), gather.getInput(), gather.getDimAttr(),
        gather.getMeshAttr(), toAxesAttr(getContext(), mesh, gathered),
        gather.getCauseAttr());
    return success();
  }
};

/// Two exchanges that undo each other.
struct CancelExchanges : OpRewritePattern<AllToAllOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(AllToAllOp second,
                                PatternRewriter &rewriter) const final {
    auto first = second.getInput().getDefiningOp<AllToAllOp>();
    if (!first || !sameMesh(first, second) ||
        first.getSplitDim() != second.getConcatDim() ||
        first.getConcatDim() != second.getSplitDim() ||
        axesOf(first, first.getMeshAttr(), first.getAxes()) !=
            axesOf(second, second.getMeshAttr(), second.getAxes()))
      return failure();
    rewriter.replaceOp(second, first.getInput());
    return success();
  }
};

/// Handing on what was handed over: one permutation. Only where all lists have
/// the same digits, so that each member has exactly one source.
struct MergePermutes : OpRewritePattern<PermuteOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(PermuteOp second,
                                PatternRewriter &rewriter) const final {
    AxisList to = axesOf(second, second.getMeshAttr(), second.getAxes());
    AxisList middle = axesOf(second, second.getMeshAttr(), second.getSource());
    if (to == middle) {
      rewriter.replaceOp(second, second.getInput());
      return success();
    }
    auto first = second.getInput().getDefiningOp<PermuteOp>();
    if (!first || !sameMesh(first, second))
      return failure();
    AxisList from = axesOf(first, first.getMeshAttr(), first.getSource());
    if (axesOf(first, first.getMeshAttr(), first.getAxes()) != middle ||
        !sameSet(from, middle) || !sameSet(to, middle))
      return failure();
    rewriter.replaceOpWithNewOp<PermuteOp>(
        second, second.getType(), first.getInput(), first.getSourceAttr(),
        second.getMeshAttr(), second.getAxesAttr(),
        joinCauses(getContext(),
                   {first.getCauseAttr(), second.getCauseAttr()}));
    return success();
  }
};

//===----------------------------------------------------------------------===//
// Reductions
//===----------------------------------------------------------------------===//

/// max, min, and, or of equal values is that value.
struct DropEqualReduction : OpRewritePattern<AllReduceOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(AllReduceOp op,
                                PatternRewriter &rewriter) const final {
    if (!isIdempotent(op.getKind()) || !isEqualOnMembers(op))
      return failure();
    rewriter.replaceOp(op, op.getInput());
    return success();
  }

  /// Constants are, and what was reduced or gathered over the same ranks.
  static bool isEqualOnMembers(AllReduceOp op) {
    Operation *source = op.getInput().getDefiningOp();
    if (!source)
      return false;
    if (matchPattern(source, m_Constant()) || splatOf(op.getInput()))
      return true;
    if (!isa<AllReduceOp, AllGatherOp>(source) ||
        source->getAttr("mesh") != op.getMeshAttr())
      return false;
    return sameSet(
        axesOf(op, op.getMeshAttr(), op.getAxes()),
        axesOf(op, op.getMeshAttr(), source->getAttrOfType<AxesAttr>("axes")));
  }
};

/// reduce_scatter and a gather of the same is one all_reduce.
struct JoinScatterAndGather : OpRewritePattern<AllGatherOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(AllGatherOp gather,
                                PatternRewriter &rewriter) const final {
    auto scatter = gather.getInput().getDefiningOp<ReduceScatterOp>();
    if (!scatter || !scatter->hasOneUse() || !sameMesh(scatter, gather) ||
        scatter.getDim() != gather.getDim() ||
        axesOf(scatter, scatter.getMeshAttr(), scatter.getAxes()) !=
            axesOf(gather, gather.getMeshAttr(), gather.getAxes()))
      return failure();
    rewriter.replaceOpWithNewOp<AllReduceOp>(
        gather, gather.getType(), scatter.getKindAttr(), scatter.getInput(),
        gather.getMeshAttr(), gather.getAxesAttr(),
        joinCauses(getContext(),
                   {scatter.getCauseAttr(), gather.getCauseAttr()}));
    return success();
  }
};

/// Whether `op` only places the elements of its operand, the same way on all
/// ranks, and reducing afterwards gives the same as reducing before.
bool onlyPlaces(Operation *op, Reduction kind) {
  if (isa<tensor::ExpandShapeOp, tensor::CollapseShapeOp>(op))
    return true;
  if (auto slice = dyn_cast<tensor::ExtractSliceOp>(op))
    return slice.getOffsets().empty() && slice.getSizes().empty() &&
           slice.getStrides().empty();
  auto pad = dyn_cast<tensor::PadOp>(op);
  if (!pad || !pad.getLow().empty() || !pad.getHigh().empty())
    return false;
  // The padding is combined n times: that must not change it.
  Value padding = pad.getConstantPaddingValue();
  TypedAttr constant;
  if (!padding || !matchPattern(padding, m_Constant(&constant)))
    return false;
  Builder builder(op->getContext());
  return isIdempotent(kind) ||
         constant == neutralElement(toKind(kind), padding.getType(), builder);
}

/// A slice of a reduction, with pads, trims and reshapes between: a reduction
/// of which each member gets its part, or of the part if other axes cut it.
struct SliceOfReduction : OpRewritePattern<SliceOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(SliceOp slice,
                                PatternRewriter &rewriter) const final {
    SmallVector<Operation *> between;
    AllReduceOp reduce = findReduction(slice, between);
    if (!reduce || !sameMesh(reduce, slice) ||
        llvm::any_of(between, [&](Operation *op) {
          return !onlyPlaces(op, reduce.getKind());
        }))
      return failure();
    AxisList reduced = axesOf(reduce, reduce.getMeshAttr(), reduce.getAxes());
    AxisList cut = axesOf(slice, slice.getMeshAttr(), slice.getAxes());
    bool scatter = sameSet(reduced, cut);
    if ((!scatter && !disjoint(reduced, cut)) || !pays(slice, reduce, scatter))
      return failure();
    Value value = reduce.getInput();
    for (Operation *op : llvm::reverse(between)) {
      IRMapping mapping;
      mapping.map(op->getOperand(0), value);
      value = rewriter.clone(*op, mapping)->getResult(0);
    }
    Value result = build(slice, reduce, value, scatter, rewriter);
    for (Operation *user :
         llvm::make_early_inc_range(slice.getInput().getUsers()))
      rewriter.replaceOp(user, result);
    return success();
  }

  /// The reduction at the other end of ops with one user; the users of the
  /// sliced value are all this slice (maybe several times).
  static AllReduceOp findReduction(SliceOp slice,
                                   SmallVectorImpl<Operation *> &between) {
    Value value = slice.getInput();
    for (Operation *user : value.getUsers()) {
      auto other = dyn_cast<SliceOp>(user);
      if (!other || other->getBlock() != slice->getBlock() ||
          other.getDim() != slice.getDim() ||
          other.getAxes() != slice.getAxes() || !sameMesh(other, slice) ||
          other->isBeforeInBlock(slice))
        return nullptr;
    }
    while (Operation *op = value.getDefiningOp()) {
      if (op->getBlock() != slice->getBlock())
        return nullptr;
      if (auto reduce = dyn_cast<AllReduceOp>(op))
        return reduce;
      if (!isa<tensor::ExpandShapeOp, tensor::CollapseShapeOp,
               tensor::ExtractSliceOp, tensor::PadOp>(op) ||
          !op->getOperand(0).hasOneUse())
        return nullptr;
      between.push_back(op);
      value = op->getOperand(0);
    }
    return nullptr;
  }

  /// A scatter sends half of what a reduction does; otherwise bytes must
  /// shrink, which a pad between may undo.
  static bool pays(SliceOp slice, AllReduceOp reduce, bool scatter) {
    if (scatter)
      return blockBytes(slice.getInput()) <= 2 * blockBytes(reduce);
    return blockBytes(slice) < blockBytes(reduce);
  }

  static Value build(SliceOp slice, AllReduceOp reduce, Value value,
                     bool scatter, PatternRewriter &rewriter) {
    CauseAttr cause = causeOf(reduce.getCauseAttr(), slice.getCauseAttr());
    if (scatter)
      return ReduceScatterOp::create(rewriter, reduce.getLoc(), slice.getType(),
                                     reduce.getKindAttr(), value,
                                     slice.getDimAttr(), slice.getMeshAttr(),
                                     slice.getAxesAttr(), cause);
    Value part = SliceOp::create(rewriter, slice.getLoc(), slice.getType(),
                                 value, slice.getDimAttr(), slice.getMeshAttr(),
                                 slice.getAxesAttr(), slice.getCauseAttr());
    return AllReduceOp::create(rewriter, reduce.getLoc(), slice.getType(),
                               reduce.getKindAttr(), part, reduce.getMeshAttr(),
                               reduce.getAxesAttr(), cause);
  }
};

/// A fixed part of a reduction: a reduction of the part.
struct TrimBeforeReduction : OpRewritePattern<tensor::ExtractSliceOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(tensor::ExtractSliceOp trim,
                                PatternRewriter &rewriter) const final {
    auto reduce = trim.getSource().getDefiningOp<AllReduceOp>();
    if (!reduce || !reduce->hasOneUse() ||
        reduce->getBlock() != trim->getBlock() ||
        !onlyPlaces(trim, reduce.getKind()) ||
        blockBytes(trim) >= blockBytes(reduce))
      return failure();
    IRMapping mapping;
    mapping.map(trim.getSource(), reduce.getInput());
    Value part = rewriter.clone(*trim, mapping)->getResult(0);
    rewriter.replaceOpWithNewOp<AllReduceOp>(
        trim, trim.getType(), reduce.getKindAttr(), part, reduce.getMeshAttr(),
        reduce.getAxesAttr(), reduce.getCauseAttr());
    return success();
  }
};

} // namespace

void SimplifyComm::runOnOperation() {
  RewritePatternSet patterns(&getContext());
  patterns.add<CancelExchanges, DropEqualReduction, DropLonely<AllGatherOp>,
               DropLonely<AllReduceOp>, DropLonely<AllToAllOp>,
               DropLonely<ReduceScatterOp>, DropLonely<SliceOp>,
               DropRealignOfNothing, DropUndefined<AllGatherOp>,
               DropUndefined<AllReduceOp>, DropUndefined<AllToAllOp>,
               DropUndefined<PermuteOp>, DropUndefined<ReduceScatterOp>,
               DropUndefined<SliceOp>, JoinScatterAndGather, MergeGathers,
               MergePermutes, MergeSlices, SliceOfGather, SliceOfReduction,
               TrimBeforeReduction>(&getContext());
  // What nobody wrote is not sliced or reshaped either.
  tensor::populateFoldTensorEmptyPatterns(patterns);
  GreedyRewriteConfig config;
  // Only what this pass is about: constants stay where they are.
  config.enableFolding(false).enableConstantCSE(false);
  config.setRegionSimplificationLevel(GreedySimplifyRegionLevel::Disabled);
  bool changed = false;
  if (failed(applyPatternsGreedily(getOperation(), std::move(patterns), config,
                                   &changed)))
    return signalPassFailure();
  if (!changed)
    markAllAnalysesPreserved();
}
