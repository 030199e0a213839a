//===- Program.cpp - Compiled models in this process ----------------------===//
// The program is a shared library with the runtime inside; it is opened, and
// called through the runtime's C interface.
//===----------------------------------------------------------------------===//
#include "cleave/program.h"
#include "dsl/Bridge.h"
#include "runtime/include/cleave/runtime.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <unistd.h>

namespace cleave {
namespace dsl {
namespace {

/// The runtime's functions as the library has them.
struct Runtime {
  decltype(&cleave_model_open) open = nullptr;
  decltype(&cleave_model_program) program = nullptr;
  decltype(&cleave_model_close) close = nullptr;
  decltype(&cleave_world_create) create = nullptr;
  decltype(&cleave_world_load_weights) loadWeights = nullptr;
  decltype(&cleave_world_load_arrays) loadArrays = nullptr;
  decltype(&cleave_world_set_state) setState = nullptr;
  decltype(&cleave_world_get_state) getState = nullptr;
  decltype(&cleave_world_call) call = nullptr;
  decltype(&cleave_world_measure) measure = nullptr;
  decltype(&cleave_world_usage) usage = nullptr;
  decltype(&cleave_world_destroy) destroy = nullptr;
};

template <typename T> bool bind(void *library, const char *name, T &function) {
  function = reinterpret_cast<T>(dlsym(library, name));
  return function != nullptr;
}

bool bindAll(void *library, Runtime &runtime) {
  return bind(library, "cleave_model_open", runtime.open) &&
         bind(library, "cleave_model_program", runtime.program) &&
         bind(library, "cleave_model_close", runtime.close) &&
         bind(library, "cleave_world_create", runtime.create) &&
         bind(library, "cleave_world_load_weights", runtime.loadWeights) &&
         bind(library, "cleave_world_load_arrays", runtime.loadArrays) &&
         bind(library, "cleave_world_set_state", runtime.setState) &&
         bind(library, "cleave_world_get_state", runtime.getState) &&
         bind(library, "cleave_world_call", runtime.call) &&
         bind(library, "cleave_world_measure", runtime.measure) &&
         bind(library, "cleave_world_usage", runtime.usage) &&
         bind(library, "cleave_world_destroy", runtime.destroy);
}

uint32_t toDtype(Element type) {
  constexpr uint32_t kDtypes[] = {CLEAVE_F32, CLEAVE_BF16, CLEAVE_F16,
                                  CLEAVE_F64, CLEAVE_I32,  CLEAVE_I64,
                                  CLEAVE_I8,  CLEAVE_I1};
  return kDtypes[static_cast<int>(type)];
}

std::vector<CleaveArray> toArrays(const std::vector<Array> &arrays) {
  std::vector<CleaveArray> result;
  for (const Array &array : arrays)
    result.push_back({array.name.c_str(), toDtype(array.type),
                      static_cast<int64_t>(array.shape.size()),
                      array.shape.data(), array.data});
  return result;
}

/// A directory that goes with what is in it.
class Workspace {
public:
  bool create() {
    path = parent() + "/cleave-XXXXXX";
    exists = mkdtemp(path.data()) != nullptr;
    return exists;
  }
  ~Workspace() {
    if (!exists)
      return;
    unlink((path + "/model.so").c_str());
    unlink((path + "/model.h").c_str());
    rmdir(path.c_str());
  }
  static std::string parent() {
    const char *base = std::getenv("TMPDIR");
    return base && *base ? base : "/tmp";
  }
  std::string path;

private:
  bool exists = false;
};

} // namespace
} // namespace dsl

inline namespace lang {

struct Program::Impl {
  void *library = nullptr;
  dsl::Runtime runtime;
  CleaveModel *model = nullptr;
  CleaveWorld *world = nullptr;
  CleaveError error = {};

  ~Impl() {
    if (world)
      runtime.destroy(world);
    if (model)
      runtime.close(model);
    if (library)
      dlclose(library);
  }
  std::string open(const std::string &file, double timeoutSeconds);
  std::string said(int32_t code) const {
    return code == CLEAVE_OK ? "" : error.message;
  }
};

std::string Program::Impl::open(const std::string &file,
                                double timeoutSeconds) {
  library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library)
    return std::string("cannot open the compiled program: ") + dlerror();
  const CleaveProgram *const *programs = nullptr;
  const int64_t *count = nullptr;
  if (!dsl::bindAll(library, runtime) ||
      !dsl::bind(library, "cleave_programs", programs) ||
      !dsl::bind(library, "cleave_num_programs", count))
    return "the library '" + file + "' holds no program of Cleave";
  std::string wrong = said(runtime.open(programs, *count, &model, &error));
  if (!wrong.empty())
    return wrong;
  return said(
      runtime.create(model, CLEAVE_THREADS, timeoutSeconds, &world, &error));
}

std::string Program::load(const WeightFiles &files) {
  std::vector<const char *> paths;
  for (const std::string &path : files.paths)
    paths.push_back(path.c_str());
  auto given = [](const std::string &text) {
    return text.empty() ? nullptr : text.c_str();
  };
  CleaveWeightFiles weights = {paths.data(), int64_t(paths.size()),
                               given(files.map), given(files.packed),
                               files.strict};
  return impl->said(
      impl->runtime.loadWeights(impl->world, &weights, &impl->error));
}

void Program::measure() { impl->runtime.measure(impl->world); }

Usage Program::usage(int64_t rank) const {
  CleaveUsage usage = impl->runtime.usage(impl->world, rank);
  return {usage.seconds, usage.commSeconds, usage.sentBytes, usage.numComms};
}

std::string Program::load(const std::vector<Array> &weights) {
  std::vector<CleaveArray> arrays = dsl::toArrays(weights);
  return impl->said(impl->runtime.loadArrays(impl->world, arrays.data(),
                                             arrays.size(), &impl->error));
}

std::string Program::run(const std::string &entry,
                         const std::vector<Array> &inputs,
                         const std::vector<Array> &outputs) {
  std::vector<CleaveArray> in = dsl::toArrays(inputs);
  std::vector<CleaveArray> out = dsl::toArrays(outputs);
  return impl->said(impl->runtime.call(impl->world, entry.c_str(), in.data(),
                                       in.size(), out.data(), out.size(),
                                       &impl->error));
}

std::string Program::setState(const Array &state) {
  const std::vector<Array> list = {state};
  std::vector<CleaveArray> array = dsl::toArrays(list);
  return impl->said(
      impl->runtime.setState(impl->world, array.data(), &impl->error));
}

std::string Program::getState(const Array &state) {
  const std::vector<Array> list = {state};
  std::vector<CleaveArray> array = dsl::toArrays(list);
  return impl->said(
      impl->runtime.getState(impl->world, array.data(), &impl->error));
}

int64_t Program::ranks() const {
  const CleaveProgram *program = impl->runtime.program(impl->model);
  int64_t count = 1;
  for (int64_t i = 0; i < program->numAxes; ++i)
    count *= program->axisSizes[i];
  return count;
}

Expected<Program> compile(const Model &model, const Plan &plan,
                          const CompileOptions &options) {
  dsl::Workspace workspace;
  dsl::LibraryOptions library;
  for (const Mesh::Axis &axis : options.mesh)
    library.mesh.push_back({axis.name, axis.size});
  library.target = options.target;
  library.output = options.library;
  if (library.output.empty()) {
    if (!workspace.create())
      return Expected<Program>::failure("cannot make a directory in '" +
                                        workspace.parent() +
                                        "': " + std::strerror(errno) + "\n");
    library.output = workspace.path + "/model.so";
  }
  std::string text = dsl::compileLibrary(*model.graph, *plan.data, library);
  if (!text.empty())
    return Expected<Program>::failure(text);
  auto impl = std::make_shared<Program::Impl>();
  std::string wrong = impl->open(library.output, options.timeoutSeconds);
  if (!wrong.empty())
    return Expected<Program>::failure(wrong + "\n");
  return Program(impl);
}

int driver(int argc, char **argv, const Model &model, const Plan &plan) {
  return dsl::runCommandLine(argc, argv, *model.graph, *plan.data);
}

} // namespace lang
} // namespace cleave
