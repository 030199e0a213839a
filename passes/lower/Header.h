//===- Header.h - The C header of a library --------------------*- C++ -*-===//
#ifndef CLEAVE_PASSES_LOWER_HEADER_H
#define CLEAVE_PASSES_LOWER_HEADER_H

#include "passes/lower/ProgramData.h"

namespace cleave {

/// `libmlp.so` gives `libmlp.h`.
std::string headerPath(llvm::StringRef library);
/// Prototypes and what each entry takes and gives.
std::string headerOf(const ProgramEdge &edge, llvm::StringRef library);

} // namespace cleave

#endif // CLEAVE_PASSES_LOWER_HEADER_H
