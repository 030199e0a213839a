//===- Uneven.cpp - What uneven cuts cost ---------------------------------===//
#include "driver/Uneven.h"
#include "dialects/cleave/Cleave.h"
#include "dialects/dispatch/Dispatch.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/Support/FormatVariadic.h"
#include <map>

using namespace mlir;

namespace cleave {
namespace {

std::string axesText(const Mesh &mesh, ArrayRef<AxisRef> axes) {
  std::string text;
  for (AxisRef axis : axes) {
    text += (text.empty() ? "" : ",") + mesh.axes[axis.axis].name;
    if (axis != mesh.whole(axis.axis))
      text += ":(" + std::to_string(axis.pre) + ")" + std::to_string(axis.size);
  }
  return text;
}

/// Collects the cuts of one kind, by size and axes.
class Finder {
public:
  explicit Finder(const Mesh &mesh) : mesh(mesh) {}

  void add(DictionaryAttr attributes, StringRef name) {
    if (!attributes)
      return;
    auto type = attributes.getAs<TypeAttr>(kGlobalTypeAttr);
    auto attr = attributes.getAs<ShardingAttr>(kShardingAttr);
    if (!type || !attr)
      return;
    if (auto given = attributes.getAs<StringAttr>(dispatch::kNameAttr))
      name = given.getValue();
    Sharding sharding = toSharding(mesh, attr);
    auto shape = cast<RankedTensorType>(type.getValue()).getShape();
    for (auto [size, dim] : llvm::zip(shape, sharding.dims))
      if (size > 0 && size % dim.numShards() != 0)
        addTo(tensors[{size, dim.numShards(), axesText(mesh, dim.axes)}], name);
  }

  std::vector<UnevenCut> take() {
    std::vector<UnevenCut> cuts;
    for (auto &[key, names] : tensors) {
      auto [size, shards, axes] = key;
      cuts.push_back({size, shards, axes, names});
    }
    return cuts;
  }

private:
  /// A weight is an argument of several entries.
  static void addTo(std::vector<std::string> &names, StringRef name) {
    if (!llvm::is_contained(names, name))
      names.push_back(name.str());
  }

  const Mesh &mesh;
  std::map<std::tuple<int64_t, int64_t, std::string>, std::vector<std::string>>
      tensors;
};

} // namespace

std::vector<UnevenCut> findUneven(ModuleOp module, const Mesh &mesh) {
  Finder finder(mesh);
  for (auto function : module.getOps<func::FuncOp>()) {
    if (!function.isPublic())
      continue;
    for (unsigned i = 0, e = function.getNumArguments(); i < e; ++i)
      finder.add(function.getArgAttrDict(i), "arg" + std::to_string(i));
    for (unsigned i = 0, e = function.getNumResults(); i < e; ++i)
      finder.add(function.getResultAttrDict(i), "res" + std::to_string(i));
  }
  return finder.take();
}

void printUneven(llvm::raw_ostream &os, const std::vector<UnevenCut> &cuts) {
  for (const UnevenCut &cut : cuts) {
    os << "uneven: " << cut.size << " of '" << cut.tensors.front() << "' over "
       << cut.axes << " is " << cut.shards << " blocks of " << cut.block();
    if (cut.numEmpty() > 0)
      os << ", " << cut.numEmpty() << " of them empty";
    os << llvm::formatv(": a rank computes {0:f2} times its share",
                        cut.ratio());
    if (cut.tensors.size() > 1)
      os << " (and " << cut.tensors.size() - 1 << " more)";
    os << "\n";
  }
}

void writeUneven(llvm::json::OStream &out, const std::vector<UnevenCut> &cuts) {
  out.attributeArray("uneven", [&] {
    for (const UnevenCut &cut : cuts)
      out.object([&] {
        out.attribute("size", cut.size);
        out.attribute("axes", cut.axes);
        out.attribute("shards", cut.shards);
        out.attribute("block", cut.block());
        out.attribute("empty", cut.numEmpty());
        out.attributeArray("tensors", [&] {
          for (const std::string &name : cut.tensors)
            out.value(name);
        });
      });
  });
}

} // namespace cleave
