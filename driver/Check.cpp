//===- Check.cpp - cleave check -------------------------------------------===//
#include "driver/Driver.h"

namespace cleave {

int runCheck(const Options &, Loader, llvm::StringRef) { return kBadUsage; }

} // namespace cleave
