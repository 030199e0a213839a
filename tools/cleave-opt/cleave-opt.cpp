//===- cleave-opt.cpp - Any pass, for tests -------------------------------===//
#include "passes/Registration.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"

int main(int argc, char **argv) {
  mlir::DialectRegistry registry;
  cleave::registerEverything(registry);
  return mlir::asMainReturnCode(
      mlir::MlirOptMain(argc, argv, "Cleave pass driver\n", registry));
}
