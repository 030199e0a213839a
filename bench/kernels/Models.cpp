//===- Models.cpp - The kernels that are timed, as MLIR text --------------===//
#include "bench/kernels/Models.h"
#include <sstream>

using namespace cleave::bench;

namespace {
/// Writes a kernel over [rows, n]: `full` tensors, `row` and `column` vectors.
class Writer {
public:
  Writer(int64_t rows, int64_t n) {
    full = type({rows, n});
    row = type({rows});
    column = type({n});
    text << "#xy = affine_map<(i, j) -> (i, j)>\n"
         << "#x = affine_map<(i, j) -> (i)>\n"
         << "#y = affine_map<(i, j) -> (j)>\n"
         << "#r = affine_map<(i) -> (i)>\n";
  }
  static std::string type(std::initializer_list<int64_t> shape) {
    std::string s = "tensor<";
    for (int64_t d : shape)
      s += std::to_string(d) + "x";
    return s + "f32>";
  }
  void begin(const std::string &arguments) {
    text << "func.func private @k(" << arguments << ", %out: " << full
         << ") -> " << full << " {\n  %e = tensor.empty() : " << row
         << "\n  %ef = tensor.empty() : " << full << "\n";
  }
  void constant(const std::string &name, const std::string &value) {
    text << "  " << name << " = arith.constant " << value << " : f32\n";
  }
  /// A reduction over the row of `in`; the body yields %q from %a, %m, %o.
  void reduce(const std::string &result, const std::string &init,
              const std::string &in, const std::string &other,
              const std::string &body) {
    text << "  " << result << "i = linalg.fill ins(" << init
         << " : f32) outs(%e : " << row << ") -> " << row << "\n  " << result
         << " = linalg.generic {indexing_maps = [#xy, "
         << (other.empty() ? "" : "#x, ")
         << "#x], iterator_types = [\"parallel\", \"reduction\"]} ins(" << in
         << (other.empty() ? "" : ", " + other) << " : " << full
         << (other.empty() ? "" : ", " + row) << ") outs(" << result
         << "i : " << row << ") {\n  ^bb0(%a: f32, "
         << (other.empty() ? "" : "%m: f32, ") << "%o: f32):\n"
         << body << "    linalg.yield %q : f32\n  } -> " << row << "\n";
  }
  /// Point-wise over the whole: %a from `in`, then one per extra operand.
  void map(const std::string &result, const std::string &in,
           const std::string &operands, const std::string &maps,
           const std::string &types, const std::string &arguments,
           const std::string &body) {
    text << "  " << result << " = linalg.generic {indexing_maps = [#xy" << maps
         << ", #xy], iterator_types = [\"parallel\", \"parallel\"]} ins(" << in
         << operands << " : " << full << types << ") outs(%ef : " << full
         << ") {\n  ^bb0(%a: f32" << arguments << ", %o: f32):\n"
         << body << "    linalg.yield %q : f32\n  } -> " << full << "\n";
  }
  /// Point-wise over rows.
  void mapRow(const std::string &result, const std::string &in,
              const std::string &body) {
    text << "  " << result
         << " = linalg.generic {indexing_maps = [#r, #r], iterator_types = "
         << "[\"parallel\"]} ins(" << in << " : " << row
         << ") outs(%e : " << row << ") {\n  ^bb0(%a: f32, %o: f32):\n"
         << body << "    linalg.yield %q : f32\n  } -> " << row << "\n";
  }
  std::string end(const std::string &result) {
    text << "  return " << result << " : " << full << "\n}\n";
    return text.str();
  }
  std::string full, row, column;
  std::ostringstream text;
};
} // namespace

std::string cleave::bench::softmax(int64_t rows, int64_t n) {
  Writer w(rows, n);
  w.begin("%x: " + w.full);
  w.constant("%zero", "0.0");
  w.constant("%low", "0xFF800000");
  w.reduce("%max", "%low", "%x", "", "    %q = arith.maximumf %a, %o : f32\n");
  w.map("%exp", "%x", ", %max", ", #x", ", " + w.row, ", %m: f32",
        "    %s = arith.subf %a, %m : f32\n    %q = math.exp %s : f32\n");
  w.reduce("%sum", "%zero", "%exp", "", "    %q = arith.addf %a, %o : f32\n");
  w.map("%y", "%exp", ", %sum", ", #x", ", " + w.row, ", %m: f32",
        "    %q = arith.divf %a, %m : f32\n");
  return w.end("%y");
}

std::string cleave::bench::rmsNorm(int64_t rows, int64_t n) {
  Writer w(rows, n);
  w.begin("%x: " + w.full + ", %g: " + w.column);
  w.constant("%zero", "0.0");
  w.constant("%n", std::to_string(n) + ".0");
  w.constant("%eps", "1.0e-5");
  w.reduce("%sum", "%zero", "%x", "",
           "    %p = arith.mulf %a, %a : f32\n"
           "    %q = arith.addf %p, %o : f32\n");
  w.mapRow("%scale", "%sum",
           "    %d = arith.divf %a, %n : f32\n    %s = arith.addf %d, %eps : "
           "f32\n    %q = math.rsqrt %s : f32\n");
  w.map("%y", "%x", ", %scale, %g", ", #x, #y", ", " + w.row + ", " + w.column,
        ", %s: f32, %w: f32",
        "    %p = arith.mulf %a, %s : f32\n    %q = arith.mulf %p, %w : "
        "f32\n");
  return w.end("%y");
}

std::string cleave::bench::layerNorm(int64_t rows, int64_t n) {
  Writer w(rows, n);
  w.begin("%x: " + w.full + ", %g: " + w.column + ", %b: " + w.column);
  w.constant("%zero", "0.0");
  w.constant("%n", std::to_string(n) + ".0");
  w.constant("%eps", "1.0e-5");
  w.reduce("%sum", "%zero", "%x", "", "    %q = arith.addf %a, %o : f32\n");
  w.mapRow("%mean", "%sum", "    %q = arith.divf %a, %n : f32\n");
  w.reduce("%square", "%zero", "%x", "%mean",
           "    %d = arith.subf %a, %m : f32\n    %p = arith.mulf %d, %d : "
           "f32\n    %q = arith.addf %p, %o : f32\n");
  w.mapRow("%scale", "%square",
           "    %d = arith.divf %a, %n : f32\n    %s = arith.addf %d, %eps : "
           "f32\n    %q = math.rsqrt %s : f32\n");
  w.map("%y", "%x", ", %mean, %scale, %g, %b", ", #x, #x, #y, #y",
        ", " + w.row + ", " + w.row + ", " + w.column + ", " + w.column,
        ", %m: f32, %s: f32, %w: f32, %v: f32",
        "    %d = arith.subf %a, %m : f32\n    %p = arith.mulf %d, %s : f32\n"
        "    %t = arith.mulf %p, %w : f32\n    %q = arith.addf %t, %v : "
        "f32\n");
  return w.end("%y");
}

std::string cleave::bench::gelu(int64_t rows, int64_t n) {
  Writer w(rows, n);
  w.begin("%x: " + w.full + ", %b: " + w.column);
  w.constant("%half", "0.5");
  w.constant("%one", "1.0");
  w.constant("%c", "0.7978845608");
  w.constant("%d", "0.044715");
  w.map("%s", "%x", ", %b", ", #y", ", " + w.column, ", %v: f32",
        "    %q = arith.addf %a, %v : f32\n");
  w.map("%y", "%s", "", "", "", "",
        "    %p2 = arith.mulf %a, %a : f32\n    %p3 = arith.mulf %p2, %a : "
        "f32\n    %u = arith.mulf %p3, %d : f32\n    %v = arith.addf %a, %u : "
        "f32\n    %w = arith.mulf %v, %c : f32\n    %t = math.tanh %w : f32\n"
        "    %z = arith.addf %t, %one : f32\n    %h = arith.mulf %a, %half : "
        "f32\n    %q = arith.mulf %h, %z : f32\n");
  return w.end("%y");
}

std::string cleave::bench::product(int64_t m, int64_t n, int64_t k,
                                   const std::string &type) {
  auto tensor = [](int64_t x, int64_t y, const std::string &element) {
    return "tensor<" + std::to_string(x) + "x" + std::to_string(y) + "x" +
           element + ">";
  };
  std::string a = tensor(m, k, type), b = tensor(k, n, type),
              c = tensor(m, n, "f32");
  return "func.func private @k(%a: " + a + ", %b: " + b + ", %out: " + c +
         ") -> " + c + " {\n  %z = arith.constant 0.0 : f32\n  %e = " +
         "tensor.empty() : " + c + "\n  %f = linalg.fill ins(%z : f32) " +
         "outs(%e : " + c + ") -> " + c + "\n  %r = linalg.matmul ins(%a, " +
         "%b : " + a + ", " + b + ") outs(%f : " + c + ") -> " + c +
         "\n  return %r : " + c + "\n}\n";
}
