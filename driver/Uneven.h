//===- Uneven.h - What uneven cuts cost ------------------------*- C++ -*-===//
#ifndef CLEAVE_DRIVER_UNEVEN_H
#define CLEAVE_DRIVER_UNEVEN_H

#include "dialects/sharding/Sharding.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/Support/JSON.h"
#include <string>
#include <vector>

namespace cleave {

/// A size that some axes do not divide, and the tensors at the edge of the
/// program that have it.
struct UnevenCut {
  int64_t size = 0, shards = 1;
  /// "tp", "dp,tp".
  std::string axes;
  std::vector<std::string> tensors;

  int64_t block() const { return ceilDiv(size, shards); }
  /// Shards that have nothing.
  int64_t numEmpty() const { return shards - ceilDiv(size, block()); }
  /// What a rank computes over its share: 3 over 5 ranks are 5 blocks of 1.
  double ratio() const { return double(block() * shards) / double(size); }
};

/// The uneven cuts of arguments and results of a partitioned program.
std::vector<UnevenCut> findUneven(mlir::ModuleOp module, const Mesh &mesh);
/// One line each.
void printUneven(llvm::raw_ostream &os, const std::vector<UnevenCut> &cuts);
/// The attribute `uneven` of the current object.
void writeUneven(llvm::json::OStream &out, const std::vector<UnevenCut> &cuts);

} // namespace cleave

#endif // CLEAVE_DRIVER_UNEVEN_H
