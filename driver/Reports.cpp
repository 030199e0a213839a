//===- Reports.cpp - Tables and JSON of the driver ------------------------===//
#include "driver/Reports.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/FormatVariadic.h"

using namespace llvm;

namespace cleave {

std::string bytesText(int64_t bytes) {
  static constexpr StringLiteral kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  double value = bytes;
  unsigned unit = 0;
  while (value >= 1024 && unit + 1 < std::size(kUnits)) {
    value /= 1024;
    ++unit;
  }
  if (unit == 0)
    return std::to_string(bytes) + " B";
  return formatv("{0:f1} {1}", value, kUnits[unit]).str();
}

void writeCollectives(json::OStream &out,
                      const std::vector<CommEntry> &entries) {
  out.attributeArray("collectives", [&] {
    for (const CommEntry &entry : entries)
      out.object([&] {
        out.attribute("entry", entry.entry);
        out.attribute("kind", entry.kind);
        out.attributeArray("axes", [&] {
          for (const std::string &axis : entry.axes)
            out.value(axis);
        });
        out.attribute("group_size", entry.groupSize);
        out.attribute("dtype", entry.dtype);
        out.attribute("bytes", entry.bytes);
        out.attribute("wire_bytes", entry.wireBytes);
        out.attribute("count", entry.count);
        out.attribute("tier", entry.tier);
        out.attribute("loc", entry.loc);
        out.attribute("op", entry.op);
        out.attribute("value", entry.value);
        out.attribute("cause", entry.why);
        out.attribute("remedy", entry.remedy);
        out.attribute("seconds", entry.seconds);
        // Without overlap all of it is waited for.
        out.attribute("exposed_seconds", entry.seconds);
      });
  });
}

static void printCollective(raw_ostream &os, const CommEntry &entry,
                            bool withCauses) {
  os << left_justify(entry.kind, 15) << " "
     << left_justify(join(entry.axes, ","), 12) << " "
     << format("%6lld %6lld", (long long)entry.groupSize,
               (long long)entry.count)
     << right_justify(bytesText(entry.bytes), 11)
     << right_justify(bytesText(entry.wireBytes), 11) << "  '" << entry.value
     << "'" << (entry.loc.empty() ? "" : " " + entry.loc) << "\n";
  if (!withCauses)
    return;
  if (!entry.why.empty())
    os << "    because " << entry.why << " (" << entry.op << ")\n";
  if (!entry.remedy.empty())
    os << "    to remove it: " << entry.remedy << "\n";
}

void printCollectives(raw_ostream &os, const std::vector<CommEntry> &entries,
                      bool withCauses) {
  if (entries.empty()) {
    os << "no communication\n";
    return;
  }
  // Those of a program's entry stand together.
  bool isOne = entries.front().entry == entries.back().entry;
  os << "collective      over          ranks  times      value       sent\n";
  for (size_t i = 0; i < entries.size();) {
    const std::string &name = entries[i].entry;
    if (!isOne)
      os << "in '" << name << "':\n";
    int64_t total = 0;
    for (; i < entries.size() && entries[i].entry == name; ++i) {
      printCollective(os, entries[i], withCauses);
      total += entries[i].wireBytes * entries[i].count;
    }
    os << "each rank sends at most " << bytesText(total) << " a step"
       << (isOne ? "" : " of '" + name + "'") << "\n";
  }
}

} // namespace cleave
