//===- Plugin.h - Backends in shared objects of their own -------*- C++ -*-===//
// A backend that needs a library which not everyone has is loaded when asked
// for, so that programs link nothing of it. Only C crosses the border.
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_RUNTIME_COMM_PLUGIN_H
#define CLEAVE_RUNTIME_COMM_PLUGIN_H

#include "cleave/abi.h"
#include <stddef.h>

extern "C" {

#define CLEAVE_COMM_PLUGIN_VERSION 1

/// Where a function that returns a code other than 0 writes one sentence.
struct CleaveCommError {
  char text[2048];
};

struct CleaveCommPlugin {
  uint32_t version;
  /// Joins the other ranks.
  int32_t (*create)(const CleaveProgram *program, double timeoutSeconds,
                    void **self, int64_t *rank, CleaveCommError *error);
  int32_t (*run)(void *self, const CleaveComm *comm, const void *in, void *out,
                 CleaveCommError *error);
  int32_t (*barrier)(void *self, const char *where, CleaveCommError *error);
  /// Meets the others and tells the lowest rank that gives a code other than
  /// 0, and its code; -1 when there is none.
  int32_t (*agree)(void *self, int32_t code, int64_t *rank,
                   CleaveCommError *error);
  /// Ends all ranks with this exit status. Does not return.
  void (*abort)(void *self, int32_t exitStatus);
  void (*destroy)(void *self);
};

/// The one symbol of a plugin.
const CleaveCommPlugin *cleave_comm_plugin(void);
}

#endif // CLEAVE_RUNTIME_COMM_PLUGIN_H
