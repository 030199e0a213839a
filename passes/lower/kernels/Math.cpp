//===- Math.cpp - Math without calls --------------------------------------===//
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Transforms/Passes.h"
#include "mlir/Dialect/Math/Transforms/Passes.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"
#include "passes/lower/kernels/Internal.h"

using namespace mlir;
using namespace cleave::kernels;

/// `type` with bf16 replaced by i16.
static Type asBits(Type type) {
  if (type.isBF16())
    return IntegerType::get(type.getContext(), 16);
  if (auto vector = dyn_cast<VectorType>(type))
    return vector.clone(asBits(vector.getElementType()));
  if (auto memref = dyn_cast<MemRefType>(type))
    return MemRefType::Builder(memref).setElementType(
        asBits(memref.getElementType()));
  return type;
}

static Attribute asBits(Attribute attr) {
  if (auto type = dyn_cast<TypeAttr>(attr))
    return TypeAttr::get(asBits(type.getValue()));
  auto number = dyn_cast<FloatAttr>(attr);
  if (number && number.getType().isBF16())
    return IntegerAttr::get(asBits(number.getType()),
                            number.getValue().bitcastToAPInt());
  auto dense = dyn_cast<DenseElementsAttr>(attr);
  if (dense && dense.getElementType().isBF16())
    return dense.bitcast(asBits(dense.getElementType()));
  return attr;
}

/// LLVM rounds a bf16 that passes through a register by a call. Once no
/// arithmetic is left on them they are bits, so let them be 16-bit integers.
static void passBf16AsBits(ModuleOp module) {
  SmallVector<Operation *> casts;
  module.walk([&](Operation *op) {
    for (OpResult result : op->getResults())
      result.setType(asBits(result.getType()));
    for (Region &region : op->getRegions())
      for (Block &block : region)
        for (BlockArgument argument : block.getArguments())
          argument.setType(asBits(argument.getType()));
    for (NamedAttribute named : op->getAttrs())
      if (Attribute bits = asBits(named.getValue()); bits != named.getValue())
        op->setAttr(named.getName(), bits);
    if (auto f = dyn_cast<func::FuncOp>(op)) {
      SmallVector<Type> inputs;
      for (Type type : f.getArgumentTypes())
        inputs.push_back(asBits(type));
      f.setType(FunctionType::get(op->getContext(), inputs, {}));
    }
    if (isa<arith::BitcastOp>(op))
      casts.push_back(op);
  });
  for (Operation *cast : casts)
    if (cast->getOperand(0).getType() == cast->getResult(0).getType()) {
      cast->getResult(0).replaceAllUsesWith(cast->getOperand(0));
      cast->erase();
    }
}

LogicalResult cleave::kernels::expandMath(func::FuncOp kernel,
                                          const CpuIsa &isa) {
  MLIRContext *context = kernel.getContext();
  {
    RewritePatternSet patterns(context);
    populateMathF32ExpansionPatterns(patterns, [](StringRef) { return true; });
    math::populateExpansionPatterns(patterns,
                                    {"sinh", "cosh", "tan", "asinh", "acosh",
                                     "atanh", "exp2", "powf", "fpowi"});
    populateMathPolynomialApproximationPatterns(patterns,
                                                [](StringRef) { return true; });
    if (failed(applyPatternsGreedily(kernel, std::move(patterns))))
      return failure();
  }
  PassManager pm(context);
  arith::ArithEmulateUnsupportedFloatsOptions emulate;
  emulate.sourceTypeStrs = {"bf16", "f16"};
  pm.addPass(arith::createArithEmulateUnsupportedFloats(emulate));
  arith::ArithExpandOpsPassOptions expand;
  expand.includeBf16 = true;
  pm.addPass(arith::createArithExpandOpsPass(expand));
  ModuleOp module = kernel->getParentOfType<ModuleOp>();
  if (failed(pm.run(module)))
    return failure();
  passBf16AsBits(module);
  return success();
}
