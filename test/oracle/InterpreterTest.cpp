//===- InterpreterTest.cpp - Ops on whole tensors, by hand ----------------===//
#include "test/oracle/Programs.h"
#include <cmath>

using namespace cleave::oracle;

namespace {
using InterpreterTest = ProgramTest;

/// A function of two tensors<2xT> that applies one scalar op.
std::string scalarProgram(llvm::StringRef op, llvm::StringRef in,
                          llvm::StringRef out) {
  std::string i = in.str(), o = out.str();
  return "#m = affine_map<(d0) -> (d0)>\n"
         "func.func @f(%a: tensor<2x" +
         i + ">, %b: tensor<2x" + i + ">) -> tensor<2x" + o +
         "> {\n  %e = tensor.empty() : tensor<2x" + o +
         ">\n  %r = linalg.generic {indexing_maps = [#m, #m, #m], "
         "iterator_types = [\"parallel\"]} ins(%a, %b : tensor<2x" +
         i + ">, tensor<2x" + i + ">) outs(%e : tensor<2x" + o +
         ">) {\n  ^bb0(%x: " + i + ", %y: " + i + ", %z: " + o + "):\n    " +
         op.str() + "\n    linalg.yield %v : " + o + "\n  } -> tensor<2x" + o +
         ">\n  return %r : tensor<2x" + o + ">\n}\n";
}

TEST_F(InterpreterTest, ComputesScalarsOfEveryType) {
  constexpr Kind kI8{Kind::Int, 8}, kBF16{Kind::BF16, 16}, kF16{Kind::F16, 16};
  const double inf = HUGE_VAL, nan = NAN;
  struct {
    const char *op, *in, *out;
    Kind kind;
    Numbers x, y, expected;
  } cases[] = {
      {"%v = arith.addi %x, %y : i8",
       "i8",
       "i8",
       kI8,
       {100, -128},
       {100, -1},
       {-56, 127}},
      {"%v = arith.muli %x, %y : i32",
       "i32",
       "i32",
       kI32,
       {65536, 3},
       {65536, -5},
       {0, -15}},
      {"%v = arith.divsi %x, %y : i32",
       "i32",
       "i32",
       kI32,
       {-7, 7},
       {2, -2},
       {-3, -3}},
      {"%v = arith.floordivsi %x, %y : i32",
       "i32",
       "i32",
       kI32,
       {-7, 7},
       {2, 2},
       {-4, 3}},
      {"%v = arith.ceildivsi %x, %y : i32",
       "i32",
       "i32",
       kI32,
       {-7, 7},
       {2, 2},
       {-3, 4}},
      {"%v = arith.divui %x, %y : i8",
       "i8",
       "i8",
       kI8,
       {-1, 9},
       {2, 2},
       {127, 4}},
      {"%v = arith.remsi %x, %y : i32",
       "i32",
       "i32",
       kI32,
       {-7, 7},
       {3, -3},
       {-1, 1}},
      {"%v = arith.maxui %x, %y : i32",
       "i32",
       "i32",
       kI32,
       {-1, 2},
       {5, 3},
       {-1, 3}},
      {"%v = arith.maxsi %x, %y : i32",
       "i32",
       "i32",
       kI32,
       {-1, 2},
       {5, 3},
       {5, 3}},
      {"%v = arith.shrui %x, %y : i8",
       "i8",
       "i8",
       kI8,
       {-128, 8},
       {7, 1},
       {1, 4}},
      {"%v = arith.shrsi %x, %y : i8",
       "i8",
       "i8",
       kI8,
       {-128, 8},
       {7, 1},
       {-1, 4}},
      {"%v = arith.cmpi ult, %x, %y : i32",
       "i32",
       "i1",
       kI32,
       {-1, 2},
       {5, 3},
       {0, 1}},
      {"%v = arith.cmpi slt, %x, %y : i32",
       "i32",
       "i1",
       kI32,
       {-1, 2},
       {5, 3},
       {1, 1}},
      {"%v = arith.addi %x, %y : i1", "i1", "i1", kI1, {1, 1}, {1, 0}, {0, 1}},
      {"%v = arith.uitofp %x : i1 to f32",
       "i1",
       "f32",
       kI1,
       {1, 0},
       {0, 0},
       {1, 0}},
      {"%v = arith.sitofp %x : i8 to f32",
       "i8",
       "f32",
       kI8,
       {-1, 100},
       {0, 0},
       {-1, 100}},
      {"%v = arith.uitofp %x : i8 to f32",
       "i8",
       "f32",
       kI8,
       {-1, 100},
       {0, 0},
       {255, 100}},
      {"%v = arith.fptosi %x : f32 to i8",
       "f32",
       "i8",
       kF32,
       {-3.7, 3.7},
       {0, 0},
       {-3, 3}},
      {"%v = arith.extui %x : i8 to i32",
       "i8",
       "i32",
       kI8,
       {-1, 1},
       {0, 0},
       {255, 1}},
      {"%v = arith.trunci %x : i32 to i8",
       "i32",
       "i8",
       kI32,
       {300, -129},
       {0, 0},
       {44, 127}},
      // 2^24 + 1 is no f32, 257 no bf16, 2049 no f16: ties to even.
      {"%v = arith.addf %x, %y : f32",
       "f32",
       "f32",
       kF32,
       {16777216, 1.5},
       {1, 2},
       {16777216, 3.5}},
      {"%v = arith.addf %x, %y : bf16",
       "bf16",
       "bf16",
       kBF16,
       {256, 256},
       {1, 3},
       {256, 260}},
      {"%v = arith.addf %x, %y : f16",
       "f16",
       "f16",
       kF16,
       {2048, 60000},
       {1, 60000},
       {2048, inf}},
      {"%v = arith.maximumf %x, %y : f32",
       "f32",
       "f32",
       kF32,
       {nan, 1},
       {1, 2},
       {nan, 2}},
      {"%v = arith.maxnumf %x, %y : f32",
       "f32",
       "f32",
       kF32,
       {nan, 1},
       {1, 2},
       {1, 2}},
      {"%v = arith.cmpf une, %x, %y : f32",
       "f32",
       "i1",
       kF32,
       {nan, 1},
       {1, 1},
       {1, 0}},
      {"%v = arith.cmpf ogt, %x, %y : f32",
       "f32",
       "i1",
       kF32,
       {nan, 2},
       {1, 1},
       {0, 1}},
      {"%v = math.exp %x : f32", "f32", "f32", kF32, {0, -inf}, {0, 0}, {1, 0}},
      {"%v = math.rsqrt %x : f32",
       "f32",
       "f32",
       kF32,
       {4, 0.25},
       {0, 0},
       {0.5, 2}},
      {"%v = math.roundeven %x : f32",
       "f32",
       "f32",
       kF32,
       {2.5, 3.5},
       {0, 0},
       {2, 4}},
      {"%v = arith.bitcast %x : f32 to i32",
       "f32",
       "i32",
       kF32,
       {1, -0.0},
       {0, 0},
       {0x3f800000, -2147483648.0}},
      {"%c = arith.cmpf ogt, %x, %y : f32\n"
       "%v = scf.if %c -> (f32) { scf.yield %x : f32 } else {\n"
       "  %n = arith.negf %y : f32\n scf.yield %n : f32 }",
       "f32",
       "f32",
       kF32,
       {3, 1},
       {2, 5},
       {3, -5}},
  };
  for (const auto &test : cases) {
    auto results = run(
        scalarProgram(test.op, test.in, test.out),
        {tensorOf(test.kind, {2}, test.x), tensorOf(test.kind, {2}, test.y)});
    ASSERT_EQ(results.size(), 1u) << test.op << ": " << error;
    Numbers got = numbers(results[0]);
    for (int i = 0; i < 2; ++i)
      EXPECT_TRUE(got[i] == test.expected[i] ||
                  (std::isnan(got[i]) && std::isnan(test.expected[i])))
          << test.op << ": " << got[i] << ", not " << test.expected[i];
  }
}

TEST_F(InterpreterTest, StopsWhereACpuWould) {
  std::string program =
      scalarProgram("%v = arith.divsi %x, %y : i32", "i32", "i32");
  run(program, {tensorOf(kI32, {2}, {1, 2}), tensorOf(kI32, {2}, {1, 0})});
  EXPECT_NE(error.find("division of an integer by zero"), std::string::npos);
  run(program,
      {tensorOf(kI32, {2}, {1, -2147483648.0}), tensorOf(kI32, {2}, {1, -1})});
  EXPECT_NE(error.find("least integer by -1"), std::string::npos);
}

TEST_F(InterpreterTest, Products) {
  Tensor a = tensorOf(kF32, {2, 2}, {1, 2, 3, 4});
  Tensor c = tensorOf(kF32, {2, 2}, {10, 20, 30, 40});
  auto results = run(R"(
    func.func @f(%a: tensor<2x2xf32>, %c: tensor<2x2xf32>)
        -> (tensor<2x2xf32>, tensor<2xf32>) {
      %0 = linalg.matmul ins(%a, %a : tensor<2x2xf32>, tensor<2x2xf32>)
             outs(%c : tensor<2x2xf32>) -> tensor<2x2xf32>
      %v = arith.constant dense<[1.0, -1.0]> : tensor<2xf32>
      %z = arith.constant dense<0.0> : tensor<2xf32>
      %1 = linalg.vecmat ins(%v, %a : tensor<2xf32>, tensor<2x2xf32>)
             outs(%z : tensor<2xf32>) -> tensor<2xf32>
      return %0, %1 : tensor<2x2xf32>, tensor<2xf32>
    })",
                     {a, c});
  ASSERT_EQ(results.size(), 2u) << error;
  EXPECT_EQ(numbers(results[0]), (Numbers{17, 30, 45, 62}));
  EXPECT_EQ(numbers(results[1]), (Numbers{-2, -2}));
}

TEST_F(InterpreterTest, ReductionsWindowsAndIndices) {
  auto results = run(R"(
    #id = affine_map<(d0, d1) -> (d0, d1)>
    #row = affine_map<(d0, d1) -> (d0)>
    #in = affine_map<(d0, d1) -> (d0 * 2 + d1)>
    #win = affine_map<(d0, d1) -> (d1)>
    func.func @f(%a: tensor<2x3xf32>, %w: tensor<5xf32>)
        -> (tensor<2xf32>, tensor<2xi32>, tensor<2xf32>, tensor<2x3xf32>) {
      %low = arith.constant dense<0xFF800000> : tensor<2xf32>
      %at = arith.constant dense<0> : tensor<2xi32>
      %0:2 = linalg.generic {indexing_maps = [#id, #row, #row],
          iterator_types = ["parallel", "reduction"]}
          ins(%a : tensor<2x3xf32>) outs(%low, %at : tensor<2xf32>, tensor<2xi32>) {
      ^bb0(%x: f32, %m: f32, %i: i32):
        %j = linalg.index 1 : index
        %k = arith.index_cast %j : index to i32
        %g = arith.cmpf ogt, %x, %m : f32
        %n = arith.select %g, %x, %m : f32
        %l = arith.select %g, %k, %i : i32
        linalg.yield %n, %l : f32, i32
      } -> (tensor<2xf32>, tensor<2xi32>)
      %window = tensor.empty() : tensor<3xf32>
      %zero = arith.constant dense<0.0> : tensor<2xf32>
      %1 = linalg.generic {indexing_maps = [#in, #win, #row],
          iterator_types = ["parallel", "reduction"]}
          ins(%w, %window : tensor<5xf32>, tensor<3xf32>) outs(%zero : tensor<2xf32>) {
      ^bb0(%x: f32, %u: f32, %s: f32):
        %t = arith.addf %s, %x : f32
        linalg.yield %t : f32
      } -> tensor<2xf32>
      %2 = linalg.softmax dimension(1) ins(%a : tensor<2x3xf32>)
             outs(%a : tensor<2x3xf32>) -> tensor<2x3xf32>
      return %0#0, %0#1, %1, %2 : tensor<2xf32>, tensor<2xi32>, tensor<2xf32>, tensor<2x3xf32>
    })",
                     {tensorOf(kF32, {2, 3}, {1, 5, 5, 2, 2, 2}),
                      tensorOf(kF32, {5}, {1, 2, 3, 4, 5})});
  ASSERT_EQ(results.size(), 4u) << error;
  EXPECT_EQ(numbers(results[0]), (Numbers{5, 2}));
  EXPECT_EQ(numbers(results[1]), (Numbers{1, 0}));
  EXPECT_EQ(numbers(results[2]), (Numbers{6, 12}));
  EXPECT_NEAR(results[3].data[0].f, std::exp(-4) / (2 + std::exp(-4)), 1e-6);
  EXPECT_NEAR(results[3].data[3].f, 1.0 / 3, 1e-6);
}

TEST_F(InterpreterTest, OpsThatMoveElements) {
  auto results = run(R"(
    func.func @f(%a: tensor<2x3xi32>) -> (tensor<3x2xi32>, tensor<2xi32>,
        tensor<2x3xi32>, tensor<2x5xi32>, tensor<3x4xi32>, tensor<2x1x3xi32>,
        tensor<6xi32>, tensor<2x2xi32>) {
      %e = tensor.empty() : tensor<3x2xi32>
      %0 = linalg.transpose ins(%a : tensor<2x3xi32>) outs(%e : tensor<3x2xi32>) permutation = [1, 0]
      %1 = tensor.extract_slice %a[1, 0] [1, 2] [1, 2] : tensor<2x3xi32> to tensor<2xi32>
      %2 = tensor.insert_slice %1 into %a[0, 1] [1, 2] [1, 1] : tensor<2xi32> into tensor<2x3xi32>
      %s = tensor.extract_slice %a[0, 0] [2, 2] [1, 1] : tensor<2x3xi32> to tensor<2x2xi32>
      %3 = tensor.concat dim(1) %s, %a : (tensor<2x2xi32>, tensor<2x3xi32>) -> tensor<2x5xi32>
      %c = arith.constant 9 : i32
      %4 = tensor.pad %a low[1, 0] high[0, 1] {
      ^bb0(%i: index, %j: index):
        tensor.yield %c : i32
      } : tensor<2x3xi32> to tensor<3x4xi32>
      %5 = tensor.expand_shape %a [[0, 1], [2]] output_shape [2, 1, 3] : tensor<2x3xi32> into tensor<2x1x3xi32>
      %6 = tensor.collapse_shape %a [[0, 1]] : tensor<2x3xi32> into tensor<6xi32>
      %at = arith.constant dense<[[2], [0]]> : tensor<2x1xindex>
      %7 = tensor.gather %a[%at] gather_dims([1]) : (tensor<2x3xi32>, tensor<2x1xindex>) -> tensor<2x2xi32>
      return %0, %1, %2, %3, %4, %5, %6, %7 : tensor<3x2xi32>, tensor<2xi32>,
        tensor<2x3xi32>, tensor<2x5xi32>, tensor<3x4xi32>, tensor<2x1x3xi32>, tensor<6xi32>, tensor<2x2xi32>
    })",
                     {tensorOf(kI32, {2, 3}, {1, 2, 3, 4, 5, 6})});
  ASSERT_EQ(results.size(), 8u) << error;
  EXPECT_EQ(numbers(results[0]), (Numbers{1, 4, 2, 5, 3, 6}));
  EXPECT_EQ(numbers(results[1]), (Numbers{4, 6}));
  EXPECT_EQ(numbers(results[2]), (Numbers{1, 4, 6, 4, 5, 6}));
  EXPECT_EQ(numbers(results[3]), (Numbers{1, 2, 1, 2, 3, 4, 5, 4, 5, 6}));
  EXPECT_EQ(numbers(results[4]), (Numbers{9, 9, 9, 9, 1, 2, 3, 9, 4, 5, 6, 9}));
  EXPECT_EQ(numbers(results[5]), (Numbers{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(numbers(results[6]), (Numbers{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(numbers(results[7]), (Numbers{3, 6, 1, 4}));
}

TEST_F(InterpreterTest, CallsLoopsAndCapturedValues) {
  auto results =
      run(R"(
    #m = affine_map<(d0) -> (d0)>
    func.func private @twice(%x: tensor<3xi32>) -> tensor<3xi32> {
      %0 = arith.addi %x, %x : tensor<3xi32>
      return %0 : tensor<3xi32>
    }
    func.func @f(%a: tensor<3xi32>, %ids: tensor<3xi32>) -> (tensor<3xi32>, tensor<3xi32>) {
      %low = arith.constant 0 : index
      %high = arith.constant 3 : index
      %step = arith.constant 1 : index
      %0 = scf.for %i = %low to %high step %step iter_args(%x = %a) -> tensor<3xi32> {
        %row = tensor.extract_slice %a[%i] [1] [1] : tensor<3xi32> to tensor<1xi32>
        %next = func.call @twice(%x) : (tensor<3xi32>) -> tensor<3xi32>
        %y = tensor.insert_slice %row into %next[%i] [1] [1] : tensor<1xi32> into tensor<3xi32>
        scf.yield %y : tensor<3xi32>
      }
      %e = tensor.empty() : tensor<3xi32>
      %1 = linalg.generic {indexing_maps = [#m, #m], iterator_types = ["parallel"]}
          ins(%ids : tensor<3xi32>) outs(%e : tensor<3xi32>) {
      ^bb0(%id: i32, %o: i32):
        %j = arith.index_cast %id : i32 to index
        %v = tensor.extract %a[%j] : tensor<3xi32>
        linalg.yield %v : i32
      } -> tensor<3xi32>
      return %0, %1 : tensor<3xi32>, tensor<3xi32>
    })",
          {tensorOf(kI32, {3}, {1, 10, 100}), tensorOf(kI32, {3}, {2, 0, 1})});
  ASSERT_EQ(results.size(), 2u) << error;
  EXPECT_EQ(numbers(results[0]), (Numbers{4, 20, 100}));
  EXPECT_EQ(numbers(results[1]), (Numbers{100, 1, 10}));
}

TEST_F(InterpreterTest, ReadingOutOfBoundsIsAnError) {
  const char *program = R"(
    #m = affine_map<(d0) -> (d0)>
    func.func @f(%a: tensor<3xi32>, %ids: tensor<1xi32>) -> tensor<1xi32> {
      %e = tensor.empty() : tensor<1xi32>
      %1 = linalg.generic {indexing_maps = [#m, #m], iterator_types = ["parallel"]}
          ins(%ids : tensor<1xi32>) outs(%e : tensor<1xi32>) {
      ^bb0(%id: i32, %o: i32):
        %j = arith.index_cast %id : i32 to index
        %v = tensor.extract %a[%j] : tensor<3xi32>
        linalg.yield %v : i32
      } -> tensor<1xi32>
      return %1 : tensor<1xi32>
    })";
  run(program, {tensorOf(kI32, {3}, {1, 2, 3}), tensorOf(kI32, {1}, {3})});
  EXPECT_NE(error.find("reads index 3 of a dim of size 3"), std::string::npos);
}

TEST_F(InterpreterTest, HintsDoNothing) {
  auto results = run(R"(
    cleave.mesh @m = <["a"=2]>
    func.func @f(%a: tensor<2xi32>) -> tensor<2xi32> {
      %0 = cleave.constraint %a <@m, [{"a"}]> : tensor<2xi32>
      %1 = cleave.barrier %0 allowed_direction=NONE : tensor<2xi32>
      cleave.group %1 group_id=0 : tensor<2xi32>
      return %1 : tensor<2xi32>
    })",
                     {tensorOf(kI32, {2}, {1, 2})});
  ASSERT_EQ(results.size(), 1u) << error;
  EXPECT_EQ(numbers(results[0]), (Numbers{1, 2}));
}

TEST_F(InterpreterTest, EmptyTensorsArePoison) {
  auto module = parse(R"(
    func.func @f() -> tensor<16xi32> {
      %0 = tensor.empty() : tensor<16xi32>
      return %0 : tensor<16xi32>
    })");
  auto one = unwrap(Interpreter(*module, 1).run("f", {}));
  auto other = unwrap(Interpreter(*module, 2).run("f", {}));
  EXPECT_NE(numbers(one[0]), numbers(other[0]));
}

TEST_F(InterpreterTest, GivesUpOnEndlessPrograms) {
  auto module = parse(R"(
    func.func @f(%a: tensor<1xi32>) -> tensor<1xi32> {
      %low = arith.constant 0 : index
      %high = arith.constant 1000000000000 : index
      %step = arith.constant 1 : index
      %0 = scf.for %i = %low to %high step %step iter_args(%x = %a) -> tensor<1xi32> {
        scf.yield %x : tensor<1xi32>
      }
      return %0 : tensor<1xi32>
    })");
  unwrap(Interpreter(*module, 1, 1000).run("f", {tensorOf(kI32, {1}, {1})}));
  EXPECT_NE(error.find("too many steps"), std::string::npos);
}
} // namespace
