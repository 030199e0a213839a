//===- cleave-opt.cpp - Any pass, for tests -------------------------------===//
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "passes/Registration.h"

int main(int argc, char **argv) {
  mlir::DialectRegistry registry;
  cleave::registerEverything(registry);
  return mlir::asMainReturnCode(
      mlir::MlirOptMain(argc, argv, "Cleave pass driver\n", registry));
}
