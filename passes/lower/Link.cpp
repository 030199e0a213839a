//===- Link.cpp - Objects and the runtime to one file ---------------------===//
// Linking is left to the C++ compiler found on the machine, which knows where
// its start-up files and libraries are; lld does the work where it is present.
//===----------------------------------------------------------------------===//
#include "mlir/IR/Diagnostics.h"
#include "passes/lower/Emit.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Program.h"
#include <dlfcn.h>

using namespace mlir;
using namespace cleave;
namespace fs = llvm::sys::fs;
namespace path = llvm::sys::path;

namespace {
/// A directory for the objects, removed at the end.
class Workspace {
public:
  std::error_code create() {
    return fs::createUniqueDirectory("cleave-link", directory);
  }
  ~Workspace() {
    if (!directory.empty())
      (void)fs::remove_directories(directory);
  }
  std::string file(const llvm::Twine &name) const {
    llvm::SmallString<128> result(directory);
    path::append(result, name);
    return std::string(result);
  }

private:
  llvm::SmallString<128> directory;
};
} // namespace

/// Writes a file; the error of the system if that fails.
static std::error_code write(StringRef file, ArrayRef<char> content) {
  std::error_code error;
  llvm::raw_fd_ostream stream(file, error);
  if (error)
    return error;
  stream << StringRef(content.data(), content.size());
  stream.close();
  error = stream.error();
  stream.clear_error();
  return error;
}

static InFlightDiagnostic cannotWrite(Location loc, StringRef file,
                                      std::error_code error) {
  return emitError(loc) << "cannot write '" << file << "': " << error.message();
}

LogicalResult cleave::writeFile(Location loc, StringRef file,
                                StringRef content) {
  ArrayRef bytes(content.data(), content.size());
  std::error_code error;
  // A device or pipe is written, not replaced.
  bool replaces = !fs::exists(file) || fs::is_regular_file(file);
  SmallString<128> temporary(file);
  if (!replaces) {
    error = write(file, bytes);
  } else if (!(error = fs::createUniqueFile(file + "-%%%%%%.tmp", temporary))) {
    error = write(temporary, bytes);
    if (!error)
      error = fs::rename(temporary, file);
    if (error)
      (void)fs::remove(temporary);
  }
  if (!error)
    return success();
  cannotWrite(loc, file, error);
  return failure();
}

/// The first of the programs that exists, or "".
static std::string findProgram(ArrayRef<StringRef> names) {
  for (StringRef name : names) {
    if (path::is_absolute(name)) {
      if (fs::can_execute(name))
        return name.str();
    } else if (auto found = llvm::sys::findProgramByName(name)) {
      return *found;
    }
  }
  return "";
}

static std::string findRuntime(const EmitOptions &options) {
  SmallVector<std::string> places;
  if (!options.runtimeDirectory.empty()) {
    places.push_back(options.runtimeDirectory);
  } else {
    static int anchor;
    llvm::SmallString<128> beside(
        path::parent_path(fs::getMainExecutable(nullptr, &anchor)));
    path::append(beside, "..", "lib");
    places.push_back(std::string(beside));
    // Where libcleave.so lies, if this is part of it.
    Dl_info library;
    if (dladdr(&anchor, &library) && library.dli_fname)
      places.push_back(path::parent_path(library.dli_fname).str());
    places.push_back(CLEAVE_RUNTIME_DIRECTORY);
  }
  for (const std::string &place : places)
    if (fs::exists(place + "/libcleave_rt.a"))
      return place;
  return "";
}

/// The command that joins `objects` into `output`, or nothing after a
/// diagnostic.
static FailureOr<SmallVector<std::string>>
linkCommand(Location loc, ArrayRef<std::string> objects, StringRef output,
            const EmitOptions &options, const Workspace &workspace) {
  SmallVector<std::string> command;
  std::string lld = findProgram({"ld.lld-22", "ld.lld"});
  if (options.kind == EmitOptions::Kind::Object) {
    std::string linker = lld.empty() ? findProgram({"ld"}) : lld;
    if (linker.empty())
      return emitError(loc) << "found no linker: looked for ld.lld-22, ld.lld "
                               "and ld in PATH; install lld";
    command = {linker, "-r", "-o", output.str()};
    llvm::append_range(command, objects);
    return command;
  }
  std::string compiler =
      findProgram({CLEAVE_CXX_COMPILER, "clang++-22", "clang++", "g++", "c++"});
  if (compiler.empty())
    return emitError(loc) << "found no C++ compiler to link with: looked for "
                             "clang++-22, clang++, g++ and c++ in PATH; "
                             "install one, or use --emit=obj";
  std::string runtime = findRuntime(options);
  if (runtime.empty())
    return emitError(loc) << "found no libcleave_rt.a beside this program or "
                             "in '"
                          << CLEAVE_RUNTIME_DIRECTORY << "'";
  command = {compiler, "-o", output.str(), "-Wl,--gc-sections"};
  if (!lld.empty())
    command.push_back("-fuse-ld=lld");
  SmallVector<StringRef> flags;
  StringRef(CLEAVE_LINK_FLAGS).split(flags, ' ', -1, /*KeepEmpty=*/false);
  for (StringRef flag : flags)
    command.push_back(flag.str());
  llvm::append_range(command, objects);
  if (options.kind == EmitOptions::Kind::Executable) {
    command.push_back(runtime + "/libcleave_main.a");
    command.push_back(runtime + "/libcleave_rt.a");
  } else {
    std::string script = workspace.file("exports.map");
    if (auto error =
            write(script, StringRef("{ global: cleave_*; local: *; };")))
      return cannotWrite(loc, script, error);
    command.insert(command.end(),
                   {"-shared", "-Wl,--version-script=" + script,
                    "-Wl,--whole-archive", runtime + "/libcleave_rt.a",
                    "-Wl,--no-whole-archive"});
  }
  command.insert(command.end(), {"-pthread", "-ldl"});
  return command;
}

static LogicalResult runLinker(Location loc, ArrayRef<std::string> command,
                               const Workspace &workspace) {
  std::string log = workspace.file("log"), problem;
  SmallVector<StringRef> arguments(command.begin(), command.end());
  std::optional<StringRef> redirects[] = {StringRef(""), StringRef(log),
                                          StringRef(log)};
  int status = llvm::sys::ExecuteAndWait(command.front(), arguments,
                                         /*Env=*/std::nullopt, redirects,
                                         /*SecondsToWait=*/0,
                                         /*MemoryLimit=*/0, &problem);
  if (status == 0)
    return success();
  InFlightDiagnostic error = emitError(loc);
  error << "'" << command.front() << "' could not link the program (status "
        << status << ")";
  if (!problem.empty())
    error << ": " << problem;
  if (auto text = llvm::MemoryBuffer::getFile(log))
    if (StringRef said = (*text)->getBuffer().trim(); !said.empty())
      error.attachNote() << "it said: " << said.take_front(2000);
  return error;
}

LogicalResult cleave::linkProgram(Location loc,
                                  ArrayRef<ArrayRef<char>> objects,
                                  const EmitOptions &options) {
  Workspace workspace;
  if (auto error = workspace.create())
    return emitError(loc) << "cannot create a directory for objects: "
                          << error.message();
  SmallVector<std::string> files;
  for (auto [i, object] : llvm::enumerate(objects)) {
    files.push_back(workspace.file("part" + llvm::Twine(i) + ".o"));
    if (auto error = write(files.back(), object))
      return cannotWrite(loc, files.back(), error);
  }
  if (fs::exists(options.output) && !fs::is_regular_file(options.output)) {
    emitError(loc) << "'" << options.output
                   << "' is not a regular file; give the program a name of its "
                      "own";
    return failure();
  }
  // Beside the output, so that renaming cannot fail for want of space.
  llvm::SmallString<128> temporary;
  if (auto error =
          fs::createUniqueFile(options.output + ".%%%%%%.tmp", temporary))
    return cannotWrite(loc, options.output, error);
  auto command = linkCommand(loc, files, temporary, options, workspace);
  bool linked =
      succeeded(command) && succeeded(runLinker(loc, *command, workspace));
  std::error_code error;
  if (linked)
    error = fs::rename(temporary, options.output);
  if (linked && !error)
    return success();
  (void)fs::remove(temporary);
  if (error)
    cannotWrite(loc, options.output, error);
  return failure();
}
