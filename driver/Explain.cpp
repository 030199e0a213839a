//===- Explain.cpp - Why a value lies so, why a collective is there -------===//
// Propagation records each axis that it adds; the chain of a value is followed
// back from dim to dim until it ends at what the user wrote.
//===----------------------------------------------------------------------===//
#include "dialects/cleave/Cleave.h"
#include "driver/Driver.h"
#include "driver/LoadModel.h"
#include "driver/Reports.h"
#include "passes/Pipelines.h"
#include "passes/cost/CommReport.h"
#include "passes/propagate/ProgramGraph.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/WithColor.h"
#include "llvm/Support/raw_ostream.h"
#include <cmath>
#include <set>

using namespace mlir;

namespace cleave {
namespace {

/// Turns decisions into sentences.
class Explainer {
public:
  explicit Explainer(const ProgramGraph &graph) : graph(graph) {
    for (auto [i, decision] : llvm::enumerate(graph.result.decisions))
      byDim[{decision.value, decision.dim}].push_back(i);
    for (auto [id, value] : llvm::enumerate(graph.values))
      names.push_back(value.value ? valueNameOf(value) : returnName(value));
    for (auto [op, tied] : llvm::zip(graph.ops, graph.problem.ops))
      if (!op.op)
        addTie(op.tie, tied);
    for (const SharedMove &move : graph.moves)
      moves[move.value].push_back(&move);
  }
  /// The steps that gave the value its sharding. `whole`: back to what the user
  /// wrote; otherwise only the last one of each dim.
  std::vector<std::string> chain(unsigned id, bool whole) const;
  std::string name(unsigned id) const { return names[id]; }
  /// Those that a model's reader knows: without what was moved.
  unsigned numValues() const { return names.size() - graph.moves.size(); }
  unsigned beforeMoves(unsigned id) const {
    return id < numValues() ? id
                            : beforeMoves(graph.moves[id - numValues()].value);
  }

private:
  void addTie(StringRef tie, const PropagationOp &tied);
  std::string valueNameOf(const GraphValue &value) const;
  /// With the function's name where there are several.
  std::string returnName(const GraphValue &value) const {
    func::FuncOp function = value.function;
    std::string name = "res" + std::to_string(value.result);
    bool alone = llvm::hasSingleElement(
        function->getParentOfType<ModuleOp>().getOps<func::FuncOp>());
    return alone ? name : function.getName().str() + "." + name;
  }
  void addSteps(unsigned id, unsigned dim, bool whole, std::set<size_t> &seen,
                std::vector<std::string> &steps) const;
  std::string sentence(const Decision &decision) const;
  std::string sentence(const SharedMove &move) const;
  std::string whyWhole(unsigned id) const;
  std::string place(unsigned id) const;

  const ProgramGraph &graph;
  std::map<std::pair<unsigned, unsigned>, std::vector<size_t>> byDim;
  /// By value: what it is tied by, and an annotated value that it is tied to.
  std::map<unsigned, std::pair<StringRef, unsigned>> annotatedTies;
  /// By value.
  std::map<unsigned, SmallVector<const SharedMove *, 1>> moves;
  std::vector<std::string> names;
};

void Explainer::addTie(StringRef tie, const PropagationOp &tied) {
  SmallVector<unsigned> ids = llvm::to_vector(tied.operands);
  llvm::append_range(ids, tied.results);
  for (unsigned annotated : ids)
    for (unsigned id : ids)
      if (id != annotated && graph.values[annotated].annotated)
        annotatedTies.try_emplace(id, tie, annotated);
}

std::string Explainer::valueNameOf(const GraphValue &value) const {
  std::string name = givenName(value.value);
  return name.empty() ? valueName(value.value) : name;
}

std::string Explainer::place(unsigned id) const {
  std::string at = locText(graph.values[id].loc);
  return "'" + name(id) + "'" + (at.empty() ? "" : " (" + at + ")");
}

std::string Explainer::sentence(const Decision &decision) const {
  std::string text;
  llvm::raw_string_ostream os(text);
  os << "dim " << decision.dim << " of '" << name(decision.value) << "' takes "
     << toString(graph.mesh, decision.axes) << " from dim "
     << decision.sourceDim << " of " << place(decision.source);
  if (!decision.op) {
    os << ": both are in one group";
  } else {
    const GraphOp &op = graph.ops[*decision.op];
    if (op.op)
      os << " through " << op.op->getName();
    else
      os << " through a " << op.tie;
    if (std::string at = locText(op.loc); !at.empty())
      os << " (" << at << ")";
  }
  if (decision.priority != 0)
    os << ", priority " << decision.priority;
  for (const Alternative &loser : decision.losers)
    os << "; " << toString(graph.mesh, loser.axes) << " from '"
       << name(loser.source) << "' would have moved "
       << static_cast<int64_t>(loser.bytes) << " bytes instead of "
       << static_cast<int64_t>(decision.bytes);
  return text;
}

std::string Explainer::sentence(const SharedMove &move) const {
  return "it is moved once for its " + std::to_string(move.readers.size()) +
         " readers, to " + toString(graph.mesh, graph.shardings[move.moved]) +
         ": with all that depends on it, " +
         std::to_string(std::llround(move.bytes)) + " bytes instead of " +
         std::to_string(std::llround(move.bytesBefore));
}

void Explainer::addSteps(unsigned id, unsigned dim, bool whole,
                         std::set<size_t> &seen,
                         std::vector<std::string> &steps) const {
  auto it = byDim.find({id, dim});
  if (it == byDim.end())
    return;
  for (size_t index : it->second) {
    if (!seen.insert(index).second)
      continue;
    const Decision &decision = graph.result.decisions[index];
    steps.push_back(sentence(decision));
    if (!whole)
      continue;
    unsigned source = beforeMoves(decision.source);
    addSteps(source, decision.sourceDim, whole, seen, steps);
    const Sharding &written = graph.problem.values[source].initial;
    if (graph.values[source].annotated &&
        !written.dims[decision.sourceDim].axes.empty())
      steps.push_back("dim " + std::to_string(decision.sourceDim) + " of " +
                      place(source) + " is annotated " +
                      toString(graph.mesh, written));
  }
}

std::vector<std::string> Explainer::chain(unsigned id, bool whole) const {
  std::vector<std::string> steps;
  std::set<size_t> seen;
  const GraphValue &value = graph.values[id];
  if (value.annotated)
    steps.push_back("it is annotated " +
                    toString(graph.mesh, graph.problem.values[id].initial));
  for (unsigned dim = 0; dim < graph.shardings[id].dims.size(); ++dim)
    addSteps(id, dim, whole, seen, steps);
  if (!graph.shardings[id].partial.empty())
    steps.push_back("it stays partial: reducing later moves fewer bytes");
  if (steps.empty())
    steps.push_back(whyWhole(id));
  if (auto moved = moves.find(id); moved != moves.end())
    for (const SharedMove *move : moved->second)
      steps.push_back(sentence(*move));
  return steps;
}

/// Of a value that no axis reaches.
std::string Explainer::whyWhole(unsigned id) const {
  auto it = annotatedTies.find(id);
  if (it == annotatedTies.end())
    return "no annotation cuts it";
  auto [tie, other] = it->second;
  return "no annotation cuts it; a " + tie.str() + " ties it to " +
         place(other) + ", which is annotated " +
         toString(graph.mesh, graph.problem.values[other].initial);
}

std::string typeText(Type type) {
  std::string text;
  llvm::raw_string_ostream(text) << type;
  return text;
}

bool matches(const std::string &name, StringRef asked) {
  return name == asked || (name[0] == '%' && name.substr(1) == asked.str());
}

} // namespace

int runExplain(const Options &options, Loader load, const Machine &machine) {
  OwningOpRef<ModuleOp> module = load();
  if (!module)
    return kBadInput;
  PassManager model(module->getContext());
  buildModelPipeline(model);
  if (failed(model.run(*module)))
    return kBadInput;
  FailureOr<ProgramGraph> graph = ProgramGraph::build(*module);
  if (failed(graph) || failed(graph->solve()))
    return kBadInput;
  Explainer explainer(*graph);

  std::vector<unsigned> ids;
  for (unsigned id = 0; id < explainer.numValues(); ++id)
    if (options.value.empty() || matches(explainer.name(id), options.value))
      ids.push_back(id);
  if (ids.empty()) {
    SmallVector<std::string> names;
    SmallVector<StringRef> known;
    for (unsigned id = 0; id < explainer.numValues(); ++id)
      names.push_back(explainer.name(id));
    known.assign(names.begin(), names.end());
    llvm::WithColor::error(llvm::errs(), "cleave")
        << "the model has no value '" << options.value << "'"
        << suggestion(options.value, known) << "\n";
    return kBadInput;
  }

  OwningOpRef<ModuleOp> cut = load();
  if (!cut || failed(partitionModule(*cut)))
    return kBadInput;
  std::vector<CommEntry> comms = reportCommunication(*cut, machine);
  bool whole = !options.value.empty();

  if (options.json) {
    llvm::json::OStream out(llvm::outs(), 2);
    out.object([&] {
      out.attributeArray("values", [&] {
        for (unsigned id : ids)
          out.object([&] {
            out.attribute("name", explainer.name(id));
            out.attribute("loc", locText(graph->values[id].loc));
            out.attribute("type", typeText(graph->values[id].type));
            out.attribute("sharding",
                          toString(graph->mesh, graph->shardings[id]));
            out.attributeArray("cause", [&] {
              for (const std::string &step : explainer.chain(id, whole))
                out.value(step);
            });
          });
      });
      writeCollectives(out, comms);
    });
    llvm::outs() << "\n";
    return kDone;
  }
  if (!options.collectives)
    for (unsigned id : ids) {
      std::string at = locText(graph->values[id].loc);
      llvm::outs() << explainer.name(id) << ": "
                   << typeText(graph->values[id].type) << " "
                   << toString(graph->mesh, graph->shardings[id]);
      if (!at.empty())
        llvm::outs() << "  at " << at;
      llvm::outs() << "\n";
      for (const std::string &step : explainer.chain(id, whole))
        llvm::outs() << "  " << step << "\n";
    }
  if (options.value.empty() || options.collectives)
    printCollectives(llvm::outs(), comms, /*withCauses=*/true);
  return kDone;
}

} // namespace cleave
