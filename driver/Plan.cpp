//===- Plan.cpp - cleave plan ---------------------------------------------===//
#include "driver/Driver.h"
#include "driver/Reports.h"
#include "passes/Pipelines.h"
#include "passes/propagate/ProgramGraph.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;

namespace cleave {

int runPlan(const Options &options, Loader load, const Machine &machine) {
  OwningOpRef<ModuleOp> module = load();
  if (!module || failed(partitionModule(*module)))
    return kBadInput;
  std::vector<CommEntry> comms = reportCommunication(*module, machine);
  Mesh mesh = findMesh(*module).value_or(Mesh());
  if (options.json) {
    llvm::json::OStream out(llvm::outs(), 2);
    out.object([&] {
      out.attributeObject("mesh", [&] {
        for (const MeshAxis &axis : mesh.axes)
          out.attribute(axis.name, axis.size);
      });
      writeCollectives(out, comms);
    });
    llvm::outs() << "\n";
    return kDone;
  }
  printCollectives(llvm::outs(), comms, /*withCauses=*/true);
  return kDone;
}

} // namespace cleave
