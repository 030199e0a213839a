//===- program.h - From a model and a plan to a program --------*- C++ -*-===//
#ifndef CLEAVE_PROGRAM_H
#define CLEAVE_PROGRAM_H

#include "cleave/model.h"
#include "cleave/plan.h"

#include <memory>
#include <string>
#include <vector>

namespace cleave {
inline namespace lang {

/// Either a T or what is wrong.
template <typename T> class Expected {
public:
  Expected(T value) : held(std::move(value)) {}
  static Expected failure(std::string text) {
    Expected result;
    result.text = std::move(text);
    return result;
  }
  explicit operator bool() const { return held.has_value(); }
  T &operator*() { return *held; }
  T *operator->() { return &*held; }
  /// All messages, one a line; empty if there is a value.
  const std::string &error() const { return text; }

private:
  Expected() = default;
  std::optional<T> held;
  std::string text;
};

/// A whole array in the caller's memory, row-major. bf16 and f16 may also be
/// given and taken as f32.
struct Array {
  std::string name;
  Element type = f32;
  std::vector<int64_t> shape;
  void *data = nullptr;

  static Array of(std::string name, std::vector<int64_t> shape, float *data) {
    return {std::move(name), f32, std::move(shape), data};
  }
  static Array of(std::string name, std::vector<int64_t> shape, int32_t *data) {
    return {std::move(name), i32, std::move(shape), data};
  }
};

/// Checkpoints in safetensors: what --weights, --weights-map, --weights-strict
/// and --packed say on the command line.
struct WeightFiles {
  /// Files, index files of sharded checkpoints, or folders that hold either.
  std::vector<std::string> paths;
  /// A JSON file that says where each weight is; see
  /// docs/howto/load-weights.md.
  std::string map = "";
  /// A folder of packs, instead of paths.
  std::string packed = "";
  /// Whether tensors that no weight takes are mistakes.
  bool strict = false;
};

/// What a rank did since `measure`.
struct Usage {
  double seconds = 0;     // in entries
  double commSeconds = 0; // of these in communications, waiting included
  int64_t sentBytes = 0;  // as `plan` counts them
  int64_t numComms = 0;
};

/// A compiled model with its ranks, which run as threads of this process.
class Program {
public:
  /// Puts the weights in place, from safetensors files or from memory. Needed
  /// once before the first run, also without weights. "" or what is wrong.
  std::string load(const WeightFiles &files);
  std::string load(const std::vector<Array> &weights);
  /// Calls an entry with all its inputs; fills the outputs that are given.
  /// State stays for the next call. "" or what is wrong.
  std::string run(const std::string &entry, const std::vector<Array> &inputs,
                  const std::vector<Array> &outputs);
  /// Gives a state another value between runs, or takes the one it has. "" or
  /// what is wrong.
  std::string setState(const Array &state);
  std::string getState(const Array &state);
  int64_t ranks() const;
  /// Begins to measure all ranks, from zero.
  void measure();
  Usage usage(int64_t rank) const;

  struct Impl;
  explicit Program(std::shared_ptr<Impl> impl) : impl(std::move(impl)) {}

private:
  std::shared_ptr<Impl> impl;
};

struct CompileOptions {
  /// Sizes that replace those of the plan's mesh: {{"tp", 2}}.
  std::vector<Mesh::Axis> mesh = {};
  /// As on the command line: "cpu", "cpu:avx2".
  std::string target = "cpu:native";
  /// Where the shared library of the program stays; empty: nowhere.
  std::string library = "";
  /// Of each wait of a rank.
  double timeoutSeconds = 60;
};

/// All mistakes of the model, and of the plan for it, as they are shown; empty
/// if there are none.
std::string errors(const Model &model, const Plan &plan);

/// Compiles, and starts the ranks.
Expected<Program> compile(const Model &model, const Plan &plan,
                          const CompileOptions &options = {});

/// The program's whole command line: build, check, plan, explain, with all
/// options of the tool `cleave`. Returns the exit status.
int driver(int argc, char **argv, const Model &model, const Plan &plan);

} // namespace lang
} // namespace cleave

#endif // CLEAVE_PROGRAM_H
