//===- StaticData.h - Constant C structs in the LLVM dialect ---*- C++ -*-===//
// The structs of abi.h that a program carries. A Datum is a tree of fields in
// the order of the C struct; equal data become one global.
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_PASSES_LOWER_STATICDATA_H
#define CLEAVE_PASSES_LOWER_STATICDATA_H

#include "dialects/sharding/Sharding.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "llvm/ADT/StringMap.h"

namespace cleave {

/// A constant: an integer, the address of a symbol (null if it has no name), or
/// a struct or array of such.
struct Datum {
  enum Kind { I32, I64, Pointer, Struct, Array } kind;
  int64_t value = 0;
  std::string symbol;
  std::vector<Datum> fields;

  static Datum i32(int64_t value) { return {I32, value, "", {}}; }
  static Datum i64(int64_t value) { return {I64, value, "", {}}; }
  static Datum pointer(llvm::StringRef symbol) {
    return {Pointer, 0, symbol.str(), {}};
  }
  static Datum null() { return pointer(""); }
  static Datum record(std::vector<Datum> fields) {
    return {Struct, 0, "", std::move(fields)};
  }
  /// All of one type; not empty.
  static Datum array(std::vector<Datum> elements) {
    return {Array, 0, "", std::move(elements)};
  }
  /// Same text, same constant.
  std::string key() const;
};

/// Adds globals to the begin of a module.
class StaticData {
public:
  explicit StaticData(mlir::ModuleOp module);

  /// Zero-terminated.
  Datum string(llvm::StringRef text);
  Datum integers(llvm::ArrayRef<int64_t> values);
  /// CleaveAxes.
  Datum axes(llvm::ArrayRef<AxisRef> axes);
  /// The address of a private constant with this content.
  Datum addressOf(const Datum &datum);
  /// The address of an array; null for none.
  Datum addressOfArray(std::vector<Datum> elements);
  /// The elements of a constant tensor, aligned as buffers are.
  Datum tensor(mlir::ElementsAttr elements);
  /// A constant that other objects see.
  void define(llvm::StringRef symbol, const Datum &datum);

private:
  mlir::Type typeOf(const Datum &datum);
  mlir::Value build(mlir::OpBuilder &b, const Datum &datum);
  std::string fresh(llvm::StringRef stem);

  mlir::ModuleOp module;
  mlir::OpBuilder b;
  mlir::Location loc;
  llvm::StringMap<std::string> known;
  llvm::DenseMap<mlir::Attribute, std::string> tensors;
  unsigned next = 0;
};

} // namespace cleave

#endif // CLEAVE_PASSES_LOWER_STATICDATA_H
