//===- Pack.cpp - Layouts of constant operands of products ----------------===//
#include "passes/lower/kernels/Internal.h"

using namespace mlir;
using namespace cleave::kernels;

std::optional<PackPlan> cleave::kernels::planPacking(func::FuncOp kernel,
                                                     unsigned operand,
                                                     const CpuIsa &isa) {
  return std::nullopt;
}

bool cleave::kernels::mayReuseInput(func::FuncOp kernel, unsigned input,
                                    unsigned output, const CpuIsa &isa) {
  return false;
}
