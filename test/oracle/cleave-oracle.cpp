//===- cleave-oracle.cpp - Random programs, cut and uncut -----------------===//
// For each seed: draws a program, partitions it, evaluates both and compares.
// The last line of the output says how it went; the exit status is 0 only if
// nothing failed. Failures are written as .mlir files, made as small as they
// get, with the command line that shows them.
//===----------------------------------------------------------------------===//
#include "mlir/InitAllDialects.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "passes/Pipelines.h"
#include "passes/Registration.h"
#include "test/oracle/Generator.h"
#include "test/oracle/Shrink.h"
#include "test/oracle/Workers.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include <chrono>
#include <map>

using namespace mlir;
using namespace cleave::oracle;
namespace cl = llvm::cl;

enum class Mode { Interpret, Execute, Mutate, Print };

static cl::OptionCategory category("Options of cleave-oracle");

static cl::opt<uint64_t> seedOption("seed", cl::desc("First seed"), cl::init(1),
                                    cl::cat(category));
static cl::opt<uint64_t> countOption("count", cl::desc("Number of programs"),
                                     cl::init(300), cl::cat(category));
static cl::opt<int> jobsOption("jobs", cl::desc("Processes at a time"),
                               cl::init(2), cl::cat(category));
static cl::opt<Mode> modeOption(
    "mode", cl::desc("What is done with each program"),
    cl::init(Mode::Interpret),
    cl::values(clEnumValN(Mode::Interpret, "interpret",
                          "interpret it before and after partitioning"),
               clEnumValN(Mode::Execute, "execute", "run 'cleave check' on it"),
               clEnumValN(Mode::Mutate, "mutate",
                          "damage its text; only diagnostics may follow"),
               clEnumValN(Mode::Print, "print", "print it")),
    cl::cat(category));
static cl::opt<bool>
    floatsOption("floats",
                 cl::desc("Softmax, norms, exp: compare with a tolerance"),
                 cl::cat(category));
static cl::opt<bool> noPartials("no-partials",
                                cl::desc("Declare no value partial"),
                                cl::cat(category));
static cl::opt<bool> untilFailure("until-failure",
                                  cl::desc("Stop at the first failure"),
                                  cl::cat(category));
static cl::opt<int>
    maxFailures("max-failures",
                cl::desc("Shrink and write at most so many failures"),
                cl::init(5), cl::cat(category));
static cl::opt<int> maxOps("max-ops", cl::desc("Most ops of a program"),
                           cl::init(25), cl::cat(category));
static cl::opt<int> maxRanks("max-ranks", cl::desc("Most ranks of a mesh"),
                             cl::init(8), cl::cat(category));
static cl::opt<double> deadline("deadline", cl::desc("Seconds for one program"),
                                cl::init(20), cl::cat(category));
static cl::opt<double> shrinkSeconds("shrink-seconds",
                                     cl::desc("Seconds for making one failure "
                                              "small; 0: not at all"),
                                     cl::init(20), cl::cat(category));
static cl::opt<std::string> output("output", cl::desc("Folder for failures"),
                                   cl::init("."), cl::cat(category));
static cl::opt<std::string>
    fileOption("file", cl::desc("Compare this program instead of random ones"),
               cl::cat(category));
static cl::opt<std::string> pipelineOption(
    "pipeline",
    cl::desc("'naive', or a pass pipeline, instead of the compiler's own"),
    cl::cat(category));
static cl::opt<std::string>
    cleaveOption("cleave", cl::desc("The driver that --mode=execute runs"),
                 cl::cat(category));
static cl::opt<bool> verbose("verbose",
                             cl::desc("Show each failure and stderr"),
                             cl::cat(category));

static Partition makePartition() {
  if (pipelineOption == "naive")
    return partitionNaively;
  if (pipelineOption.empty())
    return cleave::partitionModule;
  return [](ModuleOp module) -> LogicalResult {
    PassManager pm(module.getContext());
    if (failed(parsePassPipeline(pipelineOption, pm)))
      return failure();
    return pm.run(module);
  };
}

namespace {
class Oracle {
public:
  explicit Oracle(MLIRContext *context) : context(context) {
    generator.floats = floatsOption;
    generator.partials = !noPartials;
    generator.maxOps = std::max<int>(generator.minOps, maxOps);
    generator.maxRanks = maxRanks;
    options.partition = makePartition();
    options.floats = floatsOption;
    if (modeOption == Mode::Execute)
      options.cleave = cleaveOption;
  }

  std::string textOf(uint64_t seed) const {
    OwningOpRef<ModuleOp> module = generateProgram(context, seed, generator);
    std::string text;
    llvm::raw_string_ostream os(text);
    module->print(os);
    return modeOption == Mode::Mutate ? mutate(text, seed) : text;
  }
  Report runText(StringRef text, uint64_t seed) const {
    CaseOptions mine = options;
    mine.seed = seed;
    return modeOption == Mode::Mutate ? runMutant(context, text, mine)
                                      : runCase(context, text, mine);
  }
  int run();
  int runFile();

private:
  bool note(uint64_t seed, const Report &report);
  void write(uint64_t seed, const Report &report);
  std::string commandFor(StringRef path, uint64_t seed) const;

  MLIRContext *context;
  GeneratorOptions generator;
  CaseOptions options;
  std::map<Outcome, uint64_t> counts;
  std::vector<std::pair<uint64_t, Report>> failures;
  uint64_t done = 0, upstreamCrashes = 0;
};
} // namespace

static StringRef modeName() {
  return modeOption == Mode::Mutate    ? "mutate"
         : modeOption == Mode::Execute ? "execute"
                                       : "interpret";
}

std::string Oracle::commandFor(StringRef path, uint64_t seed) const {
  std::string command = "cleave-oracle --file " + path.str() + " --seed " +
                        std::to_string(seed) + " --mode=" + modeName().str();
  if (floatsOption)
    command += " --floats";
  if (!pipelineOption.empty())
    command += " --pipeline='" + pipelineOption + "'";
  return command;
}

/// A message without quoted names and numbers: what stays when a program
/// shrinks.
static std::string kindOf(StringRef message) {
  std::string kind;
  bool quoted = false;
  for (char c : message.take_front(400)) {
    if (c == '\'' || c == '"')
      quoted = !quoted;
    else if (!quoted && !llvm::isDigit(c))
      kind += c;
  }
  return kind.substr(0, 40);
}

/// Writes a failure, after shrinking it.
void Oracle::write(uint64_t seed, const Report &report) {
  std::string text = textOf(seed);
  Report last = report;
  auto failsAlike = [&](StringRef candidate) {
    Report now = runIsolated([&] { return runText(candidate, seed); },
                             std::min<double>(deadline, 5));
    bool alike = now.outcome == report.outcome &&
                 (now.outcome != Outcome::Rejected ||
                  kindOf(now.detail) == kindOf(report.detail));
    if (alike)
      last = now;
    return alike;
  };
  if (modeOption != Mode::Mutate && shrinkSeconds > 0)
    text = shrink(context, text, failsAlike, shrinkSeconds);
  SmallString<128> path(output);
  llvm::sys::fs::create_directories(path);
  llvm::sys::path::append(path, "oracle-" + std::to_string(seed) + ".mlir");
  std::error_code error;
  llvm::raw_fd_ostream os(path, error);
  if (!error)
    os << "// " << commandFor(path, seed) << "\n// seed " << seed << ": "
       << outcomeName(last.outcome) << ": " << last.detail << '\n'
       << text;
  llvm::outs() << "  written to " << path << "; show it with\n    "
               << commandFor(path, seed) << '\n'
               << "  " << outcomeName(last.outcome) << ": " << last.detail
               << '\n';
  llvm::outs().flush();
}

/// Whether MLIR alone crashes on this text: its ops, without our dialects and
/// without the lines of our ops. Such crashes are counted apart.
static bool crashesUpstream(StringRef text) {
  std::string rest;
  SmallVector<StringRef> lines;
  text.split(lines, '\n');
  for (StringRef line : lines)
    if (!line.contains("cleave.mesh") && !line.contains("cleave.constraint") &&
        !line.contains("cleave.barrier") && !line.contains("cleave.group"))
      rest += line.str() + "\n";
  auto parseAlone = [&]() -> Report {
    DialectRegistry registry;
    registerAllDialects(registry);
    MLIRContext alone(registry, MLIRContext::Threading::DISABLED);
    alone.allowUnregisteredDialects();
    ScopedDiagnosticHandler silent(&alone, [](Diagnostic &) {});
    ParserConfig config(&alone);
    (void)parseSourceString<ModuleOp>(rest, config);
    return {};
  };
  return runIsolated(parseAlone, 20).outcome == Outcome::Crash;
}

bool Oracle::note(uint64_t seed, const Report &report) {
  if (modeOption == Mode::Mutate && report.outcome == Outcome::Crash &&
      crashesUpstream(textOf(seed))) {
    ++upstreamCrashes;
    ++done;
    return true;
  }
  ++counts[report.outcome];
  if (++done % 1000 == 0) {
    llvm::outs() << done << " of " << countOption << '\n';
    llvm::outs().flush();
  }
  if (report.outcome == Outcome::Same)
    return true;
  failures.push_back({seed, report});
  if (verbose || failures.size() <= static_cast<size_t>(maxFailures)) {
    llvm::outs() << "seed " << seed << ": " << outcomeName(report.outcome)
                 << ": " << report.detail << '\n';
    llvm::outs().flush();
  }
  return !untilFailure;
}

int Oracle::run() {
  llvm::outs() << "cleave-oracle --mode=" << modeName() << " --seed "
               << seedOption << " --count " << countOption << '\n';
  llvm::outs().flush();
  auto begin = std::chrono::steady_clock::now();
  WorkerOptions workers;
  workers.firstSeed = seedOption;
  workers.count = countOption;
  workers.jobs = std::max<int>(1, jobsOption);
  workers.deadlineSeconds = deadline;
  workers.showStderr = verbose;
  runSeeds(
      workers, [&](uint64_t seed) { return runText(textOf(seed), seed); },
      [&](uint64_t seed, const Report &report) { return note(seed, report); });
  double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin)
          .count();
  for (auto [i, failure] : llvm::enumerate(failures)) {
    if (i >= static_cast<size_t>(maxFailures))
      break;
    write(failure.first, failure.second);
  }
  std::string summary;
  llvm::raw_string_ostream os(summary);
  for (auto [outcome, count] : counts)
    os << ", " << count << ' ' << outcomeName(outcome);
  if (upstreamCrashes > 0)
    os << ", " << upstreamCrashes << " crashes of MLIR's own parser";
  llvm::outs() << (failures.empty() ? "ok: " : "FAILED: ") << done
               << " programs from seed " << seedOption << summary << " ("
               << llvm::format("%.1f", seconds) << " s, "
               << llvm::format("%.0f", done / seconds) << " a second)\n";
  return failures.empty() ? 0 : 3;
}

int Oracle::runFile() {
  auto buffer = llvm::MemoryBuffer::getFileOrSTDIN(fileOption);
  if (!buffer) {
    llvm::errs() << "error: cannot read '" << fileOption << "'\n";
    return 1;
  }
  StringRef text = (*buffer)->getBuffer();
  Report report =
      runIsolated([&] { return runText(text, seedOption); }, deadline);
  llvm::outs() << fileOption << ": " << outcomeName(report.outcome)
               << (report.detail.empty() ? "" : ": ") << report.detail << '\n';
  return report.outcome == Outcome::Same ? 0 : 3;
}

int main(int argc, char **argv) {
  DialectRegistry registry;
  cleave::registerEverything(registry);
  cl::HideUnrelatedOptions(category);
  cl::ParseCommandLineOptions(argc, argv, "Cleave partition oracle\n");
  MLIRContext context(registry, MLIRContext::Threading::DISABLED);
  context.printOpOnDiagnostic(false);
  DialectRegistry used;
  registerOracleDialects(used);
  context.appendDialectRegistry(used);
  context.loadAllAvailableDialects();
  if (modeOption == Mode::Execute && cleaveOption.empty()) {
    SmallString<128> path(llvm::sys::fs::getMainExecutable(
        argv[0], reinterpret_cast<void *>(&main)));
    llvm::sys::path::remove_filename(path);
    llvm::sys::path::append(path, "cleave");
    cleaveOption = std::string(path);
  }
  Oracle oracle(&context);
  if (modeOption == Mode::Print) {
    for (uint64_t i = 0; i < countOption; ++i)
      llvm::outs() << oracle.textOf(seedOption + i) << '\n';
    return 0;
  }
  return fileOption.empty() ? oracle.run() : oracle.runFile();
}
