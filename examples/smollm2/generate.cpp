//===- generate.cpp - Goes on with a prompt on several ranks --------------===//
// Reads a Llama-family model as Hugging Face stores it, compiles it for a mesh,
// and prints the text as it comes, then what the cut cost.
//===----------------------------------------------------------------------===//
#include "GenerateOptions.h"
#include "Sampler.h"
#include "Session.h"
#include "Tokenizer.h"
#include <algorithm>
#include <chrono>
#include <cstdio>

using namespace llama;

namespace {
double now() {
  auto t = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration<double>(t).count();
}

int fail(const std::string &text) {
  bool isLocated = text.find("error: ") != std::string::npos;
  std::fprintf(stderr, "%s%s\n", isLocated ? "" : "error: ", text.c_str());
  return 1;
}

/// Prints bytes of UTF-8 when their character is complete.
class Printer {
public:
  void add(const std::string &bytes) {
    pending += bytes;
    size_t whole = pending.size();
    size_t back = 0; // bytes of the last, perhaps incomplete, character
    while (back < 4 && back < whole &&
           (pending[whole - 1 - back] & 0xC0) == 0x80)
      ++back;
    if (back < whole) {
      unsigned char lead = pending[whole - 1 - back];
      size_t length = lead >= 0xF0   ? 4
                      : lead >= 0xE0 ? 3
                      : lead >= 0xC0 ? 2
                                     : 1;
      if (lead >= 0xC0 && length > back + 1)
        whole -= back + 1;
    }
    flush(whole);
  }
  ~Printer() { flush(pending.size()); }

private:
  void flush(size_t count) {
    std::fwrite(pending.data(), 1, count, stdout);
    std::fflush(stdout);
    pending.erase(0, count);
  }
  std::string pending;
};

/// What the ranks did while a phase ran.
struct Figures {
  double seconds = 0;
  int64_t tokens = 0;
  double commShare = 0;     // of the rank that waits most
  int64_t sentPerToken = 0; // of the rank that sends most

  void take(const cleave::Program &program) {
    for (int64_t rank = 0; rank < program.ranks(); ++rank) {
      cleave::Usage usage = program.usage(rank);
      commShare = std::max(commShare,
                           usage.commSeconds / std::max(1e-9, usage.seconds));
      sentPerToken = std::max(sentPerToken,
                              usage.sentBytes / std::max<int64_t>(1, tokens));
    }
  }
  void print(const char *what) const {
    std::fprintf(stderr,
                 "%s: %ld tokens, %.1f a second; %.1f KB sent a token by a "
                 "rank, %.0f %% of its time in communication\n",
                 what, long(tokens), double(tokens) / std::max(1e-9, seconds),
                 double(sentPerToken) / 1e3, 100 * commShare);
  }
};

/// One text of the samples.
struct Sample {
  Sampler sampler;
  std::vector<int32_t> tokens = {};
  bool ended = false;
};

class Generation {
public:
  Generation(const GenerateOptions &options, const Config &config,
             const Tokenizer &tokenizer)
      : options(options), config(config), tokenizer(tokenizer) {
    for (int64_t i = 0; i < options.sizes.samples; ++i)
      samples.push_back(
          {Sampler(options.temperature, options.topP, options.seed + i)});
  }
  int run(const std::vector<int32_t> &prompt);

private:
  std::string grow(Session &session, Figures &decode);
  std::vector<int32_t> choose(const Session &session);
  void printRest() const;

  const GenerateOptions &options;
  const Config &config;
  const Tokenizer &tokenizer;
  std::vector<Sample> samples;
  Printer printer;
};
} // namespace

/// The next token of each sample; the first sample is printed as it comes.
std::vector<int32_t> Generation::choose(const Session &session) {
  std::vector<int32_t> row;
  for (size_t i = 0; i < samples.size(); ++i) {
    Sample &sample = samples[i];
    const float *logits = session.logits().data() + i * config.vocabulary;
    int32_t token = sample.sampler.choose(logits, config.vocabulary);
    sample.ended |=
        std::count(config.endTokens.begin(), config.endTokens.end(), token) > 0;
    row.push_back(token);
    if (sample.ended)
      continue;
    sample.tokens.push_back(token);
    if (i == 0)
      printer.add(options.showTokens ? std::to_string(token) + " "
                                     : tokenizer.decode(token));
  }
  return row;
}

std::string Generation::grow(Session &session, Figures &decode) {
  for (int64_t i = 0; i < options.numTokens; ++i) {
    std::vector<int32_t> row = choose(session);
    bool allEnded = std::all_of(samples.begin(), samples.end(),
                                [](const Sample &s) { return s.ended; });
    if (allEnded || i + 1 == options.numTokens)
      return "";
    if (session.length() == options.sizes.context) {
      std::fprintf(stderr, "\nthe context of %ld tokens is full\n",
                   long(options.sizes.context));
      return "";
    }
    double start = now();
    if (std::string wrong = session.decode(row); !wrong.empty())
      return wrong;
    decode.seconds += now() - start;
    decode.tokens += int64_t(row.size());
  }
  return "";
}

void Generation::printRest() const {
  for (size_t i = 1; i < samples.size(); ++i) {
    std::printf("\n-- sample %zu\n", i);
    for (int32_t token : samples[i].tokens)
      std::fputs((options.showTokens ? std::to_string(token) + " "
                                     : tokenizer.decode(token))
                     .c_str(),
                 stdout);
  }
  std::printf("\n");
  std::fflush(stdout);
}

int Generation::run(const std::vector<int32_t> &prompt) {
  double start = now();
  auto session =
      Session::open(options.folder, config, options.sizes, options.cut);
  if (!session)
    return fail(session.error());
  cleave::Program &program = session->program();
  Figures prefill, decode;
  prefill.tokens = int64_t(prompt.size()) * options.sizes.samples;
  program.measure();
  double loaded = now();
  if (std::string wrong = session->prefill(prompt); !wrong.empty())
    return fail(wrong);
  prefill.seconds = now() - loaded;
  prefill.take(program);
  program.measure();
  if (!options.quiet)
    std::fprintf(stderr, "ready after %.2f s on %ld ranks\n", loaded - start,
                 long(program.ranks()));
  if (!options.showTokens && !options.chat)
    printer.add(options.prompt);
  if (std::string wrong = grow(*session, decode); !wrong.empty())
    return fail(wrong);
  decode.take(program);
  printRest();
  if (!options.quiet) {
    prefill.print("prefill");
    decode.print("decode");
  }
  return 0;
}

/// The prompt as the model was taught to see it.
static cleave::Expected<std::vector<int32_t>>
tokensOf(const GenerateOptions &options, const Tokenizer &tokenizer) {
  std::string text = options.prompt;
  if (options.chat) {
    if (tokenizer.find("<|im_start|>") < 0 || tokenizer.find("<|im_end|>") < 0)
      return cleave::Expected<std::vector<int32_t>>::failure(
          "--chat needs the tokens <|im_start|> and <|im_end|>, which this "
          "model does not have");
    text = "<|im_start|>user\n" + text + "<|im_end|>\n<|im_start|>assistant\n";
  }
  return tokenizer.encode(text);
}

static int runCompiler(const GenerateOptions &options, const Config &config) {
  if (std::string wrong = checkSizes(config, options.sizes); !wrong.empty())
    return fail(wrong);
  std::string name = "generate";
  std::vector<char *> words = {name.data()};
  std::vector<std::string> text = options.compiler;
  for (std::string &word : text)
    words.push_back(word.data());
  return cleave::driver(int(words.size()), words.data(),
                        makeModel(config, options.sizes),
                        makePlan(config, options.cut));
}

int main(int argc, char **argv) {
  GenerateOptions options;
  if (std::optional<int> status = parseOptions(argc, argv, &options))
    return *status;
  std::vector<std::string> warnings;
  auto config = readConfig(options.folder + "/config.json", warnings);
  if (!config)
    return fail(config.error());
  for (const std::string &warning : warnings)
    std::fprintf(stderr, "warning: %s\n", warning.c_str());
  if (!options.compiler.empty())
    return runCompiler(options, *config);
  auto tokenizer = Tokenizer::load(options.folder + "/tokenizer.json");
  if (!tokenizer)
    return fail(tokenizer.error());
  auto prompt = tokensOf(options, *tokenizer);
  if (!prompt)
    return fail(prompt.error());
  return Generation(options, *config, *tokenizer).run(*prompt);
}
