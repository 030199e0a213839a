/*===- abi.h - Contract between compiled programs and the runtime -*- C -*-===*\
 * Plain C data that the compiler writes into the object of a model and the
 * runtime reads. The lowering builds these structs field by field in this
 * order; a change here changes CLEAVE_ABI_VERSION. All structs hold only
 * 8-byte fields and pairs of 4-byte fields, so there is no hidden padding.
\*===----------------------------------------------------------------------===*/
#ifndef CLEAVE_RUNTIME_ABI_H
#define CLEAVE_RUNTIME_ABI_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define CLEAVE_ABI_MAGIC 0x455641454c43ull /* "CLEAVE" */
#define CLEAVE_ABI_VERSION 3

/* What entries hand back to the runtime; the runtime's own data follow. */
typedef struct CleaveContext {
  /* For each of CleaveProgram.weights where its block is: in the resident area,
   * or in a mapped file, then aligned to an element only. Packed forms, which
   * init makes, are always in the resident area. */
  const char *const *weights;
} CleaveContext;

typedef enum CleaveDtype {
  CLEAVE_F32 = 0,
  CLEAVE_BF16 = 1,
  CLEAVE_F16 = 2,
  CLEAVE_F64 = 3,
  CLEAVE_I32 = 4,
  CLEAVE_I64 = 5,
  CLEAVE_I16 = 6,
  CLEAVE_I8 = 7,
  CLEAVE_I1 = 8 /* one byte, 0 or 1 */
} CleaveDtype;

/* Same order as cleave::ReductionKind. */
typedef enum CleaveReduction {
  CLEAVE_SUM = 0,
  CLEAVE_PROD = 1,
  CLEAVE_MAX = 2, /* signed; propagates NaN */
  CLEAVE_MIN = 3,
  CLEAVE_UMAX = 4,
  CLEAVE_UMIN = 5,
  CLEAVE_MAXNUM = 6, /* ignores NaN */
  CLEAVE_MINNUM = 7,
  CLEAVE_AND = 8,
  CLEAVE_OR = 9,
  CLEAVE_XOR = 10
} CleaveReduction;

typedef enum CleaveCommKind {
  CLEAVE_ALL_REDUCE = 0,
  CLEAVE_ALL_GATHER = 1,
  CLEAVE_REDUCE_SCATTER = 2,
  CLEAVE_ALL_TO_ALL = 3,
  CLEAVE_PERMUTE = 4,
  CLEAVE_REALIGN = 5,
  CLEAVE_SEND = 6,
  CLEAVE_RECV = 7
} CleaveCommKind;

/* A digit of a mesh axis: of an axis of size N, coordinate c has the digit
 * (c / (N / (pre * size))) % size. A whole axis has pre = 1, size = N. */
typedef struct CleaveAxisRef {
  int64_t axis;
  int64_t pre;
  int64_t size;
} CleaveAxisRef;

/* Axes from major to minor. */
typedef struct CleaveAxes {
  int64_t count;
  const CleaveAxisRef *refs;
} CleaveAxes;

/* One communication: static data, equal on all ranks. Its group is the ranks
 * that differ only in the digits `axes` (and `source`); a member's index is its
 * row-major index over `axes`. n below is the product of the sizes of `axes`.
 *
 *  all_reduce      in, out: [dim0]; out = reduction over the members, always
 *                  combined in the order of their indices. in == out allowed.
 *  all_gather      in [outer, dim0, inner] -> out [outer, n*dim0, inner].
 *  reduce_scatter  in [outer, dim0, inner] -> out [outer, dim0/n, inner].
 *  all_to_all      dim0 is split (dim0 % n == 0), dim1 is concatenated; the
 *                  input is [outer, dim0, middle, dim1, inner], or, when
 *                  `swapped` is 1, [outer, dim1, middle, dim0, inner].
 *  permute         in, out: [dim0]; the member whose index over `source` is k
 *                  sends to the member whose index over `axes` is k.
 *  realign         moves block boundaries along one dim. Block i (index over
 *                  `source`) of the global input holds its indices
 *                  [i*dim0, min(inSize, (i+1)*dim0)); block i (over `axes`) of
 *                  the output holds [i*dim1, min(outSize, (i+1)*dim1)). Output
 *                  index j takes input index offset + j*stride where that lies
 *                  in [0, inSize); elsewhere `out` keeps what it had. in is
 *                  [outer, dim0, inner], out is [outer, dim1, inner].
 *  send, recv      in or out: [dim0]; `peer` is the mesh coordinate delta
 *                  along the single axis in `axes`.
 */
typedef struct CleaveComm {
  uint32_t kind;      /* CleaveCommKind */
  uint32_t dtype;     /* CleaveDtype */
  uint32_t reduction; /* CleaveReduction */
  uint32_t swapped;
  CleaveAxes axes;
  CleaveAxes source;
  int64_t outer, dim0, middle, dim1, inner;
  int64_t inSize, outSize, offset, stride;
  int64_t peer;
  const char *name;  /* "all_reduce over 'tp'" */
  const char *cause; /* "'%y' (model.mlir:12:8)" */
} CleaveComm;

typedef enum CleaveRole {
  CLEAVE_INPUT = 0,
  CLEAVE_OUTPUT = 1,
  CLEAVE_WEIGHT = 2,
  CLEAVE_STATE = 3
} CleaveRole;

/* A global tensor at the edge of the program and how it lies on the mesh: dim
 * d is cut over dims[d] into blocks of block[d] = ceil(shape[d] / n). */
typedef struct CleaveTensor {
  const char *name;
  const char *loc;       /* "model.mlir:12:8", or "" */
  const char *storeName; /* weights and state: the key in the file; else name */
  uint32_t dtype;
  uint32_t role;
  int64_t rank;
  const int64_t *shape;
  const int64_t *block;
  const CleaveAxes *dims;
  int64_t offset; /* inputs, outputs: in the arena; else in the resident area */
  int64_t bytes;  /* of one block */
} CleaveTensor;

/* A public function. Inputs lie at their offsets when run is called; outputs
 * when it has returned 0. State is read and written in place. Each call reuses
 * the whole arena. */
typedef struct CleaveEntry {
  const char *name;
  int64_t numInputs;
  const CleaveTensor *inputs;
  int64_t numOutputs;
  const CleaveTensor *outputs;
  int64_t arenaBytes;
  int32_t (*run)(CleaveContext *context, char *arena, char *resident);
} CleaveEntry;

/* What the CPU must have for a variant of the program. */
typedef enum CleaveIsa {
  CLEAVE_ISA_X86_64 = 0,
  CLEAVE_ISA_AVX2 = 1,        /* avx2, fma, f16c, bmi, bmi2, lzcnt, movbe */
  CLEAVE_ISA_AVX512 = 2,      /* + avx512 f, bw, cd, dq, vl */
  CLEAVE_ISA_AVX512_BF16 = 3, /* + avx512 bf16 */
  CLEAVE_ISA_AMX = 4          /* + avx512 fp16, vbmi, vbmi2; gfni, amx_tile,
                                   amx_bf16 */
} CleaveIsa;

/* A communication reads or writes the resident area, so all ranks must reach
 * it, and all weights must be in it. */
#define CLEAVE_SHARES_RESIDENT 1

/* One compiled variant. The executable holds one or several; the runtime takes
 * the best that the CPU can run. All ranks take the same one. */
typedef struct CleaveProgram {
  uint64_t magic;
  uint32_t version;
  uint32_t isa; /* CleaveIsa */
  int64_t numAxes;
  const char *const *axisNames;
  const int64_t *axisSizes;
  int64_t numRanks;
  const int64_t *ranks; /* rank at each row-major coordinate */
  int64_t numEntries;
  const CleaveEntry *entries;
  int64_t numWeights;
  const CleaveTensor *weights;
  int64_t numStates;
  const CleaveTensor *states;
  int64_t residentBytes;
  /* Run once after the weights are in place (packs them); may be null. */
  int32_t (*init)(CleaveContext *context, char *arena, char *resident);
  int64_t initArenaBytes;
  int64_t flags; /* CLEAVE_SHARES_RESIDENT or 0 */
  /* One line for each tensor of the resident area: what it is, how it is
   * packed, where it lies. Two programs with equal texts have equal areas. */
  const char *layout;
  const char *manifest; /* the JSON object that --describe prints */
} CleaveProgram;

/* Defined by the generated object: variants, best first. */
extern const CleaveProgram *const cleave_programs[];
extern const int64_t cleave_num_programs;

#define CLEAVE_ABI(name, result, parameters) result cleave_rt_##name parameters;
#include "cleave/abi.def"

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* CLEAVE_RUNTIME_ABI_H */
