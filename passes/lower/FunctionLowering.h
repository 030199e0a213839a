//===- FunctionLowering.h - A planned function as machine calls -*- C++ -*-===//
// A function becomes
//
//   int32_t f(CleaveContext *, char *frame, char *resident, args...,
//   results...)
//
// in the LLVM dialect. Tensors are pointers: what the plan put into the frame
// or the resident area is an offset from it. Scalars are returned through
// pointers, too. An entry has no arguments beyond the three: its inputs and
// outputs lie in its frame, which is the arena. Work is calls of kernels, whose
// symbols carry the instruction set. A status that is not 0 is returned at
// once.
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_PASSES_LOWER_FUNCTIONLOWERING_H
#define CLEAVE_PASSES_LOWER_FUNCTIONLOWERING_H

#include "dialects/cleave/Cleave.h"
#include "dialects/dispatch/Dispatch.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "passes/lower/ProgramData.h"

namespace cleave {

/// Symbol of a kernel or function in the object of one instruction set.
std::string symbolFor(llvm::StringRef name, llvm::StringRef isa);

class FunctionLowering {
public:
  FunctionLowering(mlir::func::FuncOp func, llvm::StringRef isa,
                   const ProgramEdge &edge, mlir::SymbolTable &symbols,
                   StaticData &data);
  /// Adds the function to the module; leaves the old one.
  mlir::LogicalResult run();

private:
  mlir::LogicalResult lower(mlir::Block &block);
  mlir::LogicalResult lower(mlir::Operation *op);
  mlir::LogicalResult lowerCall(dispatch::CallOp call);
  mlir::LogicalResult lowerCall(mlir::func::CallOp call);
  mlir::LogicalResult lowerComm(mlir::Operation *op);
  mlir::LogicalResult lowerLoop(mlir::scf::ForOp loop);
  mlir::LogicalResult lowerScalar(mlir::Operation *op);
  void lowerView(mlir::Operation *op);
  void lowerExtract(mlir::Operation *op);
  void lowerCoordinate(mlir::Operation *op);
  void lowerReturn(mlir::func::ReturnOp ret);

  mlir::LLVM::LLVMFuncOp declare();
  void mapArguments();
  void placeResults(mlir::Operation *op);
  mlir::Value pointerTo(mlir::Attribute place);
  /// Where the context says that a weight's block is.
  mlir::Value weightPointer(int64_t index);
  mlir::Value offset(mlir::Value pointer, int64_t bytes);
  mlir::Value integer(int64_t value);
  mlir::Value integer32(int32_t value);
  mlir::Value address(const Datum &datum);
  /// A scalar as calls pass it: an index is an i64, a bf16 its bits.
  mlir::Type machineType(mlir::Type scalar);
  mlir::Value machine(mlir::Value scalar);
  mlir::Value fromMachine(mlir::Value passed, mlir::Type scalar);
  mlir::Value asIndex(mlir::Value integer);
  mlir::Value lookup(mlir::Value value) const { return values.lookup(value); }
  /// Room for a scalar that a callee returns.
  mlir::Value slotFor(mlir::Type scalar);
  mlir::Value load(mlir::Type scalar, mlir::Value pointer);
  /// Returns `status` if it is not 0.
  void check(mlir::Value status);

  mlir::func::FuncOp func;
  std::string isaName;
  const ProgramEdge &edge;
  const Mesh &mesh;
  mlir::SymbolTable &symbols;
  StaticData &data;
  mlir::OpBuilder b;
  mlir::Location loc;
  mlir::LLVM::LLVMFuncOp target;
  mlir::Block *exit = nullptr;
  llvm::DenseMap<mlir::Value, mlir::Value> values;
};

} // namespace cleave

#endif // CLEAVE_PASSES_LOWER_FUNCTIONLOWERING_H
