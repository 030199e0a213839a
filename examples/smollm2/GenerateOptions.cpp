//===- GenerateOptions.cpp - The command line of generate -----------------===//
#include "GenerateOptions.h"
#include <charconv>
#include <cstdio>
#include <functional>
#include <map>

using namespace llama;

static constexpr const char *kUsage =
    R"(usage: generate FOLDER [options]         goes on with a prompt
       generate FOLDER [options] -- COMMAND  the compiler's own command line:
                                         plan, explain, build -o OUT, ...

FOLDER holds config.json, tokenizer.json and the weights.
  --prompt TEXT          what to go on with
  --chat                 the prompt is a question in a conversation
  --tokens N             at most this many (64)
  --temperature T        0: always the likeliest token (0)
  --top-p P              of the likeliest that together have P (1)
  --seed N               of the choice (0)
  --samples N            so many texts at a time (1)
  --mesh dp=N,tp=N       ranks: samples over dp; heads, perceptrons and the
                         vocabulary over tp
  --sequence-parallel    values between the matrices are cut over tp too
  --whole-head           the vocabulary is whole on every rank
  --type f32|bf16|f16    of matrices and cache (bf16)
  --context N            tokens that the cache has room for (512)
  --chunk N              tokens of the prompt that are read at once (64)
  --show-tokens          numbers instead of text
  --quiet                no figures
)";

namespace {
/// A number out of the whole of `text`.
template <typename T> bool read(const std::string &text, T *value) {
  const char *end = text.data() + text.size();
  auto [rest, error] = std::from_chars(text.data(), end, *value);
  return error == std::errc() && rest == end;
}

bool readCount(const std::string &text, int64_t *value) {
  return read(text, value) && *value >= 1;
}

bool readMesh(const std::string &text, Cut *cut) {
  for (size_t at = 0; at <= text.size();) {
    size_t end = std::min(text.find(',', at), text.size());
    std::string axis = text.substr(at, end - at);
    bool ok = axis.starts_with("dp=")   ? readCount(axis.substr(3), &cut->dp)
              : axis.starts_with("tp=") ? readCount(axis.substr(3), &cut->tp)
                                        : false;
    if (!ok)
      return false;
    at = end + 1;
  }
  return true;
}

bool readType(const std::string &text, cleave::Element *type) {
  *type = text == "f32"   ? cleave::f32
          : text == "f16" ? cleave::f16
                          : cleave::bf16;
  return text == "f32" || text == "bf16" || text == "f16";
}
} // namespace

/// An option's value: how it is read, and what is wanted.
struct ValueOption {
  std::function<bool(const std::string &)> read;
  const char *wanted;
};

static std::map<std::string, ValueOption> valueOptions(GenerateOptions *o) {
  auto count = [](int64_t *into) -> ValueOption {
    return {[=](const std::string &t) { return readCount(t, into); },
            "a positive integer"};
  };
  return {
      {"--prompt",
       {[=](const std::string &t) { return o->prompt = t, true; }, "a text"}},
      {"--tokens", count(&o->numTokens)},
      {"--samples", count(&o->sizes.samples)},
      {"--context", count(&o->sizes.context)},
      {"--chunk", count(&o->sizes.chunk)},
      {"--temperature",
       {[=](const std::string &t) {
          return read(t, &o->temperature) && o->temperature >= 0;
        },
        "a number that is not negative"}},
      {"--top-p",
       {[=](const std::string &t) {
          return read(t, &o->topP) && o->topP > 0 && o->topP <= 1;
        },
        "a number above 0, at most 1"}},
      {"--seed",
       {[=](const std::string &t) { return read(t, &o->seed); },
        "an integer that is not negative"}},
      {"--mesh",
       {[=](const std::string &t) { return readMesh(t, &o->cut); },
        "'dp=N', 'tp=N' or 'dp=N,tp=N'"}},
      {"--type",
       {[=](const std::string &t) { return readType(t, &o->sizes.type); },
        "f32, bf16 or f16"}},
  };
}

static int mistake(const std::string &text) {
  std::fprintf(stderr, "generate: %s\n", text.c_str());
  return 2;
}

std::optional<int> llama::parseOptions(int argc, char **argv,
                                       GenerateOptions *options) {
  std::map<std::string, ValueOption> values = valueOptions(options);
  std::map<std::string, bool *> flags = {
      {"--chat", &options->chat},
      {"--sequence-parallel", &options->cut.sequence},
      {"--whole-head", &options->cut.wholeHead},
      {"--show-tokens", &options->showTokens},
      {"--quiet", &options->quiet}};
  for (int i = 1; i < argc; ++i) {
    std::string word = argv[i];
    if (word == "--help") {
      std::fputs(kUsage, stdout);
      return 0;
    }
    if (word == "--") {
      options->compiler.assign(argv + i + 1, argv + argc);
      if (options->compiler.empty())
        return mistake("a command of the compiler is wanted behind '--', "
                       "such as 'plan'");
      break;
    }
    size_t equals = word.find('=');
    std::string name = word.starts_with("--") ? word.substr(0, equals) : word;
    if (auto flag = flags.find(word); flag != flags.end()) {
      *flag->second = true;
    } else if (auto value = values.find(name); value != values.end()) {
      bool inside = name != word;
      if (!inside && i + 1 == argc)
        return mistake(name + " wants " + value->second.wanted);
      std::string text = inside ? word.substr(equals + 1) : argv[++i];
      if (!value->second.read(text))
        return mistake(name + " is '" + text + "'; it wants " +
                       value->second.wanted);
    } else if (word.starts_with("--") || !options->folder.empty()) {
      return mistake("unknown option '" + word + "'; see generate --help");
    } else {
      options->folder = word;
    }
  }
  if (options->folder.empty()) {
    std::fputs(kUsage, stderr);
    return 2;
  }
  return std::nullopt;
}
