/*===- matmul.c - A program written by hand -------------------------------===*\
 * What the compiler would emit for y = x * w over two ranks: x [3, 6] and the
 * weight w [6, 4] are cut along the contracted dim, the product is summed by an
 * all_reduce. A state counts the calls; a second entry scales its input, which
 * is cut unevenly (5 rows over 2 ranks).
\*===----------------------------------------------------------------------===*/
#include "cleave/abi.h"
#include <string.h>

enum { M = 3, K = 6, KLocal = 3, N = 4 };

static const CleaveAxisRef tpRef[] = {{0, 1, 2}};
#define TP {1, tpRef}
#define NONE {0, 0}

static const CleaveComm sum = {CLEAVE_ALL_REDUCE,
                               CLEAVE_F32,
                               CLEAVE_SUM,
                               0,
                               TP,
                               NONE,
                               1,
                               M *N,
                               1,
                               1,
                               1,
                               0,
                               0,
                               0,
                               0,
                               0,
                               "all_reduce over 'tp'",
                               "'%y' (matmul.mlir:3:8)"};

static const int64_t xShape[] = {M, K}, xBlock[] = {M, KLocal};
static const CleaveAxes xDims[] = {NONE, TP};
static const int64_t wShape[] = {K, N}, wBlock[] = {KLocal, N};
static const CleaveAxes wDims[] = {TP, NONE};
static const int64_t yShape[] = {M, N};
static const CleaveAxes yDims[] = {NONE, NONE};
static const int64_t countShape[] = {1};
static const CleaveAxes countDims[] = {NONE};
static const int64_t sShape[] = {5, 2}, sBlock[] = {3, 2};
static const CleaveAxes sDims[] = {TP, NONE};

enum { XOffset = 0, YOffset = 64, ArenaBytes = 64 + M * N * 4 };
enum { WOffset = 0, CountOffset = 64, ResidentBytes = 72 };

static const CleaveTensor inputs[] = {{"x", "matmul.mlir:1:20", "x", CLEAVE_F32,
                                       CLEAVE_INPUT, 2, xShape, xBlock, xDims,
                                       XOffset, M * KLocal * 4}};
static const CleaveTensor outputs[] = {{"y", "matmul.mlir:3:8", "y", CLEAVE_F32,
                                        CLEAVE_OUTPUT, 2, yShape, yShape, yDims,
                                        YOffset, M * N * 4}};
static const CleaveTensor weights[] = {
    {"w", "matmul.mlir:1:40", "mlp.w", CLEAVE_F32, CLEAVE_WEIGHT, 2, wShape,
     wBlock, wDims, WOffset, KLocal * N * 4}};
static const CleaveTensor states[] = {{"calls", "", "count", CLEAVE_I64,
                                       CLEAVE_STATE, 1, countShape, countShape,
                                       countDims, CountOffset, 8}};
static const CleaveTensor scaleIn[] = {
    {"a", "", "a", CLEAVE_BF16, CLEAVE_INPUT, 2, sShape, sBlock, sDims, 0, 12}};
static const CleaveTensor scaleOut[] = {{"b", "", "b", CLEAVE_F16,
                                         CLEAVE_OUTPUT, 2, sShape, sBlock,
                                         sDims, 64, 12}};

static int32_t forward(CleaveContext *context, char *arena, char *resident) {
  const float *x = (const float *)(arena + XOffset);
  const float *w = (const float *)context->weights[0];
  float *y = (float *)(arena + YOffset);
  cleave_rt_trace_begin(context, "matmul");
  for (int i = 0; i < M; ++i)
    for (int j = 0; j < N; ++j) {
      float total = 0;
      for (int k = 0; k < KLocal; ++k)
        total += x[i * KLocal + k] * w[k * N + j];
      y[i * N + j] = total;
    }
  cleave_rt_trace_end(context);
  int64_t count;
  memcpy(&count, resident + CountOffset, 8);
  ++count;
  memcpy(resident + CountOffset, &count, 8);
  return cleave_rt_comm(context, &sum, y, y);
}

/* bf16 1, 2, ... becomes f16 1, 2, ...: only small whole numbers are asked. */
static int32_t cast(CleaveContext *context, char *arena, char *resident) {
  const uint16_t *a = (const uint16_t *)arena;
  uint16_t *b = (uint16_t *)(arena + 64);
  for (int i = 0; i < 6; ++i)
    b[i] = a[i] ? (uint16_t)((((a[i] >> 7) - 112) << 10) | ((a[i] & 127) << 3))
                : 0;
  (void)context;
  (void)resident;
  return 0;
}

static const CleaveEntry entries[] = {
    {"forward", 1, inputs, 1, outputs, ArenaBytes, forward},
    {"cast", 1, scaleIn, 1, scaleOut, 76, cast}};
static const char *const axisNames[] = {"tp"};
static const int64_t axisSizes[] = {2}, ranks[] = {0, 1};

static const CleaveProgram program = {CLEAVE_ABI_MAGIC,
                                      CLEAVE_ABI_VERSION,
                                      CLEAVE_ISA_X86_64,
                                      1,
                                      axisNames,
                                      axisSizes,
                                      2,
                                      ranks,
                                      2,
                                      entries,
                                      1,
                                      weights,
                                      1,
                                      states,
                                      ResidentBytes,
                                      0,
                                      0,
                                      0,
                                      "weight 'mlp.w' 3x4xf32 at 0\n"
                                      "state 'count' 1xi64 at 64\n",
                                      "{\"ranks\": 2}"};

const CleaveProgram *const cleave_programs[] = {&program};
const int64_t cleave_num_programs = 1;
