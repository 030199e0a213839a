//===- Shrink.cpp - Smaller programs that fail alike ----------------------===//
// Greedy: each step is tried on a copy and kept if the copy verifies and still
// fails. Steps on ops work on the IR; sizes occur in types, slices and
// constants that must agree, so one size is replaced everywhere in the text.
//===----------------------------------------------------------------------===//
#include "test/oracle/Shrink.h"
#include "dialects/cleave/Cleave.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/OwningOpRef.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Parser/Parser.h"
#include "llvm/ADT/StringExtras.h"
#include <chrono>
#include <set>

using namespace mlir;

namespace cleave::oracle {

namespace {
class Shrinker {
public:
  Shrinker(MLIRContext *context, StringRef text,
           std::function<bool(StringRef)> stillFails, double seconds)
      : context(context), best(text), stillFails(std::move(stillFails)),
        end(std::chrono::steady_clock::now() +
            std::chrono::milliseconds(static_cast<int64_t>(1000 * seconds))) {}
  std::string run();

private:
  using Step = std::function<bool(ModuleOp)>; // false: nothing to do
  bool outOfTime() const { return std::chrono::steady_clock::now() > end; }
  OwningOpRef<ModuleOp> parse(StringRef text);
  bool tryText(const std::string &text);
  bool tryStep(const Step &step);
  using ChunkStep = std::function<bool(ModuleOp, size_t, size_t)>;
  bool tryChunks(size_t count, const ChunkStep &step);
  bool dropOps();
  bool cutShort();
  bool dropEdges();
  bool dropHints();
  bool shrinkNumbers();

  MLIRContext *context;
  std::string best;
  std::function<bool(StringRef)> stillFails;
  std::chrono::steady_clock::time_point end;
  bool dropsDead = true;
};
} // namespace

OwningOpRef<ModuleOp> Shrinker::parse(StringRef text) {
  ScopedDiagnosticHandler silent(context, [](Diagnostic &) {});
  ParserConfig config(context);
  return parseSourceString<ModuleOp>(text, config);
}

bool Shrinker::tryText(const std::string &text) {
  if (text == best || outOfTime() || !parse(text) || !stillFails(text))
    return false;
  best = text;
  return true;
}

/// Ops without a reader, inside out.
static void dropDead(ModuleOp module) {
  bool changed = true;
  while (changed) {
    changed = false;
    SmallVector<Operation *> dead;
    module.walk([&](Operation *op) {
      if (isOpTriviallyDead(op))
        dead.push_back(op);
    });
    for (Operation *op : dead)
      if (op->use_empty()) {
        op->erase();
        changed = true;
        break;
      }
    SmallVector<func::FuncOp> unused;
    for (auto function : module.getOps<func::FuncOp>())
      if (function.isPrivate() &&
          SymbolTable::symbolKnownUseEmpty(function, module))
        unused.push_back(function);
    for (func::FuncOp function : unused) {
      function.erase();
      changed = true;
    }
  }
}

bool Shrinker::tryStep(const Step &step) {
  if (outOfTime())
    return false;
  OwningOpRef<ModuleOp> module = parse(best);
  if (!module || !step(*module))
    return false;
  if (dropsDead)
    dropDead(*module);
  ScopedDiagnosticHandler silent(context, [](Diagnostic &) {});
  if (failed(verify(*module)))
    return false;
  std::string text;
  llvm::raw_string_ostream os(text);
  module->print(os);
  return tryText(text);
}

static func::FuncOp entryOf(ModuleOp module) {
  for (auto function : module.getOps<func::FuncOp>())
    if (function.isPublic())
      return function;
  return {};
}

/// The n-th op with results that is no body of a linalg op.
static Operation *nthOp(ModuleOp module, size_t n) {
  Operation *found = nullptr;
  module.walk<WalkOrder::PreOrder>([&](Operation *op) {
    bool counts = op->getNumResults() > 0 || isa<GroupOp>(op);
    if (counts && n-- == 0) {
      found = op;
      return WalkResult::interrupt();
    }
    bool enters = isa<ModuleOp, func::FuncOp, scf::ForOp>(op);
    return enters ? WalkResult::advance() : WalkResult::skip();
  });
  return found;
}

/// Something of this type that exists before `op`: an operand of it, else a
/// new argument of its function, if that is an entry, else a constant.
static Value substitute(Operation *op, Value result) {
  for (Value operand : op->getOperands())
    if (operand.getType() == result.getType())
      return operand;
  auto type = dyn_cast<RankedTensorType>(result.getType());
  OpBuilder b(op);
  if (!type)
    return {};
  auto function = op->getParentOfType<func::FuncOp>();
  if (function.isPublic()) {
    Block &block = function.getBody().front();
    Value argument = block.addArgument(type, op->getLoc());
    function.setType(
        b.getFunctionType(block.getArgumentTypes(), function.getResultTypes()));
    return argument;
  }
  auto attr = DenseElementsAttr::get(type, b.getOneAttr(type.getElementType()));
  return arith::ConstantOp::create(b, op->getLoc(), type, attr);
}

/// Units 0 to count - 1, tried in halves, quarters, ..., one by one, from the
/// last to the first. `step` changes the units [first, first + size).
bool Shrinker::tryChunks(size_t count, const ChunkStep &step) {
  bool any = false;
  for (size_t size = std::max<size_t>(1, count); size > 0; size /= 2)
    for (size_t first = (count + size - 1) / size * size; first > 0;) {
      first -= size;
      any |= tryStep([&](ModuleOp copy) { return step(copy, first, size); });
    }
  return any;
}

static size_t numOps(ModuleOp module) {
  size_t count = 0;
  while (nthOp(module, count))
    ++count;
  return count;
}

/// Replaces the results of an op and erases it; false if it cannot go.
static bool dropOp(Operation *op) {
  if (isa<arith::ConstantOp>(op) && !op->use_empty())
    return false;
  for (Value result : op->getResults()) {
    if (result.use_empty())
      continue;
    Value other = substitute(op, result);
    if (!other)
      return false;
    result.replaceAllUsesWith(other);
  }
  op->erase();
  return true;
}

bool Shrinker::dropOps() {
  OwningOpRef<ModuleOp> module = parse(best);
  if (!module)
    return false;
  return tryChunks(numOps(*module),
                   [](ModuleOp copy, size_t first, size_t size) {
                     SmallVector<Operation *> ops;
                     for (size_t i = first; i < first + size; ++i)
                       if (Operation *op = nthOp(copy, i))
                         ops.push_back(op);
                     bool any = false;
                     // Inner ones first: erasing a loop erases them.
                     for (Operation *op : llvm::reverse(ops))
                       any |= dropOp(op);
                     return any;
                   });
}

/// Ends the entry early: it returns one value computed on the way.
bool Shrinker::cutShort() {
  OwningOpRef<ModuleOp> module = parse(best);
  if (!module)
    return false;
  size_t count = numOps(*module);
  for (size_t i = 0; i < count; ++i) {
    bool done = tryStep([&](ModuleOp copy) {
      Operation *op = nthOp(copy, i);
      func::FuncOp entry = entryOf(copy);
      if (!op || op->getParentOp() != entry || op->getNumResults() == 0 ||
          !isa<RankedTensorType>(op->getResult(0).getType()))
        return false;
      Operation *terminator = entry.getBody().front().getTerminator();
      for (unsigned r = entry.getNumResults(); r-- > 0;)
        (void)entry.removeResultAttr(r, kShardingAttr);
      entry.setResAttrsAttr({});
      terminator->setOperands(op->getResult(0));
      entry.setType(FunctionType::get(context, entry.getArgumentTypes(),
                                      op->getResult(0).getType()));
      return true;
    });
    if (done)
      return true;
  }
  return false;
}

/// Results and unused arguments of the entry.
bool Shrinker::dropEdges() {
  bool any = false;
  for (unsigned i = 8; i-- > 0;)
    any |= tryStep([&](ModuleOp copy) {
      func::FuncOp entry = entryOf(copy);
      if (!entry || i >= entry.getNumResults() || entry.getNumResults() == 1)
        return false;
      entry.getBody().front().getTerminator()->eraseOperand(i);
      return succeeded(entry.eraseResult(i));
    });
  for (unsigned i = 24; i-- > 0;)
    any |= tryStep([&](ModuleOp copy) {
      func::FuncOp entry = entryOf(copy);
      if (!entry || i >= entry.getNumArguments() ||
          !entry.getArgument(i).use_empty())
        return false;
      return succeeded(entry.eraseArgument(i));
    });
  return any;
}

/// Removes a hint: those of arguments come first, then of results, of ops.
static bool dropHint(ModuleOp module, size_t i) {
  func::FuncOp entry = entryOf(module);
  static const StringLiteral names[] = {kShardingAttr, kWeightAttr, kStateAttr};
  size_t arguments = 3 * entry.getNumArguments();
  size_t results = 3 * entry.getNumResults();
  if (i < arguments)
    return entry.removeArgAttr(i / 3, names[i % 3]) != nullptr;
  i -= arguments;
  if (i < results)
    return entry.removeResultAttr(i / 3, names[i % 3]) != nullptr;
  Operation *op = nthOp(module, i - results);
  return op && op->removeDiscardableAttr(kShardingAttr) != nullptr;
}

bool Shrinker::dropHints() {
  OwningOpRef<ModuleOp> module = parse(best);
  func::FuncOp entry = module ? entryOf(*module) : func::FuncOp();
  if (!entry)
    return false;
  size_t count =
      3 * entry.getNumArguments() + 3 * entry.getNumResults() + numOps(*module);
  return tryChunks(count, [](ModuleOp copy, size_t first, size_t size) {
    bool any = false;
    for (size_t i = first; i < first + size; ++i)
      any |= dropHint(copy, i);
    return any;
  });
}

/// Places of numbers that stand for themselves: not in names like %12 or f32,
/// but after the x of a type.
static bool isNumberAt(StringRef text, size_t at) {
  if (!llvm::isDigit(text[at]))
    return false;
  if (at == 0)
    return true;
  char before = text[at - 1];
  if (before == 'x')
    return at >= 2 && llvm::isDigit(text[at - 2]);
  return !llvm::isAlnum(before) && before != '_' && before != '%' &&
         before != '#' && before != '.' && before != '@';
}

static std::string replaceNumber(StringRef text, StringRef from, StringRef to) {
  std::string result;
  for (size_t i = 0; i < text.size();) {
    size_t end = i + 1;
    if (isNumberAt(text, i)) {
      while (end < text.size() && llvm::isDigit(text[end]))
        ++end;
      StringRef number = text.slice(i, end);
      result += number == from ? to : number;
    } else {
      result += text[i];
    }
    i = end;
  }
  return result;
}

bool Shrinker::shrinkNumbers() {
  std::set<int64_t> numbers;
  for (size_t i = 0; i < best.size(); ++i)
    if (isNumberAt(best, i) && (i == 0 || !isNumberAt(best, i - 1))) {
      StringRef digits =
          StringRef(best).drop_front(i).take_while(llvm::isDigit);
      int64_t value;
      if (!digits.getAsInteger(10, value) && value > 1)
        numbers.insert(value);
    }
  bool any = false;
  for (int64_t number : llvm::reverse(numbers)) {
    for (int64_t to : {int64_t(1), number / 2, number - 1})
      if (to >= 1 && to < number &&
          tryText(replaceNumber(best, std::to_string(number),
                                std::to_string(to)))) {
        any = true;
        break;
      }
  }
  return any;
}

std::string Shrinker::run() {
  // Without what nobody reads, unless that is what fails.
  dropsDead = tryStep([](ModuleOp) { return true; });
  cutShort();
  bool any = true;
  while (any && !outOfTime()) {
    any = dropEdges();
    any |= dropOps();
    any |= dropEdges();
    any |= dropHints();
    any |= shrinkNumbers();
  }
  return best;
}

std::string shrink(MLIRContext *context, StringRef text,
                   std::function<bool(StringRef)> stillFails, double seconds) {
  return Shrinker(context, text, std::move(stillFails), seconds).run();
}

} // namespace cleave::oracle
