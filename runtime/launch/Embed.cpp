//===- Embed.cpp - The C interface of <cleave/runtime.h> ------------------===//
#include "cleave/runtime.h"
#include "runtime/cpu/Isa.h"
#include "runtime/io/Weights.h"
#include "runtime/launch/Peer.h"
#include "runtime/launch/World.h"

#include <cstdio>
#include <string_view>

using namespace cleave::rt;

struct CleaveModel {
  const CleaveProgram *program;
};
struct CleaveWorld {
  World world;
};
struct CleaveRank {
  Peer peer;
};

static int32_t result(const Status &status, CleaveError *error) {
  if (error) {
    error->code = int32_t(status.code());
    std::snprintf(error->message, sizeof(error->message), "%s",
                  status.message().c_str());
  }
  return int32_t(status.code());
}

//===----------------------------------------------------------------------===//
// Models
//===----------------------------------------------------------------------===//

static Status checkTensors(const CleaveTensor *tensors, int64_t count,
                           const Mesh &mesh, int64_t bytes) {
  for (int64_t i = 0; i < count; ++i)
    CLEAVE_RETURN_IF_ERROR(checkTensor(tensors[i], mesh, bytes));
  return Status();
}

static Status openModel(const CleaveProgram *const *programs, int64_t count,
                        const CleaveProgram **program) {
  CLEAVE_RETURN_IF_ERROR(pickVariant(programs, count, program));
  const CleaveProgram &p = **program;
  CLEAVE_RETURN_IF_ERROR(Mesh::check(p));
  Mesh mesh(p);
  CLEAVE_RETURN_IF_ERROR(
      checkTensors(p.weights, p.numWeights, mesh, p.residentBytes));
  CLEAVE_RETURN_IF_ERROR(
      checkTensors(p.states, p.numStates, mesh, p.residentBytes));
  for (int64_t e = 0; e < p.numEntries; ++e) {
    const CleaveEntry &entry = p.entries[e];
    CLEAVE_RETURN_IF_ERROR(
        checkTensors(entry.inputs, entry.numInputs, mesh, entry.arenaBytes));
    CLEAVE_RETURN_IF_ERROR(
        checkTensors(entry.outputs, entry.numOutputs, mesh, entry.arenaBytes));
  }
  return Status();
}

int32_t cleave_model_open(const CleaveProgram *const *programs,
                          int64_t numPrograms, CleaveModel **model,
                          CleaveError *error) {
  const CleaveProgram *program = nullptr;
  Status status = openModel(programs, numPrograms, &program);
  *model = status.ok() ? new CleaveModel{program} : nullptr;
  return result(status, error);
}

const CleaveProgram *cleave_model_program(const CleaveModel *model) {
  return model->program;
}

void cleave_model_close(CleaveModel *model) { delete model; }

//===----------------------------------------------------------------------===//
// What worlds and ranks share
//===----------------------------------------------------------------------===//

template <typename Target>
static Status loadWeights(Target &target, const CleaveWeightFiles &given) {
  const CleaveProgram &program = target.program;
  if (given.packed && given.numPaths > 0)
    return invalidArgument("packed weights take the place of files; give one "
                           "of them");
  if (given.packed)
    return target.loadPacked(given.packed);
  WeightOptions options;
  options.paths.assign(given.paths, given.paths + given.numPaths);
  options.mapPath = given.map ? given.map : "";
  options.strict = given.strict != 0;
  auto files = std::make_shared<Weights>();
  CLEAVE_RETURN_IF_ERROR(files->open(program, options));
  std::vector<BoundArray> weights;
  for (int64_t i = 0; i < program.numWeights; ++i)
    weights.push_back({&program.weights[i], files->array(i)});
  return target.load(weights, files);
}

template <typename Target>
static Status loadFiles(Target &target, const char *const *paths,
                        int64_t numPaths) {
  return loadWeights(target, {paths, numPaths, nullptr, nullptr, 0});
}

template <typename Target>
static Status loadArrays(Target &target, const CleaveArray *arrays,
                         int64_t numArrays) {
  const CleaveProgram &program = target.program;
  std::vector<BoundArray> weights;
  CLEAVE_RETURN_IF_ERROR(
      bindArrays({"weight", program.weights, program.numWeights}, arrays,
                 numArrays, /*needsAll=*/true, &weights));
  return target.load(weights, nullptr);
}

namespace {
struct Call {
  const char *entry;
  const CleaveArray *inputs;
  int64_t numInputs;
  const CleaveArray *outputs;
  int64_t numOutputs;
};
} // namespace

template <typename Target>
static Status callEntry(Target &target, const Call &call) {
  const CleaveEntry *entry = nullptr;
  CLEAVE_RETURN_IF_ERROR(findEntry(target.program, call.entry, &entry));
  std::vector<BoundArray> inputs, outputs;
  CLEAVE_RETURN_IF_ERROR(bindArrays({"input", entry->inputs, entry->numInputs},
                                    call.inputs, call.numInputs,
                                    /*needsAll=*/true, &inputs));
  CLEAVE_RETURN_IF_ERROR(
      bindArrays({"output", entry->outputs, entry->numOutputs}, call.outputs,
                 call.numOutputs, /*needsAll=*/false, &outputs));
  return target.call(*entry, inputs, outputs);
}

//===----------------------------------------------------------------------===//
// Worlds
//===----------------------------------------------------------------------===//

int32_t cleave_world_create(const CleaveModel *model, CleaveWorldKind kind,
                            double timeoutSeconds, CleaveWorld **world,
                            CleaveError *error) {
  auto *fresh = new CleaveWorld{World(*model->program, timeoutSeconds)};
  Status status =
      fresh->world.start(kind == CLEAVE_PROCESSES ? SharedArea::Kind::processes
                                                  : SharedArea::Kind::threads);
  if (!status.ok())
    delete fresh;
  *world = status.ok() ? fresh : nullptr;
  return result(status, error);
}

int32_t cleave_world_load_files(CleaveWorld *world, const char *const *paths,
                                int64_t numPaths, CleaveError *error) {
  return result(loadFiles(world->world, paths, numPaths), error);
}

int32_t cleave_world_load_weights(CleaveWorld *world,
                                  const CleaveWeightFiles *files,
                                  CleaveError *error) {
  return result(loadWeights(world->world, *files), error);
}

int32_t cleave_world_load_arrays(CleaveWorld *world, const CleaveArray *weights,
                                 int64_t numWeights, CleaveError *error) {
  return result(loadArrays(world->world, weights, numWeights), error);
}

static Status bindState(const CleaveProgram &program, const CleaveArray *state,
                        std::vector<BoundArray> *bound) {
  return bindArrays({"state", program.states, program.numStates}, state, 1,
                    /*needsAll=*/false, bound);
}

int32_t cleave_world_set_state(CleaveWorld *world, const CleaveArray *state,
                               CleaveError *error) {
  std::vector<BoundArray> bound;
  Status status = bindState(world->world.program, state, &bound);
  if (status.ok())
    status = world->world.setState(bound.front());
  return result(status, error);
}

int32_t cleave_world_get_state(CleaveWorld *world, const CleaveArray *state,
                               CleaveError *error) {
  std::vector<BoundArray> bound;
  Status status = bindState(world->world.program, state, &bound);
  if (status.ok())
    world->world.getState(bound.front());
  return result(status, error);
}

int32_t cleave_world_call(CleaveWorld *world, const char *entry,
                          const CleaveArray *inputs, int64_t numInputs,
                          const CleaveArray *outputs, int64_t numOutputs,
                          CleaveError *error) {
  return result(
      callEntry(world->world, {entry, inputs, numInputs, outputs, numOutputs}),
      error);
}

void cleave_world_measure(CleaveWorld *world) { world->world.measure(); }

CleaveUsage cleave_world_usage(const CleaveWorld *world, int64_t rank) {
  bool exists = rank >= 0 && rank < world->world.program.numRanks;
  return exists ? world->world.usage(rank) : CleaveUsage{};
}

void cleave_world_destroy(CleaveWorld *world) { delete world; }

//===----------------------------------------------------------------------===//
// Ranks
//===----------------------------------------------------------------------===//

int32_t cleave_rank_join(const CleaveModel *model, const char *launch,
                         double timeoutSeconds, CleaveRank **rank,
                         CleaveError *error) {
  auto *fresh = new CleaveRank{Peer(*model->program)};
  Status status;
  if (std::string_view(launch) == "env")
    status = fresh->peer.joinEnv(timeoutSeconds);
  else if (std::string_view(launch) == "mpi")
    status = fresh->peer.joinMpi(timeoutSeconds);
  else
    status =
        invalidArgument("launch '", launch, "' is not one of 'env', 'mpi'");
  if (!status.ok())
    delete fresh;
  *rank = status.ok() ? fresh : nullptr;
  return result(status, error);
}

int64_t cleave_rank_index(const CleaveRank *rank) { return rank->peer.index(); }

int32_t cleave_rank_load_files(CleaveRank *rank, const char *const *paths,
                               int64_t numPaths, CleaveError *error) {
  return result(loadFiles(rank->peer, paths, numPaths), error);
}

int32_t cleave_rank_load_weights(CleaveRank *rank,
                                 const CleaveWeightFiles *files,
                                 CleaveError *error) {
  return result(loadWeights(rank->peer, *files), error);
}

int32_t cleave_rank_load_arrays(CleaveRank *rank, const CleaveArray *weights,
                                int64_t numWeights, CleaveError *error) {
  return result(loadArrays(rank->peer, weights, numWeights), error);
}

int32_t cleave_rank_call(CleaveRank *rank, const char *entry,
                         const CleaveArray *inputs, int64_t numInputs,
                         const CleaveArray *outputs, int64_t numOutputs,
                         CleaveError *error) {
  return result(
      callEntry(rank->peer, {entry, inputs, numInputs, outputs, numOutputs}),
      error);
}

void cleave_rank_leave(CleaveRank *rank) { delete rank; }
