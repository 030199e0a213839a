//===- Harness.cpp - Compile, load and call kernels -----------------------===//
#include "test/passes/lower/kernels/Harness.h"
#include "mlir/Parser/Parser.h"
#include "runtime/cpu/Isa.h"
#include "llvm/ExecutionEngine/Orc/LLJIT.h"
#include "llvm/Object/ObjectFile.h"
#include "llvm/Support/MemoryBuffer.h"
#include <cmath>
#include <cstring>
#include <set>

using namespace mlir;
using namespace cleave::kernels;
using namespace cleave::kernels::test;

std::unique_ptr<MLIRContext> cleave::kernels::test::makeContext() {
  DialectRegistry registry;
  registerKernelDialects(registry);
  auto context =
      std::make_unique<MLIRContext>(registry, MLIRContext::Threading::DISABLED);
  context->loadAllAvailableDialects();
  return context;
}

OwningOpRef<ModuleOp> cleave::kernels::test::parse(MLIRContext &context,
                                                   llvm::StringRef text) {
  return parseSourceString<ModuleOp>(text, &context);
}

func::FuncOp cleave::kernels::test::firstKernel(ModuleOp module) {
  return *module.getOps<func::FuncOp>().begin();
}

bool cleave::kernels::test::runsHere(const CpuIsa &isa) {
  for (uint32_t level = 0; level <= rt::bestIsa(); ++level)
    if (isa.name() == rt::isaName(level))
      return true;
  return false;
}

static llvm::MemoryBufferRef asBuffer(llvm::ArrayRef<char> object) {
  return {llvm::StringRef(object.data(), object.size()), "kernel.o"};
}

std::vector<std::string>
cleave::kernels::test::undefinedSymbols(llvm::ArrayRef<char> object) {
  auto file = llvm::cantFail(
      llvm::object::ObjectFile::createObjectFile(asBuffer(object)));
  std::vector<std::string> names;
  for (const llvm::object::SymbolRef &symbol : file->symbols()) {
    uint32_t flags = llvm::cantFail(symbol.getFlags());
    std::string name = llvm::cantFail(symbol.getName()).str();
    if ((flags & llvm::object::SymbolRef::SF_Undefined) && !name.empty())
      names.push_back(name);
  }
  return names;
}

namespace {
class OrcLoaded : public Loaded {
public:
  std::unique_ptr<llvm::orc::LLJIT> jit;
  void *lookup(llvm::StringRef symbol) override {
    auto address = jit->lookup(symbol);
    if (!address) {
      llvm::consumeError(address.takeError());
      return nullptr;
    }
    return address->toPtr<void *>();
  }
};
} // namespace

std::unique_ptr<Loaded> Loaded::load(llvm::ArrayRef<char> object) {
  // The copy outlives the object's linking; compileKernel initialised X86.
  auto loaded = std::make_unique<OrcLoaded>();
  loaded->jit = llvm::cantFail(llvm::orc::LLJITBuilder().create());
  llvm::cantFail(
      loaded->jit->addObjectFile(llvm::MemoryBuffer::getMemBufferCopy(
          llvm::StringRef(object.data(), object.size()), "kernel.o")));
  return loaded;
}

static constexpr int64_t kGuard = 256;

Buffer::Buffer(int64_t bytes) : bytes(bytes) {
  storage.reset(new char[bytes + 2 * kGuard + kBufferAlignment]);
  std::memset(storage.get(), 0x5a, bytes + 2 * kGuard + kBufferAlignment);
  start = reinterpret_cast<char *>(llvm::alignTo(
      reinterpret_cast<uintptr_t>(storage.get()) + kGuard, kBufferAlignment));
}

bool Buffer::guardsIntact() const {
  for (int64_t i = 0; i < kGuard; ++i)
    if (start[bytes + i] != 0x5a)
      return false;
  for (const char *p = storage.get(); p < start; ++p)
    if (*p != 0x5a)
      return false;
  return true;
}

static int64_t elementBytes(Type type) {
  return type.isIndex() ? 8 : llvm::divideCeil(type.getIntOrFloatBitWidth(), 8);
}

int64_t cleave::kernels::test::bytesOf(const Datum &datum) {
  return datum.data.size() * elementBytes(datum.element);
}

void cleave::kernels::test::store(const Datum &from, void *to) {
  int64_t size = elementBytes(from.element);
  char *at = static_cast<char *>(to);
  for (const Scalar &s : from.data) {
    uint64_t bits = s.i;
    if (auto type = dyn_cast<FloatType>(from.element)) {
      APFloat f(s.d);
      bool lost;
      f.convert(type.getFloatSemantics(), APFloat::rmNearestTiesToEven, &lost);
      bits = f.bitcastToAPInt().getZExtValue();
    }
    std::memcpy(at, &bits, size);
    at += size;
  }
}

void cleave::kernels::test::fetch(const void *from, Datum &to) {
  int64_t size = elementBytes(to.element);
  const char *at = static_cast<const char *>(from);
  for (Scalar &s : to.data) {
    uint64_t bits = 0;
    std::memcpy(&bits, at, size);
    at += size;
    if (auto type = dyn_cast<FloatType>(to.element)) {
      APFloat f(type.getFloatSemantics(), APInt(type.getWidth(), bits));
      bool lost;
      f.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven, &lost);
      s.d = f.convertToDouble();
    } else {
      s.i = bits;
      s = roundTo(to.element, s);
    }
  }
}

void cleave::kernels::test::call(void *function, llvm::ArrayRef<int64_t> w) {
  // Integer arguments beyond those a function takes are harmless on x86-64.
  using W = int64_t;
  assert(w.size() <= 16 && "the harness passes at most 16 arguments");
  W a[16] = {};
  std::copy(w.begin(), w.end(), a);
  reinterpret_cast<void (*)(W, W, W, W, W, W, W, W, W, W, W, W, W, W, W, W)>(
      function)(a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7], a[8], a[9],
                a[10], a[11], a[12], a[13], a[14], a[15]);
}

void cleave::kernels::test::randomise(Datum &datum, std::mt19937_64 &rng,
                                      bool real) {
  std::normal_distribution<double> normal(0, 1);
  std::uniform_int_distribution<int64_t> small(-4, 4);
  for (Scalar &s : datum.data) {
    s.i = small(rng);
    s.d = real ? normal(rng) : double(s.i);
    s = roundTo(datum.element, s);
  }
}

static bool close(const Scalar &want, const Scalar &got, Type type,
                  const Tolerance &tolerance) {
  if (!isa<FloatType>(type))
    return want.i == got.i;
  if (std::isnan(want.d) || std::isnan(got.d))
    return std::isnan(want.d) && std::isnan(got.d);
  if (want.d == got.d)
    return true;
  return std::fabs(want.d - got.d) <=
         tolerance.absolute + tolerance.relative * std::fabs(want.d);
}

static std::string difference(const Datum &want, const Datum &got,
                              const Tolerance &tolerance) {
  for (size_t i = 0; i < want.data.size(); ++i)
    if (!close(want.data[i], got.data[i], want.element, tolerance)) {
      bool isFloat = isa<FloatType>(want.element);
      char text[160];
      std::snprintf(
          text, sizeof(text), "element %zu of %zu: want %.9g, got %.9g", i,
          want.data.size(), isFloat ? want.data[i].d : double(want.data[i].i),
          isFloat ? got.data[i].d : double(got.data[i].i));
      return text;
    }
  return "";
}

static std::string checkCalls(llvm::ArrayRef<char> object) {
  static const std::set<std::string> allowed = {"memcpy", "memset", "memmove",
                                                "_GLOBAL_OFFSET_TABLE_"};
  for (const std::string &name : undefinedSymbols(object))
    if (!allowed.count(name))
      return "calls " + name;
  return "";
}

std::string cleave::kernels::test::checkKernelOn(func::FuncOp kernel,
                                                 std::vector<Datum> arguments,
                                                 const CheckOptions &options) {
  CpuIsa isa = CpuIsa::get(options.isa);
  auto compiled = compileKernel(kernel, "kernel", isa);
  if (failed(compiled))
    return "does not compile";
  if (!options.allowCalls)
    if (std::string message = checkCalls(compiled->object); !message.empty())
      return message;
  if (!runsHere(isa))
    return "";
  std::string error;
  std::vector<Datum> want = evaluate(kernel, arguments, error);
  if (!error.empty())
    return error;
  std::unique_ptr<Loaded> loaded = Loaded::load(compiled->object);
  void *function = loaded->lookup("kernel");
  std::vector<Buffer> buffers;
  std::vector<int64_t> words;
  for (Datum &argument : arguments) {
    if (argument.isScalar) {
      words.push_back(argument.data[0].i);
      continue;
    }
    buffers.emplace_back(bytesOf(argument));
    store(argument, buffers.back().data());
    words.push_back(reinterpret_cast<int64_t>(buffers.back().data()));
  }
  buffers.emplace_back(compiled->info.scratchBytes);
  if (compiled->info.scratchBytes)
    words.push_back(reinterpret_cast<int64_t>(buffers.back().data()));
  call(function, words);
  for (Buffer &buffer : buffers)
    if (!buffer.guardsIntact())
      return "writes outside of a buffer";
  size_t firstOutput = arguments.size() - want.size();
  size_t numScalars = 0;
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (arguments[i].isScalar) {
      ++numScalars;
      continue;
    }
    Datum got = arguments[i];
    fetch(buffers[i - numScalars].data(), got);
    const Datum &expected =
        i < firstOutput ? arguments[i] : want[i - firstOutput];
    std::string d = difference(expected, got, options.tolerance);
    if (!d.empty())
      return (i < firstOutput
                  ? "input " + std::to_string(i) + " changed: "
                  : "result " + std::to_string(i - firstOutput) + " ") +
             d;
  }
  return "";
}

std::string cleave::kernels::test::checkKernel(MLIRContext &context,
                                               llvm::StringRef text,
                                               const CheckOptions &options) {
  OwningOpRef<ModuleOp> module = parse(context, text);
  if (!module)
    return "does not parse";
  func::FuncOp kernel = firstKernel(*module);
  std::mt19937_64 rng(options.seed);
  for (int trial = 0; trial < options.trials; ++trial) {
    std::vector<Datum> arguments;
    for (Type type : kernel.getArgumentTypes()) {
      arguments.push_back(makeDatum(type));
      randomise(arguments.back(), rng, options.real);
      if (arguments.back().isScalar)
        arguments.back().data[0].i = int64_t(rng() % 4);
    }
    std::string message = checkKernelOn(kernel, std::move(arguments), options);
    if (!message.empty())
      return message;
  }
  return "";
}
