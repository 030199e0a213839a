//===- cleave-lsp-server.cpp - For editors --------------------------------===//
#include "mlir/IR/DialectRegistry.h"
#include "mlir/Tools/mlir-lsp-server/MlirLspServerMain.h"
#include "passes/Registration.h"

int main(int argc, char **argv) {
  mlir::DialectRegistry registry;
  cleave::registerDialects(registry);
  return mlir::failed(mlir::MlirLspServerMain(argc, argv, registry));
}
