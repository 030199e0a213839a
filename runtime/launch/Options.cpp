//===- Options.cpp - The command line of an executable --------------------===//
#include "runtime/launch/Options.h"
#include "runtime/support/Names.h"

#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <functional>

namespace cleave::rt {

namespace {

/// One option. `take` reads its value; flags have none.
struct Option {
  std::string name;
  bool hasValue;
  std::function<Status(const std::string &)> take;
};

} // namespace

static Status takeNamed(const std::string &option, const std::string &value,
                        std::vector<NamedFile> *files) {
  size_t equals = value.find('=');
  if (equals == std::string::npos || equals == 0 || equals + 1 == value.size())
    return invalidArgument(option, " '", value, "' is not NAME=FILE");
  NamedFile file{value.substr(0, equals), value.substr(equals + 1)};
  for (const NamedFile &other : *files)
    if (other.name == file.name)
      return invalidArgument(option, " '", file.name, "' is given twice");
  files->push_back(file);
  return Status();
}

static Status takeLaunch(const std::string &value, Launch *launch) {
  if (value == "local")
    *launch = Launch::local;
  else if (value == "mpi")
    *launch = Launch::mpi;
  else if (value == "env")
    *launch = Launch::env;
  else
    return invalidArgument("--launch '", value,
                           "' is not one of 'local', 'mpi', 'env'");
  return Status();
}

static Status takeSeconds(const std::string &value, double *seconds) {
  char *end;
  errno = 0;
  *seconds = std::strtod(value.c_str(), &end);
  if (value.empty() || *end || errno || !(*seconds > 0) ||
      !std::isfinite(*seconds))
    return invalidArgument("--timeout '", value,
                           "' is not a positive number of seconds");
  return Status();
}

static Status takeCount(const std::string &value, int64_t *count) {
  char *end;
  errno = 0;
  *count = std::strtoll(value.c_str(), &end, 10);
  if (value.empty() || *end || errno || *count < 1)
    return invalidArgument("--repeat '", value,
                           "' is not a positive whole number");
  return Status();
}

static std::vector<Option> optionTable(Options *o) {
  auto named = [](const char *name, std::vector<NamedFile> *files) {
    return Option{name, true, [=](const std::string &value) {
                    return takeNamed(name, value, files);
                  }};
  };
  auto text = [](const char *name, std::string *target) {
    return Option{name, true, [=](const std::string &value) {
                    *target = value;
                    return Status();
                  }};
  };
  auto flag = [](const char *name, bool *target) {
    return Option{name, false, [=](const std::string &) {
                    *target = true;
                    return Status();
                  }};
  };
  using Text = const std::string &;
  return {
      text("--entry", &o->entry),
      named("--input", &o->inputs),
      named("--output", &o->outputs),
      named("--state", &o->states),
      named("--save-state", &o->savedStates),
      {"--weights", true,
       [=](Text v) {
         o->weights.paths.push_back(v);
         return Status();
       }},
      text("--weights-map", &o->weights.mapPath),
      flag("--weights-strict", &o->weights.strict),
      text("--pack", &o->packFolder),
      text("--packed", &o->packedFolder),
      {"--launch", true, [=](Text v) { return takeLaunch(v, &o->launch); }},
      {"--timeout", true,
       [=](Text v) { return takeSeconds(v, &o->timeoutSeconds); }},
      text("--trace", &o->traceFile),
      text("--memory-json", &o->memoryFile),
      {"--repeat", true, [=](Text v) { return takeCount(v, &o->repeat); }},
      flag("--describe", &o->describe),
      flag("--help", &o->help),
      flag("--verbose", &o->verbose),
  };
}

static Status unknownOption(const std::string &name,
                            const std::vector<Option> &table) {
  std::vector<std::string> names;
  for (const Option &option : table)
    names.push_back(option.name);
  return invalidArgument("unknown option '", name, "'; known are ",
                         closestFirst(name, names));
}

/// Options that mean nothing together.
static Status checkTogether(const Options &o) {
  bool reads = !o.weights.paths.empty();
  if (!o.packedFolder.empty() && reads)
    return invalidArgument("'--packed' takes the place of '--weights'; give "
                           "one of them");
  if (!reads && (!o.weights.mapPath.empty() || o.weights.strict))
    return invalidArgument(
        "'", o.weights.strict ? "--weights-strict" : "--weights-map",
        "' needs '--weights'");
  if (o.packFolder.empty())
    return Status();
  struct Given {
    const char *name;
    bool is;
  };
  const Given others[] = {{"--packed", !o.packedFolder.empty()},
                          {"--entry", !o.entry.empty()},
                          {"--input", !o.inputs.empty()},
                          {"--output", !o.outputs.empty()},
                          {"--state", !o.states.empty()},
                          {"--save-state", !o.savedStates.empty()},
                          {"--memory-json", !o.memoryFile.empty()}};
  for (const Given &other : others)
    if (other.is)
      return invalidArgument("'--pack' writes the weights and calls nothing; "
                             "leave out '",
                             other.name, "'");
  return Status();
}

Status parseOptions(int argc, const char *const *argv, Options *options) {
  std::vector<Option> table = optionTable(options);
  for (int i = 1; i < argc; ++i) {
    std::string argument = argv[i], name = argument, value;
    if (argument.compare(0, 2, "--") != 0)
      return invalidArgument("'", argument, "' is not an option; see --help");
    size_t equals = argument.find('=');
    bool attached = equals != std::string::npos;
    if (attached) { // --launch=mpi
      name = argument.substr(0, equals);
      value = argument.substr(equals + 1);
    }
    const Option *option = nullptr;
    for (const Option &known : table)
      if (known.name == name)
        option = &known;
    if (!option)
      return unknownOption(name, table);
    if (!option->hasValue && attached)
      return invalidArgument("'", name, "' takes no value");
    if (option->hasValue && !attached) {
      if (i + 1 == argc)
        return invalidArgument("'", name, "' needs a value");
      value = argv[++i];
    }
    CLEAVE_RETURN_IF_ERROR(option->take(value));
  }
  return options->help || options->describe ? Status()
                                            : checkTogether(*options);
}

std::string helpText(const std::string &program) {
  return "usage: " + program +
         " [--entry E] --input NAME=FILE.npy ... --output NAME=FILE.npy ...\n"
         "  --entry E              function to run; needed when there are "
         "several\n"
         "  --input NAME=FILE.npy  a global array; each rank reads its part\n"
         "  --output NAME[:f32]=FILE.npy\n"
         "                         where to write a result (f16 may become "
         "f32)\n"
         "  --weights FILE.safetensors|INDEX.json|FOLDER\n"
         "                         may be given several times\n"
         "  --weights-map FILE.json\n"
         "                         what the weights are called and how they "
         "lie\n"
         "                         in the files\n"
         "  --weights-strict       tensors that are not used are an error\n"
         "  --pack FOLDER          write the weights as this program wants "
         "them, a\n"
         "                         file for each rank, and end\n"
         "  --packed FOLDER        map what --pack has written; instead of\n"
         "                         --weights\n"
         "  --state NAME=FILE.npy  initial value; zero without it\n"
         "  --save-state NAME=FILE.npy\n"
         "                         where to write the value after the last "
         "call\n"
         "  --repeat N             call N times, keeping the state\n"
         "  --launch=local|mpi|env start the ranks here (default), or be one "
         "of\n"
         "                         mpirun's, or one by torchrun's, Slurm's, "
         "OpenMPI's\n"
         "                         or PMI's variables\n"
         "  --timeout SECONDS      how long a rank waits for another "
         "(default 30)\n"
         "  --trace FILE.json      write a Chrome trace, one row per rank\n"
         "  --memory-json FILE.json\n"
         "                         write planned and used memory per rank\n"
         "  --describe             print entries, mesh and ranks as JSON\n"
         "  --verbose              print times and bytes read to stderr\n";
}

} // namespace cleave::rt
