//===- cleave.cpp - The compiler's command line ---------------------------===//
#include "driver/Driver.h"
#include "llvm/Support/InitLLVM.h"

int main(int argc, char **argv) {
  llvm::InitLLVM init(argc, argv);
  llvm::SmallVector<llvm::StringRef> args(argv + 1, argv + argc);
  return cleave::runDriver(args, argv[0]);
}
