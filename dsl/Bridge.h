//===- Bridge.h - What the public part asks of the compiler ----*- C++ -*-===//
#ifndef CLEAVE_DSL_BRIDGE_H
#define CLEAVE_DSL_BRIDGE_H

#include "dsl/Plan.h"

namespace cleave::dsl {

struct LibraryOptions {
  std::vector<std::pair<std::string, int64_t>> mesh;
  std::string target;
  /// The file that is written.
  std::string output;
};
/// Compiles to a shared library. All messages, empty if there are none.
std::string compileLibrary(const Graph &graph, const PlanData &plan,
                           const LibraryOptions &options);

/// The subcommands of the tool `cleave` on the model.
int runCommandLine(int argc, char **argv, const Graph &graph,
                   const PlanData &plan);

} // namespace cleave::dsl

#endif // CLEAVE_DSL_BRIDGE_H
