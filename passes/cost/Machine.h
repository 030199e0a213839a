//===- Machine.h - What the ranks run on and how they are linked -*- C++
//-*-===//
// A machine is a device (memory, arithmetic, memory bandwidth) and a list of
// tiers: the links between ranks from the nearest to the farthest. A tier is an
// alpha-beta link: a round takes `latency` and a rank moves `bandwidth` bytes a
// second over it; n ranks need log2(n) rounds. Consecutive ranks are
// neighbours: tier i joins the ranks that lie in the same run of `ranks` ranks,
// so the innermost mesh axes use the fastest tier that holds them.
//
// Example: 2x8xH100 has the tiers nvlink (8 ranks) and network (all ranks). On
// a mesh "dp"=2, "tp"=8 the axis tp uses nvlink and dp the network.
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_PASSES_COST_MACHINE_H
#define CLEAVE_PASSES_COST_MACHINE_H

#include "dialects/sharding/Sharding.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/Error.h"
#include <map>
#include <vector>

namespace cleave {

/// Links between the ranks of one neighbourhood.
struct Tier {
  std::string name;
  /// Ranks in one neighbourhood; 0 means any number (the last tier only).
  int64_t ranks = 0;
  /// Seconds of one round.
  double latency = 0;
  /// Bytes a second that one rank sends while it receives as many.
  double bandwidth = 1;
};

/// What each rank is.
struct Device {
  std::string name;
  int64_t memoryBytes = 0;
  /// Whether all ranks share these bytes (CPU ranks of one computer).
  bool memoryShared = false;
  /// Bytes a second.
  double memoryBandwidth = 0;
  /// Operations a second by element type: "f32", "bf16", ...
  llvm::StringMap<double> flops;
};

struct Machine {
  std::string name;
  /// "modelled" (from public figures) or "measured".
  std::string basis;
  /// Where the figures come from.
  std::string source;
  Device device;
  /// Seconds that every collective costs before its first byte moves.
  double overhead = 0;
  /// Nearest first; the last one holds all ranks.
  std::vector<Tier> tiers;

  /// How many ranks it has room for; 0 means any number.
  int64_t maxRanks() const { return tiers.back().ranks; }
};

/// CPU ranks on this computer, talking through shared memory; the default.
const Machine &cpuLocalMachine();
/// Names of the machines that are built in (the files of machines/).
std::vector<std::string> builtinMachineNames();
/// Reads the text of a machine file; `file` appears in the message.
llvm::Expected<Machine> parseMachine(llvm::StringRef text,
                                     llvm::StringRef file);
/// A built-in name, or the path of a JSON file.
llvm::Expected<Machine> findMachine(llvm::StringRef nameOrFile);

/// Communication whose cost Topology knows, by the ring conventions.
enum class Collective : uint8_t {
  AllReduce,
  AllGather,
  ReduceScatter,
  AllToAll,
  Permute
};

/// A mesh laid on a machine: the tier of each axis and the cost of collectives.
class Topology {
public:
  Topology(const Mesh &mesh, const Machine &machine);
  const Mesh &mesh() const { return ourMesh; }
  const Machine &machine() const { return ourMachine; }

  /// Index of the fastest tier that joins all ranks which differ only in
  /// `axis`.
  unsigned tierOf(AxisRef axis) const;
  /// The slowest of these; 0 for no axes.
  unsigned tierOf(llvm::ArrayRef<AxisRef> axes) const;

  /// The digits of `axis` by tier, major (slowest) first: with 2 nodes of 8, an
  /// axis of 16 has the parts network 2 and nvlink 8.
  struct Part {
    unsigned tier;
    AxisRef digits;
  };
  llvm::SmallVector<Part, 2> parts(AxisRef axis) const;

  /// What one rank sends; `bytes` is the local value: of all_gather the
  /// gathered one, of reduce_scatter the one before the scatter.
  static int64_t wireBytes(Collective kind, int64_t groupSize, int64_t bytes);
  /// Time of a collective over `axes` in which a rank sends `wire` bytes.
  double seconds(Collective kind, llvm::ArrayRef<AxisRef> axes,
                 int64_t wire) const;
  double seconds(Collective kind, llvm::ArrayRef<Part> parts,
                 int64_t wire) const;
  /// Time of messages to `peers` ranks, `wire` bytes together.
  double exchangeSeconds(unsigned tier, int64_t peers, int64_t wire) const;

private:
  unsigned computeTier(AxisRef axis) const;

  Mesh ourMesh;
  Machine ourMachine;
  mutable std::map<AxisRef, unsigned> tiers;
};

} // namespace cleave

#endif // CLEAVE_PASSES_COST_MACHINE_H
