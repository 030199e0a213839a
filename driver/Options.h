//===- Options.h - The command line of the driver --------------*- C++ -*-===//
#ifndef CLEAVE_DRIVER_OPTIONS_H
#define CLEAVE_DRIVER_OPTIONS_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <optional>
#include <string>
#include <vector>

namespace cleave {

/// What the process returns; scripts rely on it.
enum ExitCode : int {
  kDone = 0,
  /// The input is wrong; a diagnostic says where.
  kBadInput = 1,
  /// The command line is wrong.
  kBadUsage = 2,
  /// Numbers differ, it does not fit, or it may deadlock.
  kCheckFailed = 3,
  /// A rank failed or a deadline passed.
  kRunFailed = 4
};

enum class Command { Build, Check, Plan, Explain, Compare };

/// The levels that `--until` prints, in order.
enum class PhaseName {
  Model,
  Propagate,
  Stage,
  Partition,
  Comm,
  Dispatch,
  Memory,
  Lower
};

/// `tp=4,pp=2`: sizes that replace those of the model's mesh.
using MeshSizes = std::vector<std::pair<std::string, int64_t>>;

struct Options {
  Command command = Command::Build;
  std::string model;
  /// The value that `explain` is asked about.
  std::string value;
  bool collectives = false;
  std::vector<MeshSizes> meshes;
  std::string target = "cpu";
  std::string machine = "cpu-local";
  /// Joins weights that are one tensor of the checkpoint; empty for none.
  std::string weightsMap;
  bool json = false;
  std::string output;
  std::optional<PhaseName> until;
  /// What `build` makes; empty: an executable, or a level that is printed.
  std::string emit;
  uint64_t seed = 1;
  unsigned trials = 1;
  unsigned timeoutSeconds = 60;
  bool help = false;
  /// Whether the program brings its model along. What it prints as MLIR then
  /// shows the names and lines of the program that wrote it.
  bool hasOwnModel = false;
};

/// The whole command line after the program's name. The error's text says what
/// is wrong and what is known. `ownModel` names a program that brings its model
/// along, so that the command line names none.
llvm::Expected<Options> parseOptions(llvm::ArrayRef<llvm::StringRef> args,
                                     llvm::StringRef ownModel = "");
std::string usage(llvm::StringRef ownModel = "");
/// `tp=4,pp=2`.
llvm::Expected<MeshSizes> parseMeshSizes(llvm::StringRef text);
/// "; closest is 'x'", or the whole list if nothing is close.
std::string suggestion(llvm::StringRef name,
                       llvm::ArrayRef<llvm::StringRef> known);

} // namespace cleave

#endif // CLEAVE_DRIVER_OPTIONS_H
