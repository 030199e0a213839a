//===- Options.h - The command line of an executable ------------*- C++ -*-===//
#ifndef CLEAVE_RUNTIME_LAUNCH_OPTIONS_H
#define CLEAVE_RUNTIME_LAUNCH_OPTIONS_H

#include "runtime/io/Weights.h"
#include <string>
#include <vector>

namespace cleave::rt {

/// NAME=FILE.
struct NamedFile {
  std::string name, path;
};

enum class Launch { local, mpi, env };

struct Options {
  std::string entry; // empty: the only one
  std::vector<NamedFile> inputs, outputs, states, savedStates;
  WeightOptions weights;
  std::string packFolder, packedFolder; // to write, to use
  Launch launch = Launch::local;
  double timeoutSeconds = 30;
  std::string traceFile, memoryFile;
  int64_t repeat = 1;
  bool describe = false, help = false, verbose = false;
};

/// Reads the arguments; an error is one of the command line (exit status 2).
Status parseOptions(int argc, const char *const *argv, Options *options);

/// The text of --help.
std::string helpText(const std::string &program);

} // namespace cleave::rt

#endif // CLEAVE_RUNTIME_LAUNCH_OPTIONS_H
