//===- Header.cpp - The C header of a library -----------------------------===//
#include "passes/lower/Header.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Path.h"

using namespace mlir;
using namespace cleave;

std::string cleave::headerPath(StringRef library) {
  llvm::SmallString<128> path(library);
  llvm::sys::path::replace_extension(path, "h");
  return std::string(path);
}

static void describe(llvm::raw_ostream &os, const Mesh &mesh, StringRef what,
                     ArrayRef<EdgeTensor> tensors) {
  for (const EdgeTensor &tensor : tensors) {
    os << " *   " << what << " '" << tensor.storeName << "': " << tensor.type;
    if (tensor.sharding)
      os << " cut as " << toString(mesh, toSharding(mesh, tensor.sharding));
    os << "\n";
  }
}

static std::string guardOf(StringRef library) {
  std::string guard;
  for (char c : llvm::sys::path::stem(library))
    guard += llvm::isAlnum(c) ? llvm::toUpper(c) : '_';
  return "CLEAVE_PROGRAM_" + guard + "_H";
}

std::string cleave::headerOf(const ProgramEdge &edge, StringRef library) {
  std::string text, guard = guardOf(library);
  llvm::raw_string_ostream os(text);
  os << "/* " << llvm::sys::path::filename(library) << ": a compiled model for "
     << edge.mesh.numRanks()
     << (edge.mesh.numRanks() == 1 ? " rank.\n" : " ranks.\n")
     << " * Open it with the functions of <cleave/runtime.h>, which the\n"
        " * library contains; pass them the two symbols below.\n";
  for (const EdgeEntry &entry : edge.entries) {
    os << " *\n * entry '" << entry.name << "', arena of " << entry.arenaBytes
       << " bytes per rank\n";
    describe(os, edge.mesh, "input", entry.inputs);
    describe(os, edge.mesh, "output", entry.outputs);
  }
  if (!edge.weights.empty() || !edge.states.empty())
    os << " *\n * resident: " << edge.residentBytes << " bytes per rank\n";
  describe(os, edge.mesh, "weight", edge.weights);
  describe(os, edge.mesh, "state", edge.states);
  os << " */\n#ifndef " << guard << "\n#define " << guard << "\n\n"
     << "#include \"cleave/runtime.h\"\n\n"
     << "#ifdef __cplusplus\nextern \"C\" {\n#endif\n\n"
     << "/* One variant per instruction set, the best first. */\n"
     << "extern const CleaveProgram *const cleave_programs[];\n"
     << "extern const int64_t cleave_num_programs;\n\n"
     << "#ifdef __cplusplus\n}\n#endif\n\n#endif /* " << guard << " */\n";
  return text;
}
