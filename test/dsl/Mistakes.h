//===- Mistakes.h - What the DSL says of a mistake -------------*- C++ -*-===//
#ifndef CLEAVE_TEST_DSL_MISTAKES_H
#define CLEAVE_TEST_DSL_MISTAKES_H

#include "cleave/cleave.h"

#include <functional>
#include <gtest/gtest.h>

namespace cleave {

/// All messages of a model with one entry, as the user sees them but for the
/// file, and with lines counted from that of the call: "+2: error: ...".
void expectMistake(const std::function<void(Entry &)> &make,
                   const std::string &expected, Where where = Where::current());
/// The same of a plan, for a model of two layers; lines of the model are
/// "model".
void expectPlanMistake(const std::function<Plan()> &plan,
                       const std::string &expected,
                       Where where = Where::current());
/// The same of messages, with lines counted from that of the call.
void expectText(const std::string &errors, const std::string &expected,
                Where where = Where::current());

} // namespace cleave

#endif // CLEAVE_TEST_DSL_MISTAKES_H
