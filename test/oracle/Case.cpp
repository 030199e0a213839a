//===- Case.cpp - One program, compared -----------------------------------===//
#include "test/oracle/Case.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"
#include "test/oracle/Generator.h"
#include "test/oracle/Interpreter.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace mlir;

namespace cleave::oracle {

llvm::StringRef outcomeName(Outcome outcome) {
  static constexpr llvm::StringLiteral names[] = {
      "same",    "rejected", "silent", "unverified", "faulty",
      "differs", "crash",    "hang",   "undefined"};
  return names[static_cast<unsigned>(outcome)];
}

namespace {
/// Collects errors instead of printing them.
class Diagnostics {
public:
  explicit Diagnostics(MLIRContext *context)
      : handler(context, [this](Diagnostic &diagnostic) {
          if (diagnostic.getSeverity() != DiagnosticSeverity::Error)
            return success();
          if (!text.empty())
            text += "; ";
          text += diagnostic.str();
          return success();
        }) {}
  std::string text;

private:
  ScopedDiagnosticHandler handler;
};
} // namespace

static Report failWith(Outcome outcome, llvm::Error error) {
  return {outcome, llvm::toString(std::move(error))};
}

/// The first public function with a body: what is run.
static func::FuncOp entryOf(ModuleOp module) {
  for (auto function : module.getOps<func::FuncOp>())
    if (function.isPublic() && !function.isDeclaration())
      return function;
  return {};
}

/// Compares results pairwise; empty if all agree.
static std::string compareAll(llvm::ArrayRef<Tensor> expected,
                              llvm::ArrayRef<Tensor> actual, double tolerance) {
  if (expected.size() != actual.size())
    return "there are " + std::to_string(expected.size()) +
           " results, but the partitioned program has " +
           std::to_string(actual.size());
  for (auto [i, pair] : llvm::enumerate(llvm::zip(expected, actual))) {
    std::string text = compare(std::get<0>(pair), std::get<1>(pair), tolerance);
    if (!text.empty())
      return "res" + std::to_string(i) + ": " + text;
  }
  return "";
}

/// Whether the model's own result depends on what it must not depend on.
static Report blame(ModuleOp model, llvm::StringRef name,
                    llvm::ArrayRef<Tensor> inputs,
                    llvm::ArrayRef<Tensor> expected, Report report) {
  // One draw of poison may equal another: both NaN, or both 0.
  for (uint64_t poison = 99; poison < 115; ++poison) {
    auto again = Interpreter(model, poison).run(name, inputs);
    if (!again)
      return failWith(Outcome::Undefined, again.takeError());
    std::string difference = compareAll(expected, *again, 0);
    if (!difference.empty())
      return {Outcome::Undefined, difference};
  }
  return report;
}

Report runCase(MLIRContext *context, llvm::StringRef text,
               const CaseOptions &options) {
  Diagnostics diagnostics(context);
  ParserConfig config(context);
  OwningOpRef<ModuleOp> model = parseSourceString<ModuleOp>(text, config);
  func::FuncOp entry = model ? entryOf(*model) : func::FuncOp();
  if (!entry)
    return {Outcome::Rejected, diagnostics.text};
  std::string name = entry.getName().str();
  std::vector<Tensor> inputs =
      randomInputs(entry, options.seed, options.floats);
  auto expected = Interpreter(*model, 7).run(name, inputs);
  if (!expected)
    return failWith(Outcome::Undefined, expected.takeError());
  if (!options.cleave.empty()) {
    Report report = checkCase(text, options);
    return report.outcome == Outcome::Same
               ? report
               : blame(*model, name, inputs, *expected, report);
  }
  OwningOpRef<ModuleOp> local(model->clone());
  if (failed(options.partition(*local)))
    return diagnostics.text.empty()
               ? Report{Outcome::Silent, "failed without a diagnostic"}
               : Report{Outcome::Rejected, diagnostics.text};
  if (failed(verify(*local)))
    return {Outcome::Unverified, diagnostics.text};
  auto actual = Interpreter(*local, 1234).runPartitioned(name, inputs);
  if (!actual)
    return blame(*model, name, inputs, *expected,
                 failWith(Outcome::Faulty, actual.takeError()));
  std::string difference =
      compareAll(*expected, *actual, options.floats ? kTolerance : 0);
  if (difference.empty())
    return {};
  return blame(*model, name, inputs, *expected, {Outcome::Differs, difference});
}

Report runMutant(MLIRContext *context, llvm::StringRef text,
                 const CaseOptions &options) {
  Diagnostics diagnostics(context);
  auto rejected = [&]() -> Report {
    if (diagnostics.text.empty())
      return {Outcome::Silent, "failed without a diagnostic"};
    return {};
  };
  ParserConfig config(context);
  OwningOpRef<ModuleOp> model = parseSourceString<ModuleOp>(text, config);
  if (!model || failed(options.partition(*model)))
    return rejected();
  if (failed(verify(*model)))
    return {Outcome::Unverified, diagnostics.text};
  return {};
}

//===----------------------------------------------------------------------===//
// Running the compiled program
//===----------------------------------------------------------------------===//

/// The last lines of a file, on one line.
static std::string tailOf(llvm::StringRef path) {
  auto buffer = llvm::MemoryBuffer::getFile(path);
  std::string text = buffer ? (*buffer)->getBuffer().str() : "";
  text = text.size() > 600 ? text.substr(text.size() - 600) : text;
  llvm::replace(text, '\n', ' ');
  return text;
}

Report checkCase(llvm::StringRef text, const CaseOptions &options) {
  std::string stem =
      options.directory + "/oracle-" + std::to_string(::getpid());
  std::string model = stem + ".mlir", log = stem + ".log";
  std::error_code error;
  {
    llvm::raw_fd_ostream os(model, error);
    os << text;
  }
  if (error)
    return {Outcome::Silent, "cannot write " + model};
  std::string seed = std::to_string(options.seed);
  pid_t child = ::fork();
  if (child == 0) {
    int out = ::open(log.c_str(), O_CREAT | O_TRUNC | O_WRONLY, 0644);
    ::dup2(out, 1);
    ::dup2(out, 2);
    ::execl(options.cleave.c_str(), options.cleave.c_str(), "check",
            model.c_str(), "--seed", seed.c_str(), "--trials", "1", nullptr);
    ::_exit(127);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  Report report;
  if (WIFSIGNALED(status))
    report = {Outcome::Crash, "signal " + std::to_string(WTERMSIG(status))};
  else if (WEXITSTATUS(status) == 1)
    report = {Outcome::Rejected, tailOf(log)};
  else if (WEXITSTATUS(status) == 3)
    report = {Outcome::Differs, tailOf(log)};
  else if (WEXITSTATUS(status) != 0)
    report = {Outcome::Faulty, "exit status " +
                                   std::to_string(WEXITSTATUS(status)) + ": " +
                                   tailOf(log)};
  llvm::sys::fs::remove(model);
  llvm::sys::fs::remove(log);
  return report;
}

} // namespace cleave::oracle
