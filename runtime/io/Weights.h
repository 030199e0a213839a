//===- Weights.h - A program's weights in a checkpoint ----------*- C++ -*-===//
// All of it is found and checked before anything is read: which tensor of which
// file each weight is, its shape and type, and what the files hold besides.
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_RUNTIME_IO_WEIGHTS_H
#define CLEAVE_RUNTIME_IO_WEIGHTS_H

#include "runtime/io/Safetensors.h"
#include "runtime/io/WeightMap.h"

namespace cleave::rt {

struct WeightOptions {
  /// .safetensors files, indices of sharded checkpoints (.json), or folders
  /// that hold either.
  std::vector<std::string> paths;
  std::string mapPath;
  bool strict = false; // what would be a warning is an error
};

/// Adds what `path` names: a file, all files of an index, or those of a folder.
Status addCheckpoint(const std::string &path, Safetensors *files);

/// The array of one weight; an error where it is missing or does not fit.
Status bindWeight(const Safetensors &files, const WeightMap &map,
                  const CleaveTensor &weight, GlobalArray *array);

class Weights {
public:
  Status open(const CleaveProgram &program, const WeightOptions &options);

  /// Of the program's weight of that index.
  const GlobalArray &array(int64_t weight) const { return arrays[weight]; }
  /// Of all files; see MappedFile::release().
  void release() const { files.release(); }
  /// What is odd or lossy, but no error: one sentence each.
  const std::vector<std::string> &warnings() const { return notes; }

private:
  Status bindAll(const CleaveProgram &program);
  Status checkUnmatched(const CleaveProgram &program,
                        const WeightOptions &options);
  Status checkSurplus(const CleaveProgram &program,
                      const WeightOptions &options);
  void noteRounding(const CleaveProgram &program);
  void noteTies(const CleaveProgram &program);

  Safetensors files;
  WeightMap map;
  std::vector<GlobalArray> arrays;
  std::vector<std::string> notes;
};

} // namespace cleave::rt

#endif // CLEAVE_RUNTIME_IO_WEIGHTS_H
