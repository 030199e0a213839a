//===- Request.h - One run, checked before it starts ------------*- C++ -*-===//
#ifndef CLEAVE_RUNTIME_LAUNCH_REQUEST_H
#define CLEAVE_RUNTIME_LAUNCH_REQUEST_H

#include "runtime/comm/SharedArea.h"
#include "runtime/io/Npy.h"
#include "runtime/io/Pack.h"
#include "runtime/io/Weights.h"
#include "runtime/launch/Options.h"
#include "runtime/launch/Rank.h"

namespace cleave::rt {

/// Everything a run needs: files opened, names and types checked, nothing
/// allocated yet. Ranks made by fork share it.
class Request {
public:
  Request(const CleaveProgram &program, const Mesh &mesh,
          const Options &options)
      : program(program), mesh(mesh), options(options) {}

  /// Checks the options against the program and opens the files to read.
  /// `onlyRank` is the one rank of this process where it may not see the files
  /// of the others.
  Status prepare(int64_t onlyRank = -1);
  /// What is odd, but no error.
  const std::vector<std::string> &warnings() const {
    return weights.warnings();
  }

  /// Creates the files to write; the old ones stay until commit(). `suffix`
  /// tells runs apart.
  Status createOutputs(const std::string &suffix);
  /// Opens the files that rank 0, another process, has created.
  Status joinOutputs(const std::string &suffix);
  Status commit();

  /// One rank's whole work; outputs must be created before writeOutputs(). The
  /// packs of all ranks whose memory this one reads are placed first.
  Status placePack(int64_t rank, char *resident);
  Status load(Rank &rank);
  Status run(Rank &rank);
  Status writeOutputs(Rank &rank);

  /// What --trace and --memory-json say about one rank goes to a file of its
  /// own first, then all are put together.
  Status writeReports(Rank &rank, const std::string &suffix);
  Status mergeReports(const std::string &suffix);
  void discardReports(const std::string &suffix);

private:
  struct Read {
    const CleaveTensor *tensor;
    NpyFile file;
  };
  struct Write {
    const CleaveTensor *tensor;
    std::string path;
    uint32_t dtype; // in the file
    std::string header;
    int64_t totalBytes;
    OutputFile file;
  };
  struct Used {
    int64_t arena = 0, resident = 0;
    int64_t weightBytes = 0, inPlaceBytes = 0; // of files
    double loadSeconds = 0;
    std::vector<double> seconds;
  };

  Status findEntry();
  Status checkProgram() const;
  Status openInputs();
  Status openWeights();
  Status openPacks(int64_t onlyRank);
  Status openPackWriters(const std::string &suffix, bool join);
  Status loadResident(Rank &rank);
  Status loadWeight(Rank &rank, int64_t weight);
  Status openStates();
  Status findOutputs();
  Status addWrite(const NamedFile &file, const char *role,
                  const CleaveTensor *tensors, int64_t count);
  Status readInto(Rank &rank, const CleaveTensor &tensor,
                  const GlobalArray &array, char *block,
                  const std::string &what);
  Status setInputs(Rank &rank);
  Status measureArena(Rank &rank);

  const CleaveProgram &program;
  const Mesh &mesh;
  const Options &options;
  const CleaveEntry *entry = nullptr;
  std::vector<Read> inputs, states;
  std::vector<Write> writes;
  Weights weights;
  std::vector<PackFile> packs;
  std::vector<PackWriter> packWriters;
  Used used;
};

} // namespace cleave::rt

#endif // CLEAVE_RUNTIME_LAUNCH_REQUEST_H
