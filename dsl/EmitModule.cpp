//===- EmitModule.cpp - Entries and functions of a module -----------------===//
// An entry is a public function whose arguments are inputs, states and weights.
// Each kind of turn of a repeat is a private function; what it takes from
// outside, weights above all, are its arguments.
//===----------------------------------------------------------------------===//
#include "dialects/cleave/Cleave.h"
#include "dialects/dispatch/Dispatch.h"
#include "dsl/Emit.h"
#include "mlir/AsmParser/AsmParser.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Verifier.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;

namespace cleave::dsl {
namespace {

Location placeOf(MLIRContext *context, const Place &place) {
  if (place.line == 0)
    return UnknownLoc::get(context);
  return FileLineColLoc::get(context, place.file, place.line, place.column);
}

/// Writes one entry and its functions.
class EntryEmitter {
public:
  EntryEmitter(ModuleOp module, const Entry &entry, const Shardings &shardings,
               FlatSymbolRefAttr mesh, llvm::StringMap<func::FuncOp> &known)
      : module(module), entry(entry), shardings(shardings), mesh(mesh),
        functions(entry, shardings), known(known), b(module.getContext()) {}
  void run();

private:
  /// Where a function is written: names of its values lose `prefix`, the scope
  /// of its turn, for `stem`.
  struct Frame {
    NodeEmitter nodes;
    std::string prefix, stem;
  };
  std::vector<const Node *> arguments() const;
  void setArgument(func::FuncOp function, unsigned index, const Node *node);
  void setResults(func::FuncOp function, ArrayRef<Value> results);
  void writeBody(const Region &region, Frame &frame);
  void writeNode(const Node *node, Frame &frame);
  void writeTurn(const Region &region, Frame &frame);
  void writeLoop(const Region &loop, Frame &frame);
  func::FuncOp functionOf(const Region &region);
  func::FuncOp create(const std::string &name, ArrayRef<const Node *> inputs,
                      ArrayRef<const Node *> results, Location loc);
  Location locOf(const Node *node, const Frame &frame) const;
  ShardingAttr shardingOf(const Node *node) const;
  std::string nameOf(const Node *node) const;

  ModuleOp module;
  const Entry &entry;
  const Shardings &shardings;
  FlatSymbolRefAttr mesh;
  Functions functions;
  llvm::StringMap<func::FuncOp> &known;
  OpBuilder b;
  /// Results of the entry that are called after it.
  llvm::DenseMap<const Node *, std::string> outputNames;
};

ShardingAttr EntryEmitter::shardingOf(const Node *node) const {
  auto it = shardings.find(node);
  if (it == shardings.end())
    return nullptr;
  std::string text;
  llvm::raw_string_ostream(text)
      << "#cleave.sharding<" << mesh << ", " << it->second.text << ">";
  return cast<ShardingAttr>(parseAttribute(text, b.getContext()));
}

std::string EntryEmitter::nameOf(const Node *node) const {
  auto output = outputNames.find(node);
  return output == outputNames.end() ? node->name : output->second;
}

/// "layer0.attn.dot" in a function of all layers is "layer*.attn.dot".
Location EntryEmitter::locOf(const Node *node, const Frame &frame) const {
  std::string name = nameOf(node);
  if (!frame.prefix.empty() && StringRef(name).starts_with(frame.prefix + "."))
    name = frame.stem + name.substr(frame.prefix.size());
  return NameLoc::get(StringAttr::get(b.getContext(), name),
                      placeOf(b.getContext(), node->place));
}

func::FuncOp EntryEmitter::create(const std::string &name,
                                  ArrayRef<const Node *> inputs,
                                  ArrayRef<const Node *> results,
                                  Location loc) {
  NodeEmitter types(b, functions);
  SmallVector<Type> in, out;
  for (const Node *node : inputs)
    in.push_back(types.typeOf(node));
  for (const Node *node : results)
    out.push_back(types.typeOf(node));
  auto function = func::FuncOp::create(loc, name, b.getFunctionType(in, out));
  SymbolTable(module).insert(function);
  SmallVector<Location> locs(inputs.size(), loc);
  OpBuilder inner(b.getContext());
  inner.createBlock(&function.getBody(), {}, in, locs);
  return function;
}

//===----------------------------------------------------------------------===//
// Bodies
//===----------------------------------------------------------------------===//

void EntryEmitter::writeNode(const Node *node, Frame &frame) {
  Location loc = locOf(node, frame);
  Value value = frame.nodes.emit(node, loc);
  frame.nodes[node] = value;
  ShardingAttr sharding = shardingOf(node);
  if (!sharding)
    return;
  Operation *op = value.getDefiningOp();
  // A name or a part of an op that has others: the cut begins here.
  bool isOwn = op && op->getNumResults() == 1 && op->getLoc() == loc;
  if (isOwn && node->kind != Kind::Rename)
    op->setDiscardableAttr(kShardingAttr, sharding);
  else if (node->kind == Kind::Rename &&
           shardingOf(node->operands[0]) == sharding)
    return;
  else
    frame.nodes[node] =
        ConstraintOp::create(b, loc, value, sharding, StringAttr());
}

void EntryEmitter::writeBody(const Region &region, Frame &frame) {
  for (const auto &item : region.items) {
    if (auto *inner = std::get_if<std::unique_ptr<Region>>(&item)) {
      (*inner)->isLoop() ? writeLoop(**inner, frame)
                         : writeTurn(**inner, frame);
    } else if (const Node *node = std::get<Node *>(item);
               functions.isWritten(node)) {
      writeNode(node, frame);
    }
  }
}

func::FuncOp EntryEmitter::functionOf(const Region &region) {
  const Functions::Turn &turn = functions.turn(&region);
  if (func::FuncOp function = known.lookup(turn.key))
    return function;
  OpBuilder::InsertionGuard guard(b);
  Location loc = placeOf(b.getContext(), region.place);
  // Entries keep their names.
  std::string name = region.repeated;
  if (!name.empty() && name.back() == '.')
    name.pop_back();
  for (const Entry &other : entry.graph->entries)
    if (other.name == name)
      name += "_turn";
  func::FuncOp fresh = create(name, turn.inputs, turn.results, loc);
  fresh.setPrivate();
  b.setInsertionPointToStart(&fresh.getBody().front());
  std::string stem =
      functions.numTurns(turn.key) > 1 ? region.repeated + "*" : region.scope;
  Frame frame{NodeEmitter(b, functions), region.scope, stem};
  for (auto [node, argument] : llvm::zip(turn.inputs, fresh.getArguments())) {
    argument.setLoc(locOf(node, frame));
    frame.nodes[node] = argument;
  }
  writeBody(region, frame);
  SmallVector<Value> results;
  for (const Node *node : turn.results)
    results.push_back(frame.nodes[node]);
  func::ReturnOp::create(b, loc, results);
  known[turn.key] = fresh;
  return fresh;
}

void EntryEmitter::writeTurn(const Region &region, Frame &frame) {
  const Functions::Turn &turn = functions.turn(&region);
  if (turn.results.empty())
    return;
  func::FuncOp function = functionOf(region);
  SmallVector<Value> operands;
  for (const Node *node : turn.inputs)
    operands.push_back(frame.nodes[node]);
  Location loc = locOf(turn.results.front(), frame);
  auto call = func::CallOp::create(b, loc, function, operands);
  for (auto [node, result] : llvm::zip(turn.results, call.getResults()))
    frame.nodes[node] = result;
}

void EntryEmitter::writeLoop(const Region &loop, Frame &frame) {
  if (!functions.isLoopWritten(&loop))
    return;
  Location loc = locOf(loop.results.front(), frame);
  auto index = [&](int64_t value) -> Value {
    return arith::ConstantIndexOp::create(b, loc, value);
  };
  SmallVector<Value> inits, yields;
  for (const Node *carried : loop.carried)
    inits.push_back(frame.nodes[carried->operands[0]]);
  Value first = index(0), end = index(loop.turns.size), step = index(1);
  auto op = scf::ForOp::create(b, loc, first, end, step, inits);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(op.getBody());
  frame.nodes.setTurn(&loop, op.getInductionVar());
  for (auto [carried, value] : llvm::zip(loop.carried, op.getRegionIterArgs()))
    frame.nodes[carried] = value;
  writeBody(loop, frame);
  for (const Node *node : loop.yields)
    yields.push_back(frame.nodes[node]);
  scf::YieldOp::create(b, loc, yields);
  for (auto [node, value] : llvm::zip(loop.results, op.getResults()))
    frame.nodes[node] = value;
}

//===----------------------------------------------------------------------===//
// Entries
//===----------------------------------------------------------------------===//

std::vector<const Node *> EntryEmitter::arguments() const {
  std::vector<const Node *> all(entry.inputs.begin(), entry.inputs.end());
  for (const std::string &name : entry.stateOrder)
    all.push_back(entry.states.at(name).argument);
  all.insert(all.end(), entry.weights.begin(), entry.weights.end());
  return all;
}

void EntryEmitter::setArgument(func::FuncOp function, unsigned index,
                               const Node *node) {
  StringAttr name = b.getStringAttr(node->name);
  function.getArgument(index).setLoc(
      NameLoc::get(name, placeOf(b.getContext(), node->place)));
  if (node->kind == Kind::Weight)
    function.setArgAttr(index, kWeightAttr, name);
  if (node->kind == Kind::State)
    function.setArgAttr(index, kStateAttr, name);
  if (ShardingAttr sharding = shardingOf(node))
    function.setArgAttr(index, kShardingAttr, sharding);
}

void EntryEmitter::setResults(func::FuncOp function, ArrayRef<Value> results) {
  llvm::StringSet<> taken;
  for (auto [i, output] : llvm::enumerate(entry.outputs)) {
    // Most are called so by their own ops.
    auto result = dyn_cast<OpResult>(results[i]);
    auto loc = dyn_cast<NameLoc>(results[i].getLoc());
    bool isCalledSo = result && result.getOwner()->getNumResults() == 1 &&
                      loc && loc.getName() == output.name &&
                      taken.insert(output.name).second;
    if (!isCalledSo)
      function.setResultAttr(i, dispatch::kNameAttr,
                             b.getStringAttr(output.name));
  }
  unsigned index = entry.outputs.size();
  for (const std::string &name : entry.stateOrder) {
    // A state lies the same before and after a call.
    if (ShardingAttr sharding = shardingOf(entry.states.at(name).argument))
      function.setResultAttr(index, kShardingAttr, sharding);
    function.setResultAttr(index++, kStateAttr, b.getStringAttr(name));
  }
}

void EntryEmitter::run() {
  std::vector<const Node *> inputs = arguments(), results;
  for (const Output &output : entry.outputs) {
    results.push_back(output.value);
    bool isOp = !output.value->isLeaf() && output.value->kind != Kind::Rename &&
                output.value->kind != Kind::Pick;
    if (isOp && !output.value->isNamed && output.value->region == &entry.root)
      outputNames.try_emplace(output.value, output.name);
  }
  for (const std::string &name : entry.stateOrder)
    results.push_back(entry.states.at(name).current);
  Location loc = placeOf(b.getContext(), entry.place);
  func::FuncOp function = create(entry.name, inputs, results, loc);
  for (auto [i, node] : llvm::enumerate(inputs))
    setArgument(function, i, node);
  b.setInsertionPointToStart(&function.getBody().front());
  Frame frame{NodeEmitter(b, functions), "", ""};
  for (auto [node, argument] : llvm::zip(inputs, function.getArguments()))
    frame.nodes[node] = argument;
  writeBody(entry.root, frame);
  SmallVector<Value> values;
  for (const Node *node : results)
    values.push_back(frame.nodes[node]);
  func::ReturnOp::create(b, loc, values);
  setResults(function, values);
}

MeshOp emitMesh(ModuleOp module, const PlanData &plan) {
  MLIRContext *context = module.getContext();
  OpBuilder b(context);
  b.setInsertionPointToStart(module.getBody());
  SmallVector<MeshAxisAttr> axes;
  for (const auto &[name, size] : plan.axes)
    axes.push_back(MeshAxisAttr::get(context, name, size));
  return MeshOp::create(b, placeOf(context, plan.place), plan.mesh,
                        MeshAttr::get(context, axes, plan.ranks));
}

} // namespace

OwningOpRef<ModuleOp> emitModule(MLIRContext *context, const Graph &graph,
                                 const PlanData &plan) {
  std::vector<Diagnostic> diagnostics;
  Shardings shardings = resolvePlan(graph, plan, diagnostics);
  for (const Diagnostic &diagnostic : diagnostics) {
    InFlightDiagnostic error = emitError(placeOf(context, diagnostic.place))
                               << diagnostic.text;
    for (const Note &note : diagnostic.notes)
      error.attachNote(placeOf(context, note.place)) << note.text;
  }
  if (!diagnostics.empty())
    return nullptr;
  context->loadAllAvailableDialects();
  OwningOpRef<ModuleOp> module =
      ModuleOp::create(placeOf(context, graph.place));
  MeshOp mesh = emitMesh(*module, plan);
  llvm::StringMap<func::FuncOp> known;
  for (const Entry &entry : graph.entries)
    EntryEmitter(*module, entry, shardings,
                 FlatSymbolRefAttr::get(mesh.getSymNameAttr()), known)
        .run();
  if (failed(verify(*module)))
    return nullptr;
  return module;
}

} // namespace cleave::dsl
