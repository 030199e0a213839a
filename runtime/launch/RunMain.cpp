//===- RunMain.cpp - What an executable does ------------------------------===//
#include "runtime/cpu/Isa.h"
#include "runtime/launch/Launch.h"

#include <csignal>
#include <cstdio>

namespace cleave::rt {

constexpr int kWrongCommandLine = 2;

static int fail(int exitStatus, const std::string &message) {
  if (!message.empty())
    std::fprintf(stderr, "error: %s\n", message.c_str());
  return exitStatus;
}

static int describe(const CleaveProgram &program) {
  std::printf("%s\n", program.manifest ? program.manifest : "{}");
  if (std::fflush(stdout) != 0)
    return fail(1, "cannot write the description to the standard output");
  return 0;
}

static Outcome launch(const CleaveProgram &program, const Mesh &mesh,
                      const Options &options) {
  switch (options.launch) {
  case Launch::mpi:
    return launchMpi(program, mesh, options);
  case Launch::env:
    return launchEnv(program, mesh, options);
  case Launch::local:
    break;
  }
  return launchLocal(program, mesh, options);
}

int runMain(int argc, const char *const *argv,
            const CleaveProgram *const *programs, int64_t numPrograms) {
  // A file that grows too large and a pipe without reader are errors, which we
  // report, not reasons to die.
  std::signal(SIGXFSZ, SIG_IGN);
  std::signal(SIGPIPE, SIG_IGN);
  Options options;
  Status status = parseOptions(argc, argv, &options);
  if (!status.ok())
    return fail(kWrongCommandLine, status.message());
  if (options.help) {
    std::printf("%s", helpText(argc > 0 ? argv[0] : "OUT").c_str());
    return 0;
  }
  if (options.describe && numPrograms > 0)
    return describe(*programs[0]);
  const CleaveProgram *program = nullptr;
  status = pickVariant(programs, numPrograms, &program);
  if (status.ok())
    status = Mesh::check(*program);
  if (!status.ok())
    return fail(1, status.message());
  Mesh mesh(*program);
  Outcome outcome = launch(*program, mesh, options);
  return fail(outcome.exitStatus, outcome.message);
}

} // namespace cleave::rt

extern "C" int cleave_main(int argc, char **argv,
                           const CleaveProgram *const *programs,
                           int64_t numPrograms) {
  return cleave::rt::runMain(argc, argv, programs, numPrograms);
}
