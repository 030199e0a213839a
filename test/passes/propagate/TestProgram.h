//===- TestProgram.h - Small programs for tests of propagation -*- C++ -*-===//
// Meshes and shardings are written as in the notes of the field: mesh "a2,b2",
// sharding "{a,?}{b:(1)2}p1{} replicated={c} partial=max{d}". The empty text
// is a fully open sharding.
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_TEST_PASSES_PROPAGATE_TESTPROGRAM_H
#define CLEAVE_TEST_PASSES_PROPAGATE_TESTPROGRAM_H

#include "passes/propagate/Factors.h"
#include "passes/propagate/Propagation.h"

namespace cleave::test {

using Shape = llvm::SmallVector<int64_t, 4>;

/// Time of this process alone, so that a busy machine does not fail a test.
double cpuSeconds();

Mesh parseMesh(llvm::StringRef text);
Sharding parseSharding(const Mesh &mesh, unsigned rank, llvm::StringRef text);
/// "{a}{b:(1)2}", with " partial=sum{c}" where there are partial axes.
std::string print(const Mesh &mesh, const Sharding &sharding);

/// A rule from a text like an einsum: "ik,kj->ij"; one letter is one dim, and
/// a compound dim stands in parentheses: "(ij)->ij". A factor has the size of
/// a dim in which it stands alone; one that no result has is a sum.
ShardingRule parseRule(llvm::StringRef text, llvm::ArrayRef<Shape> shapes);

/// Builds a problem value by value and op by op.
class Program {
public:
  explicit Program(llvm::StringRef mesh);
  unsigned value(Shape shape, llvm::StringRef sharding = "",
                 llvm::StringRef name = "");
  /// Adds op and result; sizes of the result come from the operands.
  unsigned op(llvm::StringRef rule, llvm::ArrayRef<unsigned> operands,
              Shape resultShape, llvm::StringRef sharding = "");
  unsigned dot(unsigned lhs, unsigned rhs, llvm::StringRef sharding = "");
  unsigned add(unsigned lhs, unsigned rhs, llvm::StringRef sharding = "");
  unsigned identity(unsigned from, Direction direction,
                    llvm::StringRef sharding = "");
  const PropagationResult &run();
  /// The sharding of a value after run().
  std::string operator[](unsigned value) const;

  PropagationProblem problem;
  PropagationResult result;
};

} // namespace cleave::test

#endif // CLEAVE_TEST_PASSES_PROPAGATE_TESTPROGRAM_H
