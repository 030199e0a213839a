//===- Plan.cpp - cleave plan ---------------------------------------------===//
// What the cut costs before it runs: every collective with its bytes and cause,
// and the memory of each rank, exact to the byte.
//===----------------------------------------------------------------------===//
#include "driver/Build.h"
#include "driver/Driver.h"
#include "driver/Reports.h"
#include "driver/Uneven.h"
#include "passes/Pipelines.h"
#include "passes/dispatch/Passes.h"
#include "passes/propagate/ProgramGraph.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;

namespace cleave {
namespace {

/// All ranks run one program, so they need as much.
struct PlanData {
  Mesh mesh;
  std::vector<CommEntry> comms;
  std::vector<UnevenCut> uneven;
  MemorySummary memory;
  bool fits = true;
  int64_t workspace() const {
    int64_t most = 0;
    for (const MemorySummary::Entry &entry : memory.entries)
      most = std::max(most, entry.workspace);
    return most;
  }
};

/// Bytes that the device has for one rank; 0 if the machine doesn't say.
int64_t memoryPerRank(const Machine &machine, const Mesh &mesh) {
  int64_t bytes = machine.device.memoryBytes;
  return machine.device.memoryShared ? bytes / mesh.numRanks() : bytes;
}

void writeJson(const PlanData &plan) {
  llvm::json::OStream out(llvm::outs(), 2);
  out.object([&] {
    out.attributeObject("mesh", [&] {
      for (const MeshAxis &axis : plan.mesh.axes)
        out.attribute(axis.name, axis.size);
    });
    out.attribute("fits", plan.fits);
    out.attributeArray("ranks", [&] {
      for (int64_t rank = 0; rank < plan.mesh.numRanks(); ++rank)
        out.object([&] {
          out.attribute("rank", rank);
          out.attributeArray("coordinates", [&] {
            for (int64_t c : plan.mesh.coordinates(rank))
              out.value(c);
          });
          out.attribute("stage", 0);
          out.attributeObject("memory", [&] {
            out.attribute("weights", plan.memory.weights);
            out.attribute("state", plan.memory.states);
            out.attribute("activations", plan.memory.arena - plan.workspace());
            // Collectives work in place of the activations.
            out.attribute("comm", 0);
            out.attribute("workspace", plan.workspace());
            out.attribute("total", plan.memory.total());
          });
        });
    });
    writeCollectives(out, plan.comms);
    out.attributeArray("transfers", [] {});
    writeUneven(out, plan.uneven);
    out.attributeArray("repeated_weights", [&] {
      for (const MemorySummary::Repeated &weight : plan.memory.repeated)
        out.object([&] {
          out.attribute("name", weight.name);
          out.attributeArray("forms", [&] {
            for (const MemorySummary::Repeated::Form &form : weight.forms)
              out.object([&] {
                out.attribute("layout", form.layout);
                out.attribute("bytes", form.bytes);
              });
          });
        });
    });
  });
  llvm::outs() << "\n";
}

/// "weight 'w' is stored 2 times: as it is (8.0 KiB), packed n=1 ... (8 KiB)".
void printRepeated(const MemorySummary::Repeated &weight) {
  llvm::outs() << "weight '" << weight.name << "' is stored "
               << weight.forms.size() << " times: ";
  llvm::interleaveComma(
      weight.forms, llvm::outs(), [](const MemorySummary::Repeated::Form &f) {
        llvm::outs() << (f.layout.empty() ? "as it is" : "packed " + f.layout)
                     << " (" << bytesText(f.bytes) << ")";
      });
  llvm::outs() << "\n";
}

void printText(const PlanData &plan, const Machine &machine) {
  printCollectives(llvm::outs(), plan.comms, /*withCauses=*/true);
  llvm::outs() << "memory of each of " << plan.mesh.numRanks()
               << " ranks: weights " << bytesText(plan.memory.weights)
               << ", state " << bytesText(plan.memory.states)
               << ", activations "
               << bytesText(plan.memory.arena - plan.workspace())
               << ", workspace " << bytesText(plan.workspace()) << ", total "
               << bytesText(plan.memory.total()) << "\n";
  printUneven(llvm::outs(), plan.uneven);
  for (const MemorySummary::Repeated &weight : plan.memory.repeated)
    printRepeated(weight);
  if (!plan.fits)
    llvm::outs() << "does not fit: '" << machine.name << "' has "
                 << bytesText(memoryPerRank(machine, plan.mesh))
                 << " for each rank\n";
}

} // namespace

int runPlan(const Options &options, Loader load, const Machine &machine) {
  OwningOpRef<ModuleOp> module = load();
  if (!module || failed(partitionModule(*module)))
    return kBadInput;
  PlanData plan;
  plan.mesh = findMesh(*module).value_or(Mesh());
  plan.comms = reportCommunication(*module, machine);
  plan.uneven = findUneven(*module, plan.mesh);
  PassManager pm(module->getContext());
  buildDispatchPipeline(pm);
  if (failed(pm.run(*module)))
    return kBadInput;
  FailureOr<MemorySummary> memory =
      planMemoryOf(*module, kernels::IsaLevel::avx2);
  if (failed(memory))
    return kBadInput;
  plan.memory = *memory;
  int64_t available = memoryPerRank(machine, plan.mesh);
  plan.fits = available == 0 || plan.memory.total() <= available;
  if (options.json)
    writeJson(plan);
  else
    printText(plan, machine);
  return plan.fits ? kDone : kCheckFailed;
}

} // namespace cleave
