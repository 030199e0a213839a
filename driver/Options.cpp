//===- Options.cpp - The command line of the driver -----------------------===//
#include "driver/Options.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/raw_ostream.h"

using namespace llvm;

namespace cleave {

/// What is the same for all programs.
static constexpr StringLiteral kUsageOfOptions =
    R"(PHASE is model, propagate, partition, comm, dispatch, memory or lower.

  --mesh NAME=SIZE,...   sizes of the axes of the model's mesh
  --target=cpu[:ISA,...] ISA is avx2, avx512, avx512bf16, amx, all or native;
                         default: avx2 and avx512, with products of bf16 all;
                         the best that the CPU has is taken at the start
  --machine=NAME|FILE    what the plan is for; default cpu-local
  --weights-map FILE     weights that the map finds in one tensor are one
  --json                 one JSON object on standard output
  --timeout SECONDS      deadline of each wait in check; default 60

Exit status: 0 done; 1 the input is wrong; 2 the command line is wrong; 3 a
check failed; 4 a rank failed or a deadline passed.
)";

std::string usage(StringRef ownModel) {
  bool own = !ownModel.empty();
  std::string program = own ? ownModel.str() : "cleave";
  std::string model = own ? "" : " MODEL";
  std::string text =
      "usage: " + program + " COMMAND" + model + " [options]\n\n";
  for (StringRef command :
       {"build  ^ -o OUT [--until=PHASE] [--emit=mlir|llvm|obj|exe|lib]",
        "check  ^ [--seed N] [--trials N]", "plan   ^",
        "explain^ [VALUE | --collectives]", "compare^ --mesh A --mesh B ..."}) {
    auto [name, rest] = command.split('^');
    std::string line = ("  " + program + " " + name + model + rest).str();
    text += StringRef(line).rtrim().str() + "\n";
  }
  text += "\n";
  if (!own)
    text += "MODEL is a .mlir file, or - for standard input.\n";
  return text + kUsageOfOptions.str();
}

static Error fail(const Twine &text) {
  return createStringError(inconvertibleErrorCode(), text);
}

std::string suggestion(StringRef name, ArrayRef<StringRef> known) {
  StringRef best;
  unsigned bestDistance = ~0u;
  for (StringRef candidate : known) {
    unsigned distance = name.edit_distance(candidate);
    if (distance < bestDistance) {
      bestDistance = distance;
      best = candidate;
    }
  }
  if (!best.empty() && bestDistance <= std::max<size_t>(2, name.size() / 3))
    return ("; closest is '" + best + "'").str();
  if (known.empty())
    return "; there are none";
  constexpr size_t kMost = 20;
  std::string text = "; known are " + join(known.take_front(kMost), ", ");
  if (known.size() > kMost)
    text += ", and " + std::to_string(known.size() - kMost) + " more";
  return text;
}

Expected<MeshSizes> parseMeshSizes(StringRef text) {
  MeshSizes sizes;
  SmallVector<StringRef> parts;
  text.split(parts, ',');
  for (StringRef part : parts) {
    auto [name, number] = part.split('=');
    int64_t size = 0;
    if (name.empty() || number.getAsInteger(10, size) || size < 1)
      return fail("--mesh takes name=size,... with sizes of at least 1, got '" +
                  text + "'");
    for (auto &[other, otherSize] : sizes)
      if (other == name)
        return fail("--mesh names axis '" + name + "' twice in '" + text + "'");
    sizes.push_back({name.str(), size});
  }
  return sizes;
}

namespace {

/// The one command that an option belongs to; the others belong to all.
std::optional<Command> commandOf(StringRef option) {
  return StringSwitch<std::optional<Command>>(option)
      .Cases({"-o", "--until", "--emit"}, Command::Build)
      .Cases({"--seed", "--trials", "--timeout"}, Command::Check)
      .Case("--collectives", Command::Explain)
      .Default(std::nullopt);
}

StringRef nameOf(Command command) {
  switch (command) {
  case Command::Build:
    return "build";
  case Command::Check:
    return "check";
  case Command::Plan:
    return "plan";
  case Command::Explain:
    return "explain";
  case Command::Compare:
    return "compare";
  }
  llvm_unreachable("all commands have names");
}

/// Walks over the arguments; an option's value follows `=` or a space.
class Parser {
public:
  Parser(ArrayRef<StringRef> args, StringRef ownModel) : args(args) {
    options.hasOwnModel = !ownModel.empty();
    options.model = ownModel.str();
  }
  Expected<Options> run();

private:
  Error parseCommand();
  Error parseOption(StringRef name, std::optional<StringRef> value);
  Error parsePositional(StringRef arg);
  Error checkComplete();
  Expected<StringRef> valueOf(StringRef name, std::optional<StringRef> value);
  template <typename T>
  Error parseNumber(StringRef name, std::optional<StringRef> value, T &to);
  Error parsePhase(StringRef text);

  ArrayRef<StringRef> args;
  Options options;
};

Expected<StringRef> Parser::valueOf(StringRef name,
                                    std::optional<StringRef> value) {
  if (value)
    return *value;
  if (args.empty())
    return fail("'" + name + "' needs a value");
  StringRef next = args.front();
  args = args.drop_front();
  return next;
}

template <typename T>
Error Parser::parseNumber(StringRef name, std::optional<StringRef> value,
                          T &to) {
  Expected<StringRef> text = valueOf(name, value);
  if (!text)
    return text.takeError();
  if (text->getAsInteger(10, to))
    return fail("'" + name + "' takes a whole number from 0 on, got '" + *text +
                "'");
  return Error::success();
}

Error Parser::parsePhase(StringRef text) {
  static constexpr StringRef kPhases[] = {"model",     "propagate", "stage",
                                          "partition", "comm",      "dispatch",
                                          "memory",    "lower"};
  for (auto [i, phase] : enumerate(kPhases))
    if (text == phase) {
      options.until = static_cast<PhaseName>(i);
      return Error::success();
    }
  return fail("unknown phase '" + text + "'" + suggestion(text, kPhases));
}

Error Parser::parseOption(StringRef name, std::optional<StringRef> value) {
  static constexpr StringRef kKnown[] = {
      "--mesh", "--target", "--machine",    "--json",    "--until",
      "--emit", "--seed",   "--trials",     "--timeout", "--collectives",
      "--help", "-o",       "--weights-map"};
  auto text = [&](std::string &to) -> Error {
    Expected<StringRef> got = valueOf(name, value);
    if (!got)
      return got.takeError();
    to = got->str();
    return Error::success();
  };
  auto flag = [&](bool &to) -> Error {
    if (value)
      return fail("'" + name + "' takes no value");
    to = true;
    return Error::success();
  };
  if (std::optional<Command> owner = commandOf(name);
      owner && *owner != options.command)
    return fail("'" + name + "' belongs to '" + nameOf(*owner) + "', not to '" +
                nameOf(options.command) + "'");
  if (name == "--mesh") {
    Expected<StringRef> got = valueOf(name, value);
    if (!got)
      return got.takeError();
    Expected<MeshSizes> sizes = parseMeshSizes(*got);
    if (!sizes)
      return sizes.takeError();
    options.meshes.push_back(*sizes);
    return Error::success();
  }
  if (name == "--target")
    return text(options.target);
  if (name == "--weights-map")
    return text(options.weightsMap);
  if (name == "--machine")
    return text(options.machine);
  if (name == "-o")
    return text(options.output);
  if (name == "--emit")
    return text(options.emit);
  if (name == "--json")
    return flag(options.json);
  if (name == "--collectives")
    return flag(options.collectives);
  if (name == "--help" || name == "-h")
    return flag(options.help);
  if (name == "--seed")
    return parseNumber(name, value, options.seed);
  if (name == "--trials")
    return parseNumber(name, value, options.trials);
  if (name == "--timeout")
    return parseNumber(name, value, options.timeoutSeconds);
  if (name == "--until") {
    std::string phase;
    if (Error error = text(phase))
      return error;
    return parsePhase(phase);
  }
  return fail("unknown option '" + name + "'" + suggestion(name, kKnown));
}

Error Parser::parseCommand() {
  if (args.empty())
    return fail("a command is missing; known are build, check, plan, explain, "
                "compare");
  StringRef name = args.front();
  if (name == "--help" || name == "-h")
    return Error::success();
  std::optional<Command> command = StringSwitch<std::optional<Command>>(name)
                                       .Case("build", Command::Build)
                                       .Case("check", Command::Check)
                                       .Case("plan", Command::Plan)
                                       .Case("explain", Command::Explain)
                                       .Case("compare", Command::Compare)
                                       .Default(std::nullopt);
  if (!command)
    return fail(
        "unknown command '" + name + "'" +
        suggestion(name, {"build", "check", "plan", "explain", "compare"}));
  options.command = *command;
  args = args.drop_front();
  return Error::success();
}

Error Parser::parsePositional(StringRef arg) {
  if (options.model.empty())
    options.model = arg.str();
  else if (options.command == Command::Explain && options.value.empty())
    options.value = arg.str();
  else
    return fail("unexpected argument '" + arg + "'; the model is '" +
                options.model + "'");
  return Error::success();
}

Error Parser::checkComplete() {
  if (options.help)
    return Error::success();
  if (options.model.empty())
    return fail("the model is missing");
  if (options.command == Command::Compare) {
    if (options.meshes.size() < 2)
      return fail("compare needs --mesh at least twice");
  } else if (options.meshes.size() > 1) {
    return fail("--mesh is given " + Twine(options.meshes.size()) +
                " times; only compare takes several");
  }
  if (options.trials == 0)
    return fail("--trials must be at least 1");
  if (options.timeoutSeconds == 0)
    return fail("--timeout must be at least 1 second");
  if (options.until == PhaseName::Stage)
    return fail("there is no phase 'stage' yet: models have one stage");
  static constexpr StringRef kEmit[] = {"mlir", "llvm", "obj", "exe", "lib"};
  if (!options.emit.empty() && !is_contained(kEmit, StringRef(options.emit)))
    return fail("--emit does not know '" + options.emit + "'" +
                suggestion(options.emit, kEmit));
  bool isText = options.emit.empty()
                    ? options.until.has_value()
                    : options.emit == "mlir" || options.emit == "llvm";
  if (options.until && (!isText || options.emit == "llvm"))
    return fail("--until prints a level as MLIR; leave it out for --emit=" +
                options.emit);
  if (options.command == Command::Build && !isText && options.output.empty())
    return fail("build needs -o OUT, or --until=PHASE to print a level");
  if (!StringRef(options.target).starts_with("cpu"))
    return fail("unknown target '" + options.target + "'; known is cpu[:ISA]");
  return Error::success();
}

Expected<Options> Parser::run() {
  if (Error error = parseCommand())
    return error;
  bool onlyPositional = false;
  while (!args.empty()) {
    StringRef arg = args.front();
    args = args.drop_front();
    if (arg == "--" && !onlyPositional) {
      onlyPositional = true;
      continue;
    }
    if (onlyPositional || !arg.starts_with("-") || arg == "-") {
      if (Error error = parsePositional(arg))
        return error;
      continue;
    }
    std::optional<StringRef> value;
    if (size_t at = arg.find('='); at != StringRef::npos) {
      value = arg.substr(at + 1);
      arg = arg.take_front(at);
    }
    if (Error error = parseOption(arg, value))
      return error;
  }
  if (Error error = checkComplete())
    return error;
  return options;
}

} // namespace

Expected<Options> parseOptions(ArrayRef<StringRef> args, StringRef ownModel) {
  return Parser(args, ownModel).run();
}

} // namespace cleave
