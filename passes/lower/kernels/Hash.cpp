//===- Hash.cpp - Structural hash of a kernel -----------------------------===//
// Values are numbered in the order they are defined, so names do not matter.
// Two kernels of one hash are the same text up to names, and share one object.
//===----------------------------------------------------------------------===//
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "passes/lower/kernels/Internal.h"
#include "passes/lower/kernels/Kernels.h"
#include "llvm/Config/llvm-config.h"
#include "llvm/Support/BLAKE3.h"

using namespace mlir;
using namespace cleave::kernels;

namespace {
/// Feeds a canonical text of a function to the hash.
class Hasher {
public:
  void region(Region &region) {
    text("{");
    for (Block &block : region) {
      blocks.try_emplace(&block, blocks.size());
      for (BlockArgument argument : block.getArguments()) {
        define(argument);
        type(argument.getType());
      }
    }
    for (Block &block : region)
      for (Operation &op : block)
        operation(op);
    text("}");
  }

  void type(Type type) { print(type); }
  void attribute(Attribute attribute) {
    if (auto dense = dyn_cast<DenseElementsAttr>(attribute)) {
      // Raw bytes: a printed large constant would be elided or slow.
      print(dense.getType());
      ArrayRef<char> raw = dense.getRawData();
      text(StringRef(raw.data(), raw.size()));
      return;
    }
    print(attribute);
  }
  void text(StringRef text) {
    uint64_t size = text.size();
    state.update(llvm::ArrayRef<uint8_t>(
        reinterpret_cast<const uint8_t *>(&size), sizeof(size)));
    state.update(text);
  }
  std::string finish() {
    auto digest = state.final<16>();
    return llvm::toHex(digest, /*LowerCase=*/true);
  }

private:
  void define(Value value) { values.try_emplace(value, values.size()); }
  template <typename T> void print(T object) {
    std::string buffer;
    llvm::raw_string_ostream stream(buffer);
    stream << object;
    text(buffer);
  }
  void operation(Operation &op) {
    text(op.getName().getStringRef());
    for (Value operand : op.getOperands())
      text(std::to_string(values.lookup(operand)));
    for (Block *successor : op.getSuccessors())
      text(std::to_string(blocks.lookup(successor)));
    for (NamedAttribute named : op.getPropertiesAsAttribute()
                                    ? propertyList(op)
                                    : SmallVector<NamedAttribute>()) {
      text(named.getName());
      attribute(named.getValue());
    }
    for (Value result : op.getResults()) {
      define(result);
      type(result.getType());
    }
    for (Region &r : op.getRegions())
      region(r);
    text(";");
  }
  static SmallVector<NamedAttribute> propertyList(Operation &op) {
    auto dict = dyn_cast<DictionaryAttr>(op.getPropertiesAsAttribute());
    return dict ? llvm::to_vector(dict.getValue())
                : SmallVector<NamedAttribute>();
  }

  llvm::BLAKE3 state;
  DenseMap<Value, unsigned> values;
  DenseMap<Block *, unsigned> blocks;
};
} // namespace

std::string cleave::kernels::hashKernel(func::FuncOp kernel) {
  Hasher hasher;
  hasher.type(kernel.getFunctionType());
  hasher.region(kernel.getBody());
  return hasher.finish();
}

std::string cleave::kernels::cacheKey(func::FuncOp kernel, const CpuIsa &isa) {
  return hashKernel(kernel) + "-" + isa.name().str() + "-g" +
         std::to_string(kGeneratorVersion) + "-llvm" + LLVM_VERSION_STRING;
}
