//===- EmitTest.cpp - Files that run, and what keeps them from it ---------===//
#include "passes/lower/Emit.h"
#include "dialects/comm/Comm.h"
#include "dialects/dispatch/Dispatch.h"
#include "mlir/Dialect/Func/Extensions/AllExtensions.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "passes/dispatch/Passes.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include <gtest/gtest.h>

using namespace mlir;
using namespace cleave;

namespace {

// Each rank doubles its half and adds what the other has.
constexpr const char *kModel = R"(
cleave.mesh @m = <["a"=2]>
func.func @f(%x: tensor<4xf32> {cleave.sharding = #cleave.sharding<@m, [{"a"}]>,
                                cleave.global_type = tensor<8xf32>})
    -> (tensor<4xf32> {cleave.sharding = #cleave.sharding<@m, [{}]>,
                       cleave.global_type = tensor<4xf32>}) {
  %e = tensor.empty() : tensor<4xf32>
  %y = linalg.add ins(%x, %x : tensor<4xf32>, tensor<4xf32>)
                  outs(%e : tensor<4xf32>) -> tensor<4xf32>
  %z = comm.all_reduce sum %y over @m ["a"] : tensor<4xf32>
  return %z : tensor<4xf32>
}
)";

class Emit : public testing::Test {
protected:
  void SetUp() override {
    DialectRegistry registry;
    kernels::registerKernelDialects(registry);
    func::registerAllExtensions(registry);
    registry
        .insert<CleaveDialect, comm::CommDialect, dispatch::DispatchDialect>();
    context.appendDialectRegistry(registry);
    context.loadAllAvailableDialects();
    ASSERT_FALSE(llvm::sys::fs::createUniqueDirectory("emit-test", directory));
    options.output = path("program");
    options.cacheDirectory = path("cache");
    options.isas = {kernels::IsaLevel::avx2};
  }
  void TearDown() override { llvm::sys::fs::remove_directories(directory); }

  std::string path(StringRef name) const {
    return (directory + "/" + name).str();
  }
  FailureOr<EmitResult> emit(StringRef text) {
    ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
      messages += diagnostic.str() + "\n";
      return success();
    });
    auto module = parseSourceString<ModuleOp>(text, &context);
    PassManager pm(&context);
    buildDispatchPipeline(pm);
    if (!module || failed(pm.run(*module)))
      return failure();
    return emitProgram(*module, options);
  }
  void write(StringRef name, StringRef content) const {
    std::error_code error;
    llvm::raw_fd_ostream(path(name), error) << content;
    ASSERT_FALSE(error);
  }
  std::string read(StringRef name) const {
    auto buffer = llvm::MemoryBuffer::getFile(path(name));
    return buffer ? (*buffer)->getBuffer().str() : "";
  }
  /// A .npy file of f32 in one dim.
  std::string npy(ArrayRef<float> values) const {
    std::string header = "{'descr': '<f4', 'fortran_order': False, 'shape': (" +
                         std::to_string(values.size()) + ",), }";
    header.resize(117, ' ');
    header += '\n';
    std::string file("\x93NUMPY\x01\x00\x76\x00", 10);
    return file + header +
           std::string(reinterpret_cast<const char *>(values.data()),
                       values.size() * sizeof(float));
  }

  MLIRContext context;
  llvm::SmallString<64> directory;
  EmitOptions options;
  std::string messages;
};

TEST_F(Emit, RanksComputeTogether) {
  ASSERT_TRUE(succeeded(emit(kModel))) << messages;
  write("x.npy", npy({0, 1, 2, 3, 10, 20, 30, 40}));
  std::string command = options.output +
                        " --entry f --input arg0=" + path("x.npy") +
                        " --output res0=" + path("z.npy");
  ASSERT_EQ(std::system(command.c_str()), 0);
  std::string out = read("z.npy");
  std::string expected = npy({20, 42, 64, 86});
  ASSERT_GE(out.size(), 16u);
  EXPECT_EQ(out.substr(out.size() - 16), expected.substr(expected.size() - 16));
}

TEST_F(Emit, TakesKernelsFromTheCache) {
  auto first = emit(kModel);
  ASSERT_TRUE(succeeded(first)) << messages;
  EXPECT_EQ(first->numKernels, 1u);
  EXPECT_EQ(first->numCached, 0u);
  auto second = emit(kModel);
  ASSERT_TRUE(succeeded(second)) << messages;
  EXPECT_EQ(second->numCached, 1u);
}

TEST_F(Emit, IgnoresDamagedFilesInTheCache) {
  ASSERT_TRUE(succeeded(emit(kModel))) << messages;
  std::error_code error;
  for (llvm::sys::fs::directory_iterator it(path("cache"), error), end;
       !error && it != end; it.increment(error))
    llvm::raw_fd_ostream(it->path(), error) << "damaged, but long enough";
  auto again = emit(kModel);
  ASSERT_TRUE(succeeded(again)) << messages;
  EXPECT_EQ(again->numCached, 0u);
}

TEST_F(Emit, LeavesTheOldFileWhenTheRuntimeIsMissing) {
  write("program", "old");
  options.runtimeDirectory = path("nowhere");
  EXPECT_TRUE(failed(emit(kModel)));
  EXPECT_EQ(read("program"), "old");
  EXPECT_NE(messages.find("found no libcleave_rt.a"), std::string::npos)
      << messages;
}

TEST_F(Emit, SaysWhereItCannotWrite) {
  options.output = path("no/such/folder");
  EXPECT_TRUE(failed(emit(kModel)));
  EXPECT_NE(messages.find("cannot write '" + options.output +
                          "': No such file or directory"),
            std::string::npos)
      << messages;
}

TEST_F(Emit, LibraryComesWithAHeader) {
  options.kind = EmitOptions::Kind::Library;
  options.output = path("libf.so");
  ASSERT_TRUE(succeeded(emit(kModel))) << messages;
  std::string header = read("libf.h");
  EXPECT_NE(header.find("input 'arg0': tensor<8xf32> cut as [{\"a\"}]"),
            std::string::npos)
      << header;
}

TEST_F(Emit, PlannedMemoryIsThatOfTheProgram) {
  auto result = emit(kModel);
  ASSERT_TRUE(succeeded(result)) << messages;
  // The sum overwrites the doubled values, and these the input.
  EXPECT_EQ(result->memory.arena, 16);
  EXPECT_EQ(result->memory.resident, 0);
}

TEST_F(Emit, RefusesScalarResultsOfEntries) {
  EXPECT_TRUE(failed(emit("func.func @f(%x: tensor<2xf32>) -> f32 {\n"
                          "  %c = arith.constant 0 : index\n"
                          "  %v = tensor.extract %x[%c] : tensor<2xf32>\n"
                          "  return %v : f32\n}")));
  EXPECT_NE(messages.find("returns a 'f32'; entries return tensors"),
            std::string::npos)
      << messages;
}

} // namespace
