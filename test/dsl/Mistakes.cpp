//===- Mistakes.cpp - What the DSL says of a mistake ----------------------===//
#include "test/dsl/Mistakes.h"

#include <regex>

namespace cleave {

/// Lines counted from `where`, without files and columns.
static std::string relative(const std::string &text, const Where &where) {
  static const std::regex kPlace("([^ \n]*\\.cpp):([0-9]+):[0-9]+: ");
  std::string result;
  size_t end = 0;
  for (std::sregex_iterator it(text.begin(), text.end(), kPlace), last;
       it != last; ++it) {
    result += text.substr(end, it->position() - end);
    int distance = std::stoi((*it)[2]) - static_cast<int>(where.line());
    result += (*it)[1] != where.file_name()
                  ? "model"
                  : (distance < 0 ? "" : "+") + std::to_string(distance);
    result += ": ";
    end = it->position() + it->length();
  }
  return result + text.substr(end);
}

void expectText(const std::string &errors, const std::string &expected,
                Where where) {
  std::string text = relative(errors, where);
  // Whoever changes messages can print them all.
  if (std::getenv("CLEAVE_PRINT_MISTAKES"))
    std::printf("@@%s:%u\n%s", where.file_name(), unsigned(where.line()),
                text.c_str());
  EXPECT_EQ(expected, text) << where.file_name() << ":" << where.line();
}

void expectMistake(const std::function<void(Entry &)> &make,
                   const std::string &expected, Where where) {
  Model model("test", where);
  Entry entry = model.entry("forward", {}, where);
  make(entry);
  expectText(model.errors(), expected, where);
}

static Tensor mlp(Scope m, Tensor x) {
  const Dim D("model", 8), F("ffn", 12);
  Tensor h = dot(x, m.weight("up", {D, F}), D);
  return dot(relu(h), m.weight("down", {F, D}), F);
}

static Tensor layer(Scope m, Tensor x) {
  Tensor n = rms_norm(m["norm"], x, Dim("model")).named("normed");
  return x + m.call("mlp", mlp, n);
}

void expectPlanMistake(const std::function<Plan()> &plan,
                       const std::string &expected, Where where) {
  Model model("test");
  Entry entry = model.entry("forward");
  Tensor x = entry.input("x", {Dim("batch", 4), Dim("model", 8)});
  entry.output("y", entry.repeat("layer", 2, layer, x));
  ASSERT_EQ(model.errors(), "");
  expectText(errors(model, plan()), expected, where);
}

} // namespace cleave
