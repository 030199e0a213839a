//===- StaticData.cpp - Constant C structs in the LLVM dialect ------------===//
#include "passes/lower/StaticData.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/DialectResourceBlobManager.h"
#include "passes/memory/MemoryPlan.h"

using namespace mlir;
using namespace cleave;

std::string Datum::key() const {
  std::string text(1, "iIpsa"[kind]);
  if (kind == Pointer)
    return text + symbol + ";";
  if (kind == I32 || kind == I64)
    return text + std::to_string(value) + ";";
  for (const Datum &field : fields)
    text += field.key();
  return text + ";";
}

StaticData::StaticData(ModuleOp module)
    : module(module), b(OpBuilder::atBlockBegin(module.getBody())),
      loc(UnknownLoc::get(module.getContext())) {}

std::string StaticData::fresh(StringRef stem) {
  return (stem + "." + Twine(next++)).str();
}

Type StaticData::typeOf(const Datum &datum) {
  MLIRContext *context = b.getContext();
  switch (datum.kind) {
  case Datum::I32:
    return b.getI32Type();
  case Datum::I64:
    return b.getI64Type();
  case Datum::Pointer:
    return LLVM::LLVMPointerType::get(context);
  case Datum::Struct:
    return LLVM::LLVMStructType::getLiteral(
        context, llvm::map_to_vector(datum.fields, [&](const Datum &field) {
          return typeOf(field);
        }));
  case Datum::Array:
    return LLVM::LLVMArrayType::get(typeOf(datum.fields.front()),
                                    datum.fields.size());
  }
  llvm_unreachable("all kinds are listed");
}

Value StaticData::build(OpBuilder &b, const Datum &datum) {
  Type type = typeOf(datum);
  switch (datum.kind) {
  case Datum::I32:
  case Datum::I64:
    return LLVM::ConstantOp::create(b, loc, type,
                                    b.getIntegerAttr(type, datum.value));
  case Datum::Pointer:
    if (datum.symbol.empty())
      return LLVM::ZeroOp::create(b, loc, type);
    return LLVM::AddressOfOp::create(b, loc, type, datum.symbol);
  case Datum::Struct:
  case Datum::Array:
    break;
  }
  Value value = LLVM::UndefOp::create(b, loc, type);
  for (auto [i, field] : llvm::enumerate(datum.fields)) {
    Value part = build(b, field);
    value = LLVM::InsertValueOp::create(b, loc, value, part,
                                        ArrayRef<int64_t>{int64_t(i)});
  }
  return value;
}

void StaticData::define(StringRef symbol, const Datum &datum) {
  bool isPrivate = symbol.contains('.');
  auto global = LLVM::GlobalOp::create(
      b, loc, typeOf(datum), /*isConstant=*/true,
      isPrivate ? LLVM::Linkage::Internal : LLVM::Linkage::External, symbol,
      Attribute());
  OpBuilder::InsertionGuard guard(b);
  Block *block = b.createBlock(&global.getInitializerRegion());
  b.setInsertionPointToStart(block);
  LLVM::ReturnOp::create(b, loc, build(b, datum));
}

Datum StaticData::addressOf(const Datum &datum) {
  std::string &symbol = known[datum.key()];
  if (symbol.empty()) {
    symbol = fresh("data");
    define(symbol, datum);
  }
  return Datum::pointer(symbol);
}

Datum StaticData::addressOfArray(std::vector<Datum> elements) {
  return elements.empty() ? Datum::null()
                          : addressOf(Datum::array(std::move(elements)));
}

Datum StaticData::string(StringRef text) {
  std::string &symbol = known["\"" + text.str()];
  if (!symbol.empty())
    return Datum::pointer(symbol);
  symbol = fresh("text");
  std::string bytes = text.str();
  bytes.push_back('\0');
  auto type = LLVM::LLVMArrayType::get(b.getI8Type(), bytes.size());
  LLVM::GlobalOp::create(b, loc, type, /*isConstant=*/true,
                         LLVM::Linkage::Internal, symbol,
                         b.getStringAttr(bytes));
  return Datum::pointer(symbol);
}

Datum StaticData::integers(ArrayRef<int64_t> values) {
  std::vector<Datum> elements;
  for (int64_t value : values)
    elements.push_back(Datum::i64(value));
  return addressOfArray(std::move(elements));
}

Datum StaticData::axes(ArrayRef<AxisRef> axes) {
  std::vector<Datum> refs;
  for (const AxisRef &ref : axes)
    refs.push_back(Datum::record(
        {Datum::i64(ref.axis), Datum::i64(ref.pre), Datum::i64(ref.size)}));
  return Datum::record(
      {Datum::i64(axes.size()), addressOfArray(std::move(refs))});
}

/// The elements in one dim, as a kind of attribute that LLVM IR has.
static DenseElementsAttr flatten(ElementsAttr elements) {
  auto type = cast<RankedTensorType>(elements.getType());
  auto flat =
      RankedTensorType::get({type.getNumElements()}, type.getElementType());
  if (auto resource = dyn_cast<DenseResourceElementsAttr>(elements))
    return DenseElementsAttr::getFromRawBuffer(
        flat, resource.getRawHandle().getBlob()->getData());
  return cast<DenseElementsAttr>(elements).reshape(flat);
}

Datum StaticData::tensor(ElementsAttr elements) {
  std::string &symbol = tensors[elements];
  if (!symbol.empty())
    return Datum::pointer(symbol);
  symbol = fresh("constant");
  DenseElementsAttr flat = flatten(elements);
  Type element = flat.getElementType();
  if (element.isIndex()) {
    element = b.getI64Type();
    flat = flat.mapValues(element, [](const APInt &v) { return v; });
  }
  auto type = LLVM::LLVMArrayType::get(element, flat.getNumElements());
  LLVM::GlobalOp::create(b, loc, type, /*isConstant=*/true,
                         LLVM::Linkage::Internal, symbol, flat,
                         kMemoryAlignment);
  return Datum::pointer(symbol);
}
