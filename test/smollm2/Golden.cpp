//===- Golden.cpp - A real model against an independent implementation ----===//
// usage: smollm2-golden MODEL_DIR GOLDEN.json dp=N,tp=N [sequence] [whole-head]
//
// Compiles the model in f32 for the mesh and compares, for each case of
// golden.json: the tokens of its text, logits at some places, and the tokens
// that greedy decoding goes on with. Exit status 77 if there is no model.
//===----------------------------------------------------------------------===//
#include "examples/smollm2/Sampler.h"
#include "examples/smollm2/Session.h"
#include "examples/smollm2/Tokenizer.h"
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <sys/stat.h>

using namespace llama;

/// Of logits, which reach from about -20 to 30.
static constexpr double kTolerance = 2e-3;
static constexpr int kSkipped = 77;

static int fail(const std::string &text) {
  std::printf("FAILED: %s\n", text.c_str());
  return 1;
}

/// The largest difference of the sampled logits after the prompt's first
/// tokens, or NaN after a message.
static double compareLogits(Session &session, const Json &wanted,
                            const std::vector<int32_t> &tokens) {
  auto count = wanted["position"].get<size_t>() + 1;
  std::string wrong = session.prefill({tokens.begin(), tokens.begin() + count});
  if (!wrong.empty()) {
    std::printf("%s\n", wrong.c_str());
    return NAN;
  }
  double most = 0;
  for (size_t i = 0; i < wanted["indices"].size(); ++i) {
    double logit = session.logits()[wanted["indices"][i].get<size_t>()];
    double difference = std::fabs(logit - wanted["values"][i].get<double>());
    most = difference <= most ? most : difference; // keeps NaN
  }
  return most;
}

/// The place of the first token that differs, or that count.
static size_t compareGreedy(Session &session,
                            const std::vector<int32_t> &wanted,
                            int64_t vocabulary) {
  Sampler greedy(0, 1, 0);
  for (size_t i = 0; i < wanted.size(); ++i) {
    int32_t token = greedy.choose(session.logits().data(), vocabulary);
    if (token != wanted[i] || !session.decode({token}).empty())
      return i;
  }
  return wanted.size();
}

static int compareCase(Session &session, const Tokenizer &tokenizer,
                       const Json &golden) {
  auto name = golden["name"].get<std::string>();
  auto tokens = golden["tokens"].get<std::vector<int32_t>>();
  if (tokenizer.encode(golden["text"].get<std::string>()) != tokens)
    return fail(name + ": the text has other tokens");
  double most = 0;
  for (const Json &logits : golden["logits"]) {
    double difference = compareLogits(session, logits, tokens);
    most = difference <= most ? most : difference;
  }
  auto greedy = golden["greedy"].get<std::vector<int32_t>>();
  size_t same = compareGreedy(session, greedy, tokenizer.size());
  std::printf("%-12s %3zu tokens, logits within %.1e, %zu of %zu tokens like "
              "the golden ones\n",
              name.c_str(), tokens.size(), most, same, greedy.size());
  return !(most < kTolerance) || same != greedy.size();
}

static bool parseCut(int argc, char **argv, Cut *cut) {
  if (std::sscanf(argv[3], "dp=%ld,tp=%ld", &cut->dp, &cut->tp) != 2)
    return false;
  for (int i = 4; i < argc; ++i) {
    cut->sequence |= !std::strcmp(argv[i], "sequence");
    cut->wholeHead |= !std::strcmp(argv[i], "whole-head");
  }
  return true;
}

int main(int argc, char **argv) {
  Cut cut;
  if (argc < 4 || !parseCut(argc, argv, &cut))
    return fail("usage: smollm2-golden MODEL_DIR GOLDEN.json dp=N,tp=N "
                "[sequence] [whole-head]");
  std::string folder = argv[1];
  struct stat info;
  if (stat((folder + "/model.safetensors").c_str(), &info) != 0) {
    std::printf("skipped: there is no model in %s\n", folder.c_str());
    return kSkipped;
  }
  std::vector<std::string> warnings;
  auto config = readConfig(folder + "/config.json", warnings);
  auto tokenizer = Tokenizer::load(folder + "/tokenizer.json");
  auto golden = readJson(argv[2]);
  if (!config || !tokenizer || !golden)
    return fail(config.error() + tokenizer.error() + golden.error());
  for (const std::string &warning : warnings)
    return fail(warning); // convert.py writes nothing that is not known
  // The longest case is read in several chunks, of which the last is not full.
  Sizes sizes{.samples = 1, .context = 384, .chunk = 64, .type = cleave::f32};
  auto session = Session::open(folder, *config, sizes, cut);
  if (!session)
    return fail(session.error());
  int failures = 0;
  for (const Json &one : (*golden)["cases"])
    failures += compareCase(*session, *tokenizer, one);
  return failures ? fail(std::to_string(failures) + " cases differ") : 0;
}
