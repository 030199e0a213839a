//===- cleave.h - The language for models and their cuts -------*- C++ -*-===//
// Models are written with named dims, and the plan that cuts them apart from
// the model, in the same words. docs/dsl.md teaches it in one page.
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_CLEAVE_H
#define CLEAVE_CLEAVE_H

#include "cleave/model.h"
#include "cleave/plan.h"
#include "cleave/program.h"
#include "cleave/tensor.h"

#endif // CLEAVE_CLEAVE_H
