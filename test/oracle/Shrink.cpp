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
  bool dropOps();
  bool dropEdges();
  bool dropHints();
  bool shrinkNumbers();

  MLIRContext *context;
  std::string best;
  std::function<bool(StringRef)> stillFails;
  std::chrono::steady_clock::time_point end;
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
  dropDead(*module);
  ScopedDiagnosticHandler silent(context, [](Diagnostic &) {});
  if (failed(verify(*module)))
    return false;
  std::string text;
  llvm::raw_string_ostream os(text);
  module->print(os);
  return tryText(text);
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
    function.setType(b.getFunctionType(block.getArgumentTypes(),
                                       function.getResultTypes()));
    return argument;
  }
  auto attr = DenseElementsAttr::get(type, b.getOneAttr(type.getElementType()));
  return arith::ConstantOp::create(b, op->getLoc(), type, attr);
}

bool Shrinker::dropOps() {
  OwningOpRef<ModuleOp> module = parse(best);
  if (!module)
    return false;
  size_t count = 0;
  while (nthOp(*module, count))
    ++count;
  bool any = false;
  for (size_t i = count; i-- > 0;) {
    any |= tryStep([&](ModuleOp copy) {
      Operation *op = nthOp(copy, i);
      if (!op || (isa<arith::ConstantOp>(op) && !isa<GroupOp>(op)))
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
    });
  }
  return any;
}

static func::FuncOp entryOf(ModuleOp module) {
  for (auto function : module.getOps<func::FuncOp>())
    if (function.isPublic())
      return function;
  return {};
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

/// Shardings and other attributes of the dialect, one by one.
bool Shrinker::dropHints() {
  bool any = false;
  static const StringLiteral names[] = {kShardingAttr, kWeightAttr, kStateAttr};
  for (StringRef name : names)
    for (unsigned i = 0; i < 24; ++i) {
      any |= tryStep([&](ModuleOp copy) {
        func::FuncOp entry = entryOf(copy);
        if (!entry || i >= entry.getNumArguments())
          return false;
        return entry.removeArgAttr(i, name) != nullptr;
      });
      any |= i < 8 && tryStep([&](ModuleOp copy) {
        func::FuncOp entry = entryOf(copy);
        if (!entry || i >= entry.getNumResults())
          return false;
        return entry.removeResultAttr(i, name) != nullptr;
      });
    }
  OwningOpRef<ModuleOp> module = parse(best);
  for (size_t i = 0; module && nthOp(*module, i); ++i)
    any |= tryStep([&](ModuleOp copy) {
      Operation *op = nthOp(copy, i);
      return op && op->removeDiscardableAttr(kShardingAttr) != nullptr;
    });
  return any;
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
      StringRef digits = StringRef(best).drop_front(i).take_while(llvm::isDigit);
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
  bool any = true;
  while (any && !outOfTime()) {
    any = dropOps();
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
