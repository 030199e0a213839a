//===- Main.cpp - The main function of every executable -------------------===//
#include "cleave/runtime.h"

int main(int argc, char **argv) {
  return cleave_main(argc, argv, cleave_programs, cleave_num_programs);
}
