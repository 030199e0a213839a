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

/* What the main function of an executable calls; returns its exit status. */
int cleave_main(int argc, char **argv, const CleaveProgram *const *programs,
                int64_t numPrograms);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* CLEAVE_RUNTIME_RUNTIME_H */
