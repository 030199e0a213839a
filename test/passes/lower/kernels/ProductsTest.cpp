//===- ProductsTest.cpp - Register-tiled products against the evaluator ---===//
#include "mlir/IR/OwningOpRef.h"
#include "test/passes/lower/kernels/Harness.h"
#include <algorithm>
#include <gtest/gtest.h>
#include <map>

using namespace cleave::kernels;
using namespace cleave::kernels::test;

namespace {
struct Case {
  int64_t m, n, k;
  std::string a, b, c;    // element types
  std::string mapA, mapB; // "mk" or "km", "kn" or "nk"
  bool epilogue = false;
};

std::string shapeOf(const Case &c, const std::string &dims) {
  std::string text;
  for (char d : dims)
    text += std::to_string(d == 'm' ? c.m : d == 'n' ? c.n : c.k) + "x";
  return text;
}

std::string mapOf(const std::string &dims) {
  std::string text = "affine_map<(m, n, k) -> (";
  for (size_t i = 0; i < dims.size(); ++i)
    text += (i ? std::string(", ") : std::string()) + dims[i];
  return text + ")>";
}

/// relu(A B + bias) + residual when `epilogue`, else A B.
std::string textOf(const Case &c) {
  std::string a = "tensor<" + shapeOf(c, c.mapA) + c.a + ">";
  std::string b = "tensor<" + shapeOf(c, c.mapB) + c.b + ">";
  std::string out = "tensor<" + shapeOf(c, "mn") + c.c + ">";
  std::string bias = "tensor<" + std::to_string(c.n) + "x" + c.c + ">";
  bool isFloat = c.c[0] != 'i';
  std::string s = isFloat ? "f" : "i", x = "%x", y = "%y", casts;
  auto widen = [&](std::string &v, const std::string &from) {
    if (from == c.c)
      return;
    casts += "    " + v + "e = arith." + (isFloat ? "extf " : "extsi ") + v +
             " : " + from + " to " + c.c + "\n";
    v += "e";
  };
  widen(x, c.a);
  widen(y, c.b);
  std::string text =
      "func.func private @k(%a: " + a + ", %b: " + b + ", %bias: " + bias +
      ", %res: " + out + ", %out: " + out + ") -> " + out +
      " {\n  %z = arith.constant " + (isFloat ? "0.0" : "0") + " : " + c.c +
      "\n  %e = tensor.empty() : " + out +
      "\n  %f = linalg.fill ins(%z : " + c.c + ") outs(%e : " + out + ") -> " +
      out + "\n  %p = linalg.generic {indexing_maps = [" + mapOf(c.mapA) +
      ", " + mapOf(c.mapB) + ", " + mapOf("mn") +
      "], iterator_types = [\"parallel\", \"parallel\", \"reduction\"]} ins("
      "%a, %b : " +
      a + ", " + b + ") outs(%f : " + out + ") {\n  ^bb0(%x: " + c.a +
      ", %y: " + c.b + ", %s: " + c.c + "):\n" + casts + "    %u = arith.mul" +
      s + " " + x + ", " + y + " : " + c.c + "\n    %v = arith.add" + s +
      " %s, %u : " + c.c + "\n    linalg.yield %v : " + c.c + "\n  } -> " +
      out + "\n";
  std::string result = "%p";
  if (c.epilogue) {
    text += "  %e2 = tensor.empty() : " + out +
            "\n  %q = linalg.generic {indexing_maps = [affine_map<(i, j) -> "
            "(i, j)>, affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (i, "
            "j)>, affine_map<(i, j) -> (i, j)>], iterator_types = "
            "[\"parallel\", \"parallel\"]} ins(%p, %bias, %res : " +
            out + ", " + bias + ", " + out + ") outs(%e2 : " + out +
            ") {\n  ^bb0(%x: " + c.c + ", %y: " + c.c + ", %r: " + c.c +
            ", %o: " + c.c + "):\n    %u = arith.add" + s + " %x, %y : " + c.c +
            "\n    %v = arith.max" + (isFloat ? "imumf" : "si") +
            " %u, %z : " + c.c + "\n    %w = arith.add" + s +
            " %v, %r : " + c.c + "\n    linalg.yield %w : " + c.c +
            "\n  } -> " + out + "\n";
    result = "%q";
  }
  return text + "  return " + result + " : " + out + "\n}\n";
}

mlir::MLIRContext &context() {
  static std::unique_ptr<mlir::MLIRContext> context = makeContext();
  return *context;
}

/// Packs argument 1 by its pack kernel, then runs the packed kernel.
std::string checkPacked(const Case &c, IsaLevel level, uint64_t seed) {
  CpuIsa isa = CpuIsa::get(level);
  auto module = parse(context(), textOf(c));
  auto kernel = firstKernel(*module);
  auto plan = planPacking(kernel, 1, isa);
  if (!plan)
    return "no plan";
  auto pack = buildPackKernel(*module, *plan, "pack");
  std::mt19937_64 rng(seed);
  std::vector<Datum> arguments;
  for (mlir::Type type : kernel.getArgumentTypes()) {
    arguments.push_back(makeDatum(type));
    randomise(arguments.back(), rng, /*real=*/false);
  }
  std::string error;
  std::vector<Datum> want = evaluate(kernel, arguments, error);
  applyPacking(kernel, *plan);
  auto compiledPack = compileKernel(pack, "pack", isa);
  auto compiled = compileKernel(kernel, "k", isa);
  if (failed(compiledPack) || failed(compiled))
    return "does not compile";
  if (!runsHere(isa))
    return "";
  auto loadedPack = Loaded::load(compiledPack->object);
  auto loaded = Loaded::load(compiled->object);
  std::vector<Buffer> buffers;
  std::vector<int64_t> words;
  auto word = [](Buffer &b) { return reinterpret_cast<int64_t>(b.data()); };
  for (Datum &d : arguments) {
    buffers.emplace_back(bytesOf(d));
    store(d, buffers.back().data());
    words.push_back(word(buffers.back()));
  }
  Datum packedDatum = makeDatum(plan->packed);
  Buffer packed(bytesOf(packedDatum));
  Buffer packScratch(compiledPack->info.scratchBytes);
  call(loadedPack->lookup("pack"), {words[1], word(packed), word(packScratch)});
  if (!packed.guardsIntact())
    return "packing writes outside";
  words[1] = word(packed);
  Buffer scratch(compiled->info.scratchBytes);
  words.push_back(word(scratch));
  call(loaded->lookup("k"), words);
  Datum got = arguments.back();
  fetch(buffers.back().data(), got);
  bool isFloat = mlir::isa<mlir::FloatType>(got.element);
  for (size_t i = 0; i < got.data.size(); ++i)
    if (isFloat ? want[0].data[i].d != got.data[i].d
                : want[0].data[i].i != got.data[i].i)
      return "element " + std::to_string(i) + " differs";
  return "";
}

std::vector<Case> cases() {
  std::vector<Case> list;
  for (auto [a, b] : {std::pair("mk", "kn"), std::pair("km", "kn"),
                      std::pair("mk", "nk"), std::pair("km", "nk")})
    for (auto [m, n, k] : {std::tuple(1, 33, 70), std::tuple(4, 16, 8),
                           std::tuple(13, 37, 29), std::tuple(7, 65, 3)})
      list.push_back({m, n, k, "f32", "f32", "f32", a, b, m != 4});
  // K in several blocks, the last one shorter; rows past one block.
  list.push_back({13, 21, 531, "f32", "f32", "f32", "mk", "kn", true});
  list.push_back({25, 16, 768, "f32", "f32", "f32", "mk", "kn", true});
  list.push_back({390, 16, 5, "f32", "f32", "f32", "mk", "kn", true});
  list.push_back({1, 48, 1100, "f32", "f32", "f32", "mk", "kn", false});
  list.push_back({17, 35, 40, "bf16", "bf16", "f32", "mk", "kn", true});
  list.push_back({17, 35, 39, "f32", "bf16", "f32", "mk", "nk", true});
  list.push_back({35, 50, 64, "bf16", "bf16", "f32", "mk", "nk", true});
  list.push_back({9, 33, 20, "f16", "f16", "f32", "mk", "kn", true});
  list.push_back({9, 33, 20, "f64", "f64", "f64", "mk", "kn", true});
  list.push_back({9, 33, 20, "i32", "i32", "i32", "mk", "kn", true});
  list.push_back({9, 33, 20, "i8", "i8", "i32", "mk", "kn", true});
  return list;
}

std::string nameOf(const Case &c) {
  return std::to_string(c.m) + "x" + std::to_string(c.n) + "x" +
         std::to_string(c.k) + " " + c.a + " " + c.b + " " + c.mapA + " " +
         c.mapB;
}

/// All levels that run here, and the others for a few cases: these are only
/// compiled.
std::vector<IsaLevel> levelsFor(const Case &c) {
  std::vector<IsaLevel> levels;
  for (IsaLevel level : CpuIsa::all())
    if (runsHere(CpuIsa::get(level)) || c.m == 17 || c.m == 35)
      levels.push_back(level);
  return levels;
}

TEST(Products, PlainOperands) {
  for (IsaLevel level : CpuIsa::all())
    if (!runsHere(CpuIsa::get(level)))
      std::printf("%s: compiled, not run: this CPU does not have it\n",
                  CpuIsa::get(level).name().str().c_str());
  for (const Case &c : cases())
    for (IsaLevel level : levelsFor(c)) {
      CheckOptions options;
      options.isa = level;
      EXPECT_EQ(checkKernel(context(), textOf(c), options), "") << nameOf(c);
    }
}

TEST(Products, PackedOperands) {
  for (const Case &c : cases())
    for (IsaLevel level : levelsFor(c))
      EXPECT_EQ(checkPacked(c, level, 5), "")
          << nameOf(c) << " " << CpuIsa::get(level).name().str();
}

/// Assembly of a packed product.
std::string assemblyOf(const Case &c, IsaLevel level) {
  CpuIsa isa = CpuIsa::get(level);
  auto module = parse(context(), textOf(c));
  auto kernel = firstKernel(*module);
  if (auto plan = planPacking(kernel, 1, isa))
    applyPacking(kernel, *plan);
  llvm::SmallVector<char, 0> text;
  if (failed(lowerKernel(kernel, isa)) ||
      failed(emitAssembly(*module, isa, text)))
    return "";
  return std::string(text.data(), text.size());
}

/// Lines of the innermost loop with the most lines that contain `needle`.
std::vector<std::string> hotLoop(const std::string &assembly,
                                 const std::string &needle) {
  std::vector<std::string> lines, best;
  size_t bestCount = 0, at = 0;
  while (at < assembly.size()) {
    size_t end = assembly.find('\n', at);
    lines.push_back(assembly.substr(at, end - at));
    at = end + 1;
  }
  std::map<std::string, size_t> labels;
  for (size_t i = 0; i < lines.size(); ++i) {
    if (lines[i].starts_with(".LBB"))
      labels[lines[i].substr(0, lines[i].find(':'))] = i;
    size_t target = lines[i].find(".LBB");
    if (lines[i].find("\tj") != 0 || target == std::string::npos)
      continue;
    auto label = labels.find(lines[i].substr(target));
    if (label == labels.end())
      continue;
    std::vector<std::string> body(lines.begin() + label->second,
                                  lines.begin() + i + 1);
    auto inner = [](const std::string &l) { return l.starts_with(".LBB"); };
    if (std::count_if(body.begin(), body.end(), inner) > 1)
      continue;
    size_t count =
        std::count_if(body.begin(), body.end(), [&](const std::string &l) {
          return l.find(needle) != std::string::npos;
        });
    if (count > bestCount) {
      bestCount = count;
      best = body;
    }
  }
  return best;
}

size_t countOf(const std::vector<std::string> &lines,
               const std::string &needle) {
  return std::count_if(lines.begin(), lines.end(), [&](const std::string &l) {
    return l.find(needle) != std::string::npos;
  });
}

/// Nothing but fused multiply-adds and loads in the hot loop: no spills.
TEST(Products, HotLoopOfAvx2) {
  Case c{96, 512, 256, "f32", "f32", "f32", "mk", "kn", true};
  auto loop = hotLoop(assemblyOf(c, IsaLevel::avx2), "vfmadd");
  EXPECT_EQ(countOf(loop, "vfmadd"), 48u); // 6 x 2 vectors, 4 of K
  EXPECT_EQ(countOf(loop, "ymm"), countOf(loop, "\tv"));
  EXPECT_EQ(countOf(loop, "(%rsp"), 0u);
}

TEST(Products, HotLoopOfAvx512) {
  Case c{96, 512, 256, "f32", "f32", "f32", "mk", "kn", true};
  auto loop = hotLoop(assemblyOf(c, IsaLevel::avx512), "vfmadd");
  EXPECT_EQ(countOf(loop, "vfmadd"), 96u); // 12 x 2 vectors, 4 of K
  EXPECT_EQ(countOf(loop, "zmm"), countOf(loop, "\tv"));
  EXPECT_EQ(countOf(loop, "(%rsp"), 0u);
}

TEST(Products, HotLoopOfBf16Dot) {
  Case c{96, 512, 256, "bf16", "bf16", "f32", "mk", "kn", true};
  auto loop = hotLoop(assemblyOf(c, IsaLevel::avx512bf16), "vdpbf16ps");
  EXPECT_EQ(countOf(loop, "vdpbf16ps"), 96u); // 12 x 2 vectors, 4 pairs of K
  EXPECT_EQ(countOf(loop, "zmm"), countOf(loop, "\tv"));
  EXPECT_EQ(countOf(loop, "(%rsp"), 0u);
}

TEST(Products, HotLoopOfAmx) {
  Case c{96, 512, 4096, "bf16", "bf16", "f32", "mk", "kn", true};
  auto loop = hotLoop(assemblyOf(c, IsaLevel::amx), "tdpbf16ps");
  // Four products need two tiles of A and two of B.
  EXPECT_GE(countOf(loop, "tdpbf16ps"), 4u);
  EXPECT_EQ(countOf(loop, "tileload"), countOf(loop, "tdpbf16ps"));
  EXPECT_EQ(countOf(loop, "tilestored"), 0u);
}

/// Sums of bf16 are kept in f32 and rounded once.
TEST(Products, NarrowSumsRoundOnce) {
  Case c{5, 32, 300, "bf16", "bf16", "bf16", "mk", "kn", false};
  CheckOptions options;
  options.real = true;
  options.tolerance = {0.5, 0.1};
  EXPECT_EQ(checkKernel(context(), textOf(c), options), "");
}

/// The product does not go through memory before the bias is added.
TEST(Products, EpilogueNeedsNoScratch) {
  Case c{128, 512, 256, "f32", "f32", "f32", "mk", "kn", true};
  auto module = parse(context(), textOf(c));
  auto bytes = planScratch(firstKernel(*module), CpuIsa::get(IsaLevel::avx2));
  ASSERT_TRUE(succeeded(bytes));
  EXPECT_EQ(*bytes, 0);
}
} // namespace
