//===- LoadModel.cpp - From a file to a module ----------------------------===//
#include "driver/LoadModel.h"
#include "dialects/cleave/Cleave.h"
#include "mlir/AsmParser/AsmParser.h"
#include "mlir/AsmParser/AsmParserState.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Support/FileUtilities.h"
#include "passes/propagate/ProgramGraph.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/SourceMgr.h"

using namespace mlir;

namespace cleave {

std::string acceptLongConstraints(StringRef text) {
  static constexpr StringLiteral kOp = "cleave.constraint";
  static constexpr StringLiteral kPrefix = "#cleave.sharding<";
  std::string result = text.str();
  for (size_t at = text.find(kOp); at != StringRef::npos;
       at = text.find(kOp, at + 1)) {
    size_t p = text.find_first_not_of(" \t\n", at + kOp.size());
    if (p == StringRef::npos || text[p] != '%')
      continue;
    p = text.find_first_of(" \t\n", p);
    if (p == StringRef::npos)
      continue;
    p = text.find_first_not_of(" \t\n", p);
    if (p == StringRef::npos || !text.substr(p).starts_with(kPrefix))
      continue;
    for (size_t i = 0; i + 1 < kPrefix.size(); ++i)
      result[p + i] = ' ';
  }
  return result;
}

static bool isNamed(Location loc) {
  if (isa<NameLoc>(loc))
    return true;
  auto fused = dyn_cast<FusedLoc>(loc);
  return fused && llvm::any_of(fused.getLocations(), isNamed);
}

/// loc("h") alone says nothing of the place: the parser knows it.
static Location withPlace(Location loc, Location place) {
  auto name = dyn_cast<NameLoc>(loc);
  if (!name || !isa<UnknownLoc>(name.getChildLoc()))
    return loc;
  return NameLoc::get(name.getName(), place);
}

/// `%h = ...` gives the op the location "%h", and a named op its place.
static void nameResults(const AsmParserState &state,
                        const llvm::SourceMgr &sources, StringRef file) {
  for (const AsmParserState::OperationDefinition &def : state.getOpDefs()) {
    MLIRContext *context = def.op->getContext();
    auto [line, column] = sources.getLineAndColumn(def.loc.Start);
    Location place = FileLineColLoc::get(context, file, line, column);
    if (isNamed(def.op->getLoc())) {
      def.op->setLoc(withPlace(def.op->getLoc(), place));
      continue;
    }
    if (def.resultGroups.empty())
      continue;
    SMRange range = def.resultGroups.front().definition.loc;
    StringRef text(range.Start.getPointer(),
                   range.End.getPointer() - range.Start.getPointer());
    text = text.take_until([](char c) { return c == ':' || c == ' '; });
    def.op->setLoc(
        NameLoc::get(StringAttr::get(context, text), def.op->getLoc()));
  }
  for (const AsmParserState::BlockDefinition &def : state.getBlockDefs())
    for (auto [arg, argDef] :
         llvm::zip(def.block->getArguments(), def.arguments)) {
      auto [line, column] = sources.getLineAndColumn(argDef.loc.Start);
      arg.setLoc(
          withPlace(arg.getLoc(),
                    FileLineColLoc::get(arg.getContext(), file, line, column)));
    }
}

OwningOpRef<ModuleOp> loadModel(MLIRContext *context, StringRef path) {
  std::string message;
  // Standard input can be read once; check loads the model twice.
  static std::string standardInput;
  std::unique_ptr<llvm::MemoryBuffer> file;
  if (path == "-" && !standardInput.empty())
    file = llvm::MemoryBuffer::getMemBuffer(standardInput, "<stdin>");
  else
    file = openInputFile(path, &message);
  if (file && path == "-" && standardInput.empty())
    standardInput = file->getBuffer().str();
  if (!file) {
    emitError(UnknownLoc::get(context)) << message;
    return nullptr;
  }
  StringRef name = path == "-" ? "<stdin>" : path;
  llvm::SourceMgr sources;
  bool bytecode = file->getBuffer().starts_with("ML\xefR");
  if (bytecode) {
    sources.AddNewSourceBuffer(std::move(file), SMLoc());
    return parseSourceFile<ModuleOp>(sources, context);
  }
  sources.AddNewSourceBuffer(
      llvm::MemoryBuffer::getMemBufferCopy(
          acceptLongConstraints(file->getBuffer()), name),
      SMLoc());
  SourceMgrDiagnosticHandler diagnostics(sources, context);
  ParserConfig config(context, /*verifyAfterParse=*/false);
  AsmParserState state;
  Block block;
  if (failed(parseAsmSourceFile(sources, &block, config, &state)))
    return nullptr;
  nameResults(state, sources, name);
  OwningOpRef<ModuleOp> module;
  if (llvm::hasSingleElement(block) && isa<ModuleOp>(block.front())) {
    module = cast<ModuleOp>(block.front());
    module->getOperation()->remove();
  } else {
    module = ModuleOp::create(FileLineColLoc::get(context, name, 0, 0));
    module->getBody()->getOperations().splice(module->getBody()->begin(),
                                              block.getOperations());
  }
  if (failed(verify(*module)))
    return nullptr;
  return module;
}

LogicalResult setMeshSizes(ModuleOp module, const MeshSizes &sizes) {
  if (sizes.empty())
    return success();
  std::optional<Mesh> mesh = findMesh(module);
  if (!mesh)
    return emitError(module.getLoc())
           << "--mesh gives sizes, but the model has no mesh; declare one with "
              "cleave.mesh";
  auto op = module.lookupSymbol<MeshOp>(mesh->name);
  SmallVector<StringRef> names;
  for (const MeshAxis &axis : mesh->axes)
    names.push_back(axis.name);
  SmallVector<MeshAxisAttr> axes(op.getMesh().getAxes());
  for (auto &[name, size] : sizes) {
    std::optional<unsigned> axis = mesh->findAxis(name);
    if (!axis)
      return op.emitOpError()
             << "'" << mesh->name << "' has no axis '" << name
             << "', which --mesh names" << suggestion(name, names);
    axes[*axis] = MeshAxisAttr::get(module.getContext(), name, size);
  }
  MeshAttr attr =
      withAxes([&] { return op.emitOpError(); }, op.getMesh(), axes);
  if (!attr)
    return failure();
  op.setMeshAttr(attr);
  return verify(module);
}

void removeCut(ModuleOp module) {
  SmallVector<Operation *> hints;
  module.walk([&](Operation *op) {
    op->removeDiscardableAttr(kShardingAttr);
    if (isa<CleaveDialect>(op->getDialect()))
      hints.push_back(op);
    auto function = dyn_cast<func::FuncOp>(op);
    if (!function)
      return;
    StringAttr name = StringAttr::get(op->getContext(), kShardingAttr);
    for (unsigned i = 0, e = function.getNumArguments(); i < e; ++i)
      function.removeArgAttr(i, name);
    for (unsigned i = 0, e = function.getNumResults(); i < e; ++i)
      function.removeResultAttr(i, name);
  });
  for (Operation *op : hints) {
    if (op->getNumResults() == 1)
      op->getResult(0).replaceAllUsesWith(op->getOperand(0));
    op->erase();
  }
}

} // namespace cleave
