//===- Lower.cpp - One kernel from tensors to the LLVM dialect ------------===//
#include "mlir/Conversion/ControlFlowToLLVM/ControlFlowToLLVM.h"
#include "mlir/Conversion/LLVMCommon/ConversionTarget.h"
#include "mlir/Conversion/LLVMCommon/TypeConverter.h"
#include "mlir/Conversion/Passes.h"
#include "mlir/Dialect/AMX/AMXDialect.h"
#include "mlir/Dialect/AMX/Transforms.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/Transforms/BufferizableOpInterfaceImpl.h"
#include "mlir/Dialect/Arith/Transforms/Passes.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlow.h"
#include "mlir/Dialect/Index/IR/IndexDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Linalg/Transforms/BufferizableOpInterfaceImpl.h"
#include "mlir/Dialect/Linalg/Transforms/Transforms.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/MemRef/Transforms/Passes.h"
#include "mlir/Dialect/SCF/Transforms/BufferizableOpInterfaceImpl.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Tensor/Transforms/BufferizableOpInterfaceImpl.h"
#include "mlir/Dialect/UB/IR/UBOps.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Dialect/Vector/Transforms/BufferizableOpInterfaceImpl.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"
#include "mlir/Transforms/Passes.h"
#include "passes/lower/kernels/Internal.h"
#include "passes/lower/kernels/Product.h"

using namespace mlir;
using namespace cleave::kernels;

void cleave::kernels::registerKernelDialects(DialectRegistry &registry) {
  registry.insert<amx::AMXDialect, affine::AffineDialect, arith::ArithDialect,
                  bufferization::BufferizationDialect, cf::ControlFlowDialect,
                  func::FuncDialect, index::IndexDialect, LLVM::LLVMDialect,
                  linalg::LinalgDialect, math::MathDialect,
                  memref::MemRefDialect, scf::SCFDialect, tensor::TensorDialect,
                  ub::UBDialect, vector::VectorDialect>();
  arith::registerBufferizableOpInterfaceExternalModels(registry);
  linalg::registerBufferizableOpInterfaceExternalModels(registry);
  scf::registerBufferizableOpInterfaceExternalModels(registry);
  tensor::registerBufferizableOpInterfaceExternalModels(registry);
  vector::registerBufferizableOpInterfaceExternalModels(registry);
  registerBuiltinDialectTranslation(registry);
  registerLLVMDialectTranslation(registry);
}

/// What every kernel must satisfy, said where a caller broke it.
static LogicalResult checkContract(func::FuncOp kernel) {
  if (!kernel.getBody().hasOneBlock())
    return kernel.emitOpError("is a kernel with ")
           << llvm::range_size(kernel.getBody().getBlocks())
           << " blocks; kernels have one";
  unsigned numResults = kernel.getNumResults();
  unsigned numArguments = kernel.getNumArguments();
  if (numResults > numArguments)
    return kernel.emitOpError("has ")
           << numResults << " results but only " << numArguments
           << " arguments; each result needs a destination";
  auto isStatic = [](Type type) {
    auto tensor = dyn_cast<RankedTensorType>(type);
    return tensor && tensor.hasStaticShape();
  };
  for (Type type : kernel.getArgumentTypes())
    if (!isStatic(type) && !type.isIntOrIndexOrFloat())
      return kernel.emitOpError("has an argument of type ")
             << type << "; kernels take static tensors and scalars";
  for (unsigned i = 0; i < numResults; ++i)
    if (kernel.getResultTypes()[i] !=
        kernel.getArgumentTypes()[numArguments - numResults + i])
      return kernel.emitOpError("returns ")
             << kernel.getResultTypes()[i] << " as result " << i
             << " but its destination is "
             << kernel.getArgumentTypes()[numArguments - numResults + i];
  return success();
}

/// Named ops as generic ones, so that there is one form to fuse.
static LogicalResult generalise(func::FuncOp kernel) {
  SmallVector<linalg::LinalgOp> ops;
  kernel.walk([&](linalg::LinalgOp op) {
    if (!isa<linalg::GenericOp, linalg::FillOp>(op.getOperation()))
      ops.push_back(op);
  });
  IRRewriter rewriter(kernel.getContext());
  for (linalg::LinalgOp op : ops) {
    rewriter.setInsertionPoint(op);
    if (failed(linalg::generalizeNamedOp(rewriter, op)))
      return op.emitOpError("has no generic form");
  }
  return success();
}

/// Whether computing the producer of `use` inside its consumer costs nothing
/// that counts: each element is used once, or it is cheap to make again.
static bool worthFusing(OpOperand *use) {
  auto producer = use->get().getDefiningOp<linalg::GenericOp>();
  auto consumer = dyn_cast<linalg::GenericOp>(use->getOwner());
  if (!producer || !consumer || !producer->hasOneUse())
    return false;
  AffineMap map = consumer.getMatchingIndexingMap(use);
  if (map.isPermutation())
    return true;
  unsigned work = 0;
  for (Operation &op : producer.getBody()->without_terminator())
    work += op.getDialect()->getNamespace() == "math" ? 8 : 1;
  return work <= (consumer.getNumReductionLoops() ? 1 : 2);
}

/// Joins chains of element-wise ops, so that no temporary lies between them.
static LogicalResult fuseElementwise(func::FuncOp kernel) {
  RewritePatternSet patterns(kernel.getContext());
  linalg::populateElementwiseOpsFusionPatterns(patterns, worthFusing);
  linalg::populateEraseUnusedOperandsAndResultsPatterns(patterns);
  return applyPatternsGreedily(kernel, std::move(patterns));
}

/// One form for all ways to write a kernel down.
static LogicalResult normalise(func::FuncOp kernel) {
  return success(succeeded(lowerPacks(kernel)) &&
                 succeeded(generalise(kernel)) &&
                 succeeded(fuseElementwise(kernel)));
}

static LogicalResult simplify(ModuleOp module) {
  PassManager pm(module.getContext());
  pm.addPass(createCanonicalizerPass());
  pm.addPass(createCSEPass());
  return pm.run(module);
}

/// From tensors to loops and vectors over buffers.
static FailureOr<KernelInfo> lowerToBuffers(func::FuncOp kernel,
                                            const CpuIsa &isa) {
  ModuleOp module = kernel->getParentOfType<ModuleOp>();
  if (failed(normalise(kernel)))
    return failure();
  passByBuffer(kernel);
  viewPackedArguments(kernel);
  if (failed(simplify(module)) || failed(bufferize(kernel)) ||
      failed(simplify(module)))
    return failure();
  expandCopies(kernel);
  materialisePackedViews(kernel, isa);
  if (failed(emitProducts(kernel, isa)) || failed(emitRowNests(kernel, isa)) ||
      failed(lowerToLoops(kernel)))
    return failure();
  FailureOr<int64_t> scratch = placeTemporaries(kernel);
  if (failed(scratch))
    return failure();
  return KernelInfo{*scratch};
}

/// Branches, also those that carry tile registers.
static LogicalResult lowerBranches(ModuleOp module) {
  MLIRContext *context = module.getContext();
  LLVMTypeConverter converter(context);
  RewritePatternSet patterns(context);
  cf::populateControlFlowToLLVMConversionPatterns(converter, patterns);
  populateAMXLegalizeForLLVMExportPatterns(converter, patterns);
  LLVMConversionTarget target(*context);
  target.addIllegalDialect<cf::ControlFlowDialect>();
  target.markUnknownOpDynamicallyLegal([](Operation *) { return true; });
  return applyPartialConversion(module, target, std::move(patterns));
}

LogicalResult cleave::kernels::lowerToLLVM(ModuleOp module) {
  PassManager first(module.getContext());
  first.addPass(createCanonicalizerPass());
  first.addPass(createCSEPass());
  first.addPass(createLoopInvariantCodeMotionPass());
  first.addPass(memref::createExpandStridedMetadataPass());
  first.addPass(createLowerAffinePass());
  first.addPass(arith::createArithExpandOpsPass());
  first.addPass(createSCFToControlFlowPass());
  ConvertVectorToLLVMPassOptions vectorOptions;
  vectorOptions.amx = true;
  first.addPass(createConvertVectorToLLVMPass(vectorOptions));
  first.addPass(createConvertMathToLLVMPass());
  first.addPass(createConvertIndexToLLVMPass());
  first.addPass(createArithToLLVMConversionPass());
  if (failed(first.run(module)) || failed(lowerBranches(module)))
    return failure();
  PassManager second(module.getContext());
  second.addPass(createFinalizeMemRefToLLVMConversionPass());
  ConvertFuncToLLVMPassOptions funcOptions;
  funcOptions.useBarePtrCallConv = true;
  second.addPass(createConvertFuncToLLVMPass(funcOptions));
  second.addPass(createUBToLLVMConversionPass());
  second.addPass(createReconcileUnrealizedCastsPass());
  second.addPass(createCanonicalizerPass());
  second.addPass(createCSEPass());
  return second.run(module);
}

/// A module that holds a copy of `kernel` alone.
static OwningOpRef<ModuleOp> isolate(func::FuncOp kernel) {
  OwningOpRef<ModuleOp> module = ModuleOp::create(kernel.getLoc());
  module->getBody()->push_back(kernel->clone());
  return module;
}

static func::FuncOp theKernel(ModuleOp module) {
  return *module.getOps<func::FuncOp>().begin();
}

/// What is read is aligned to its elements, the rest to kBufferAlignment.
static SmallVector<int64_t> alignmentsOf(func::FuncOp kernel) {
  SmallVector<int64_t> alignments;
  unsigned numInputs = kernel.getNumArguments() - kernel.getNumResults();
  for (Type type : kernel.getArgumentTypes().take_front(numInputs)) {
    Type element = getElementTypeOrSelf(type);
    alignments.push_back(
        element.isIndex()
            ? 8
            : llvm::divideCeil(element.getIntOrFloatBitWidth(), 8));
  }
  return alignments;
}

static void annotateArguments(ModuleOp module, ArrayRef<int64_t> inputs) {
  Builder b(module.getContext());
  for (auto f : module.getOps<LLVM::LLVMFuncOp>())
    for (unsigned i = 0, e = f.isExternal() ? 0 : f.getNumArguments(); i < e;
         ++i)
      if (isa<LLVM::LLVMPointerType>(f.getArgument(i).getType()))
        f.setArgAttr(i, LLVM::LLVMDialect::getAlignAttrName(),
                     b.getI64IntegerAttr(i < inputs.size() ? inputs[i]
                                                           : kBufferAlignment));
}

static FailureOr<KernelInfo> lowerIsolated(ModuleOp module, const CpuIsa &isa) {
  func::FuncOp kernel = theKernel(module);
  if (failed(checkContract(kernel)))
    return failure();
  SmallVector<int64_t> inputs = alignmentsOf(kernel);
  FailureOr<KernelInfo> info = lowerToBuffers(kernel, isa);
  if (failed(info) || failed(expandMath(kernel)) || failed(lowerToLLVM(module)))
    return failure();
  annotateArguments(module, inputs);
  return info;
}

FailureOr<KernelInfo> cleave::kernels::lowerKernel(func::FuncOp kernel,
                                                   const CpuIsa &isa) {
  OwningOpRef<ModuleOp> alone = isolate(kernel);
  FailureOr<KernelInfo> info = lowerIsolated(*alone, isa);
  if (failed(info))
    return failure();
  // Constants become globals; two kernels may name theirs alike.
  SymbolTable table(*alone);
  std::string prefix = kernel.getSymName().str() + ".";
  for (auto global : alone->getOps<LLVM::GlobalOp>()) {
    StringAttr name = StringAttr::get(global.getContext(),
                                      prefix + global.getSymName().str());
    if (failed(SymbolTable::replaceAllSymbolUses(global, name, *alone)))
      return failure();
    global.setSymNameAttr(name);
  }
  Block::iterator at(kernel);
  Block *target = kernel->getBlock();
  for (Operation &op : llvm::make_early_inc_range(*alone->getBody())) {
    // Declarations of the C library are shared.
    auto f = dyn_cast<LLVM::LLVMFuncOp>(op);
    if (f && f.isExternal() &&
        SymbolTable::lookupSymbolIn(kernel->getParentOp(), f.getSymName()))
      continue;
    op.moveBefore(target, at);
  }
  kernel.erase();
  return info;
}

FailureOr<CompiledKernel> cleave::kernels::compileKernel(func::FuncOp kernel,
                                                         StringRef symbol,
                                                         const CpuIsa &isa) {
  OwningOpRef<ModuleOp> alone = isolate(kernel);
  func::FuncOp copy = theKernel(*alone);
  copy.setSymName(symbol);
  copy.setPublic();
  CompiledKernel result;
  FailureOr<KernelInfo> info = lowerIsolated(*alone, isa);
  if (failed(info) || failed(compileModule(*alone, isa, result.object)))
    return failure();
  result.info = *info;
  return result;
}

FailureOr<int64_t> cleave::kernels::planScratch(func::FuncOp kernel,
                                                const CpuIsa &isa) {
  OwningOpRef<ModuleOp> alone = isolate(kernel);
  if (failed(checkContract(kernel)))
    return failure();
  FailureOr<KernelInfo> info = lowerToBuffers(theKernel(*alone), isa);
  if (failed(info))
    return failure();
  return info->scratchBytes;
}

bool cleave::kernels::mayReuseInput(func::FuncOp kernel, unsigned input,
                                    unsigned output, const CpuIsa &) {
  OwningOpRef<ModuleOp> alone = isolate(kernel);
  func::FuncOp copy = theKernel(*alone);
  if (failed(normalise(copy)))
    return false;
  // One element-wise op reads and writes the same element of both.
  linalg::GenericOp only;
  for (Operation &op : copy.getBody().front().without_terminator()) {
    auto generic = dyn_cast<linalg::GenericOp>(op);
    if (!generic ? !isa<arith::ConstantOp, tensor::EmptyOp>(op) : bool(only))
      return false;
    if (generic)
      only = generic;
  }
  auto returned = copy.getBody().front().getTerminator()->getOperand(output);
  if (!only || returned.getDefiningOp() != only || only.getNumReductionLoops())
    return false;
  BlockArgument argument = copy.getArgument(input);
  if (argument.getType() != returned.getType() || !argument.hasOneUse())
    return false;
  OpOperand &use = *argument.use_begin();
  unsigned result = cast<OpResult>(returned).getResultNumber();
  return use.getOwner() == only &&
         only.getMatchingIndexingMap(&use).isIdentity() &&
         only.getMatchingIndexingMap(only.getDpsInitOperand(result))
             .isIdentity();
}
