//===- Emit.cpp - From kernels and calls to objects -----------------------===//
#include "passes/lower/Emit.h"
#include "dialects/dispatch/Dispatch.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Pass/PassManager.h"
#include "passes/lower/FunctionLowering.h"
#include "passes/lower/Header.h"
#include "passes/lower/Passes.h"
#include "passes/lower/ProgramData.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/Endian.h"
#include "llvm/Support/ThreadPool.h"

using namespace mlir;
using namespace cleave;

namespace {
/// A kernel to compile, and its object afterwards.
struct Job {
  func::FuncOp kernel;
  kernels::IsaLevel isa;
  llvm::SmallVector<char, 0> object;
  bool cached = false;
  bool failed = false;
};

class Emitter {
public:
  Emitter(ModuleOp dispatched, const EmitOptions &options)
      : dispatched(dispatched), options(options),
        cache(options.cacheDirectory) {}
  FailureOr<EmitResult> run();

private:
  LogicalResult lower(kernels::IsaLevel isa);
  void recallScratch(ModuleOp module, kernels::IsaLevel isa);
  void compileKernel(Job &job);
  LogicalResult compileKernels();
  LogicalResult compileRest(ModuleOp module, kernels::IsaLevel isa);
  LogicalResult compileTable();

  ModuleOp dispatched;
  const EmitOptions &options;
  ObjectCache cache;
  EmitResult result;
  std::vector<OwningOpRef<ModuleOp>> variants;
  std::vector<Job> jobs;
  std::vector<llvm::SmallVector<char, 0>> objects;
  std::string header;
};
} // namespace

static bool isKernel(func::FuncOp func) {
  return func->hasAttr(dispatch::kKernelAttr);
}

/// Key of the bytes of temporaries of a kernel, beside its object.
static std::string scratchKey(StringRef key) {
  return (key + "-scratch").str();
}

/// Only those gain from tile registers and dot products.
static bool hasBf16Product(ModuleOp module) {
  return module
      .walk([](linalg::LinalgOp op) {
        bool found = linalg::isaContractionOpInterface(op) &&
                     llvm::all_of(op.getDpsInputs(), [](Value input) {
                       return getElementTypeOrSelf(input.getType()).isBF16();
                     });
        return found ? WalkResult::interrupt() : WalkResult::advance();
      })
      .wasInterrupted();
}

std::optional<std::vector<kernels::IsaLevel>>
cleave::parseIsas(StringRef text) {
  std::vector<kernels::IsaLevel> isas;
  if (text == "all")
    return llvm::to_vector(kernels::CpuIsa::all()).size()
               ? std::optional(std::vector<kernels::IsaLevel>(
                     kernels::CpuIsa::all().begin(),
                     kernels::CpuIsa::all().end()))
               : std::nullopt;
  if (text == "native") {
    for (kernels::IsaLevel level : kernels::CpuIsa::all())
      if (kernels::hostHas(kernels::CpuIsa::get(level)))
        isas = {level};
    return isas.empty() ? std::nullopt : std::optional(isas);
  }
  SmallVector<StringRef> names;
  text.split(names, ',');
  for (StringRef name : names) {
    std::optional<kernels::IsaLevel> level = parseIsa(name);
    if (!level)
      return std::nullopt;
    if (!llvm::is_contained(isas, *level))
      isas.push_back(*level);
  }
  return isas;
}

FailureOr<MemorySummary> cleave::planMemoryOf(ModuleOp dispatched,
                                              kernels::IsaLevel isa) {
  OwningOpRef<ModuleOp> copy = dispatched.clone();
  PassManager pm(dispatched.getContext());
  buildMemoryPipeline(pm, isa);
  if (failed(pm.run(*copy)))
    return failure();
  return summarizeMemory(*copy);
}

/// Temporaries of kernels that were compiled before are known; planning memory
/// need not lower the kernel to find out.
void Emitter::recallScratch(ModuleOp module, kernels::IsaLevel isa) {
  Builder b(module.getContext());
  for (auto func : module.getOps<func::FuncOp>()) {
    if (!isKernel(func))
      continue;
    auto known = cache.lookup(
        scratchKey(kernels::cacheKey(func, kernels::CpuIsa::get(isa))));
    if (known && known->size() == sizeof(int64_t))
      func->setAttr(
          dispatch::kScratchBytesAttr,
          b.getI64IntegerAttr(llvm::support::endian::read64le(known->data())));
  }
}

LogicalResult Emitter::lower(kernels::IsaLevel isa) {
  variants.push_back(dispatched.clone());
  ModuleOp module = *variants.back();
  MLIRContext *context = module.getContext();
  std::string name = kernels::CpuIsa::get(isa).name().str();
  PassManager packing(context), memory(context), code(context);
  packing.addPass(createPackWeights({name}));
  memory.addPass(createPlanMemory({name}));
  memory.addPass(createVerifyPlanned());
  buildLowerPipeline(code, isa);
  // The gates check what matters; verifying every attribute after every pass
  // takes longer than the passes.
  for (PassManager *pm : {&packing, &memory, &code})
    pm->enableVerifier(false);
  if (failed(packing.run(module)))
    return failure();
  recallScratch(module, isa);
  if (failed(memory.run(module)))
    return failure();
  if (result.isas.empty())
    result.memory = summarizeMemory(module);
  if (options.kind == EmitOptions::Kind::Library && header.empty()) {
    FailureOr<ProgramEdge> edge = ProgramEdge::read(module);
    if (failed(edge))
      return failure();
    header = headerOf(*edge, options.output);
  }
  if (failed(code.run(module)))
    return failure();
  result.isas.push_back(isa);
  llvm::StringMap<bool> known;
  for (auto func : module.getOps<func::FuncOp>())
    if (isKernel(func) &&
        known
            .try_emplace(func->getAttrOfType<StringAttr>(dispatch::kSymbolAttr),
                         true)
            .second)
      jobs.push_back({func, isa, {}, false, false});
  return success();
}

void Emitter::compileKernel(Job &job) {
  auto isa = kernels::CpuIsa::get(job.isa);
  std::string key = kernels::cacheKey(job.kernel, isa);
  if (auto object = cache.lookup(key)) {
    job.object = std::move(*object);
    job.cached = true;
    return;
  }
  FailureOr<kernels::CompiledKernel> compiled = kernels::compileKernel(
      job.kernel, job.kernel->getAttrOfType<StringAttr>(dispatch::kSymbolAttr),
      isa);
  if (failed(compiled)) {
    job.failed = true;
    return;
  }
  assert(compiled->info.scratchBytes ==
             job.kernel->getAttrOfType<IntegerAttr>(dispatch::kScratchBytesAttr)
                 .getInt() &&
         "planned and compiled kernels agree");
  job.object = std::move(compiled->object);
  cache.store(key, job.object);
  char scratch[sizeof(int64_t)];
  llvm::support::endian::write64le(scratch, compiled->info.scratchBytes);
  cache.store(scratchKey(key), scratch);
}

LogicalResult Emitter::compileKernels() {
  bool parallel = dispatched.getContext()->isMultithreadingEnabled();
  unsigned threads = parallel ? std::max(options.threads, 1u) : 1;
  if (threads == 1) {
    for (Job &job : jobs)
      compileKernel(job);
  } else {
    llvm::DefaultThreadPool pool(llvm::hardware_concurrency(threads));
    for (Job &job : jobs)
      pool.async([this, &job] { compileKernel(job); });
    pool.wait();
  }
  for (Job &job : jobs) {
    if (job.failed)
      return failure();
    ++result.numKernels;
    result.numCached += job.cached;
    objects.push_back(std::move(job.object));
  }
  return success();
}

/// Calls, static data: everything but the kernels.
LogicalResult Emitter::compileRest(ModuleOp module, kernels::IsaLevel isa) {
  for (auto func : llvm::make_early_inc_range(module.getOps<func::FuncOp>()))
    func.erase();
  llvm::SmallVector<char, 0> object;
  if (failed(kernels::compileModule(module, kernels::CpuIsa::get(isa), object)))
    return failure();
  objects.push_back(std::move(object));
  return success();
}

/// `cleave_programs`, the best variant first.
LogicalResult Emitter::compileTable() {
  OwningOpRef<ModuleOp> module =
      ModuleOp::create(UnknownLoc::get(dispatched.getContext()));
  StaticData data(*module);
  OpBuilder b = OpBuilder::atBlockBegin(module->getBody());
  std::vector<Datum> programs;
  for (kernels::IsaLevel isa : result.isas) {
    std::string symbol =
        "cleave_program_" + kernels::CpuIsa::get(isa).name().str();
    LLVM::GlobalOp::create(b, module->getLoc(), b.getI8Type(),
                           /*isConstant=*/true, LLVM::Linkage::External, symbol,
                           Attribute());
    programs.push_back(Datum::pointer(symbol));
  }
  data.define("cleave_num_programs", Datum::i64(programs.size()));
  data.define("cleave_programs", Datum::array(std::move(programs)));
  return compileRest(*module, kernels::IsaLevel::avx2);
}

FailureOr<EmitResult> Emitter::run() {
  Location loc = UnknownLoc::get(dispatched.getContext());
  std::vector<kernels::IsaLevel> isas = options.isas;
  if (isas.empty()) {
    isas = {kernels::IsaLevel::avx512, kernels::IsaLevel::avx2};
    if (hasBf16Product(dispatched))
      isas.insert(isas.end(),
                  {kernels::IsaLevel::avx512bf16, kernels::IsaLevel::amx});
  }
  // The runtime takes the first that the CPU can run.
  llvm::sort(isas, std::greater<>());
  for (kernels::IsaLevel isa : isas)
    if (failed(lower(isa)))
      return failure();
  if (!cache.problem().empty())
    emitWarning(loc) << cache.problem() << "; every kernel is compiled anew";
  if (failed(compileKernels()))
    return failure();
  for (auto [module, isa] : llvm::zip_equal(variants, result.isas))
    if (failed(compileRest(*module, isa)))
      return failure();
  if (failed(compileTable()))
    return failure();
  auto views = llvm::map_to_vector(
      objects, [](auto &object) { return ArrayRef<char>(object); });
  if (failed(linkProgram(loc, views, options)) ||
      (options.kind == EmitOptions::Kind::Library &&
       failed(writeFile(loc, headerPath(options.output), header))))
    return failure();
  return result;
}

FailureOr<EmitResult> cleave::emitProgram(ModuleOp dispatched,
                                          const EmitOptions &options) {
  return Emitter(dispatched, options).run();
}
