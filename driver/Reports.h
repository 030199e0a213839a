//===- Reports.h - Tables and JSON of the driver ---------------*- C++ -*-===//
#ifndef CLEAVE_DRIVER_REPORTS_H
#define CLEAVE_DRIVER_REPORTS_H

#include "passes/cost/CommReport.h"
#include "llvm/Support/JSON.h"

namespace cleave {

/// The attribute `collectives` of the current object.
void writeCollectives(llvm::json::OStream &out,
                      const std::vector<CommEntry> &entries);
/// One line per collective; with its cause and what would remove it below.
void printCollectives(llvm::raw_ostream &os,
                      const std::vector<CommEntry> &entries, bool withCauses);
/// 1536 gives "1.5 KiB".
std::string bytesText(int64_t bytes);

} // namespace cleave

#endif // CLEAVE_DRIVER_REPORTS_H
