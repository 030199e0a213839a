/*===- runtime.h - Running compiled programs from C ---------------*- C -*-===*\
 * The interface for programs that embed a model: open it, create its ranks,
 * call its entries on arrays in memory. Every function that can fail returns a
 * CleaveCode and, on failure, writes one sentence into the error given.
\*===----------------------------------------------------------------------===*/
#ifndef CLEAVE_RUNTIME_RUNTIME_H
#define CLEAVE_RUNTIME_RUNTIME_H

#include "cleave/abi.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum CleaveCode {
  CLEAVE_OK = 0,
  CLEAVE_INVALID_ARGUMENT = 1,
  CLEAVE_NOT_FOUND = 2,
  CLEAVE_FAILED_PRECONDITION = 3,
  CLEAVE_UNAVAILABLE = 4,
  CLEAVE_DEADLINE_EXCEEDED = 5,
  CLEAVE_ABORTED = 6,
  CLEAVE_INTERNAL = 7
} CleaveCode;

/* Filled when a function fails; may be null. */
typedef struct CleaveError {
  int32_t code;
  char message[2048];
} CleaveError;

/* A whole (global) row-major array in the caller's memory. */
typedef struct CleaveArray {
  const char *name;
  uint32_t dtype; /* CleaveDtype: the tensor's, or f32 for bf16 and f16 */
  int64_t rank;
  const int64_t *shape;
  void *data;
} CleaveArray;

/* What the main function of an executable calls; returns its exit status. */
int cleave_main(int argc, char **argv, const CleaveProgram *const *programs,
                int64_t numPrograms);

/*===-- Models -----------------------------------------------------------===*/

/* The best variant of a compiled program that this CPU can run. */
typedef struct CleaveModel CleaveModel;

/* `programs` is the table that the generated object defines
 * (cleave_programs, cleave_num_programs). It must stay alive. */
int32_t cleave_model_open(const CleaveProgram *const *programs,
                          int64_t numPrograms, CleaveModel **model,
                          CleaveError *error);
const CleaveProgram *cleave_model_program(const CleaveModel *model);
void cleave_model_close(CleaveModel *model);

/*===-- Worlds: all ranks of a model, made and called by this process ----===*/

typedef struct CleaveWorld CleaveWorld;

typedef enum CleaveWorldKind {
  CLEAVE_THREADS = 0,  /* ranks are threads of this process */
  CLEAVE_PROCESSES = 1 /* ranks are forked; call before starting threads */
} CleaveWorldKind;

int32_t cleave_world_create(const CleaveModel *model, CleaveWorldKind kind,
                            double timeoutSeconds, CleaveWorld **world,
                            CleaveError *error);

/* Where weights come from: what --weights, --weights-map, --weights-strict and
 * --packed say on the command line. Either paths or packed; null for none. */
typedef struct CleaveWeightFiles {
  const char *const *paths;
  int64_t numPaths;
  const char *map;
  const char *packed;
  int32_t strict;
} CleaveWeightFiles;

/* Puts the weights in place, from safetensors files or from memory, and runs
 * the program's init. Needed once before the first call, also without weights.
 * Arrays are found by the names that the weights have in files. */
int32_t cleave_world_load_files(CleaveWorld *world, const char *const *paths,
                                int64_t numPaths, CleaveError *error);
int32_t cleave_world_load_weights(CleaveWorld *world,
                                  const CleaveWeightFiles *files,
                                  CleaveError *error);
int32_t cleave_world_load_arrays(CleaveWorld *world, const CleaveArray *weights,
                                 int64_t numWeights, CleaveError *error);

/* Sets or reads a state between calls; it starts as zeros. */
int32_t cleave_world_set_state(CleaveWorld *world, const CleaveArray *state,
                               CleaveError *error);
int32_t cleave_world_get_state(CleaveWorld *world, const CleaveArray *state,
                               CleaveError *error);

/* Calls an entry: gives every rank its part of the inputs (all must be given),
 * runs it on all ranks, collects the outputs that are asked for. After a
 * failure the world cannot be called again, only destroyed. One call at a
 * time. */
int32_t cleave_world_call(CleaveWorld *world, const char *entry,
                          const CleaveArray *inputs, int64_t numInputs,
                          const CleaveArray *outputs, int64_t numOutputs,
                          CleaveError *error);

/* What a rank did since it was measured from. */
typedef struct CleaveUsage {
  double seconds;     /* in entries */
  double commSeconds; /* of these in communications, waiting included */
  int64_t sentBytes;  /* as the plan counts them: by ring conventions */
  int64_t numComms;
} CleaveUsage;

/* Begins to measure all ranks, from zero. */
void cleave_world_measure(CleaveWorld *world);
/* Zeros if nothing is measured or there is no such rank. */
CleaveUsage cleave_world_usage(const CleaveWorld *world, int64_t rank);

void cleave_world_destroy(CleaveWorld *world);

/*===-- Ranks: this process is one of several that a launcher started ----===*/

typedef struct CleaveRank CleaveRank;

/* `launch` is "env" or "mpi", as on the command line. Meets the other ranks. */
int32_t cleave_rank_join(const CleaveModel *model, const char *launch,
                         double timeoutSeconds, CleaveRank **rank,
                         CleaveError *error);
int64_t cleave_rank_index(const CleaveRank *rank);

/* As for worlds, for this rank alone; all ranks must do the same. */
int32_t cleave_rank_load_files(CleaveRank *rank, const char *const *paths,
                               int64_t numPaths, CleaveError *error);
int32_t cleave_rank_load_weights(CleaveRank *rank,
                                 const CleaveWeightFiles *files,
                                 CleaveError *error);
int32_t cleave_rank_load_arrays(CleaveRank *rank, const CleaveArray *weights,
                                int64_t numWeights, CleaveError *error);

/* Takes this rank's part out of the whole inputs, runs the entry, and writes
 * this rank's part into the whole outputs, leaving the rest alone. */
int32_t cleave_rank_call(CleaveRank *rank, const char *entry,
                         const CleaveArray *inputs, int64_t numInputs,
                         const CleaveArray *outputs, int64_t numOutputs,
                         CleaveError *error);

/* Leaves; the other ranks must have finished too, or will be told. */
void cleave_rank_leave(CleaveRank *rank);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* CLEAVE_RUNTIME_RUNTIME_H */
