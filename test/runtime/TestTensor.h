//===- TestTensor.h - Tensors of programs made up by tests ------*- C++ -*-===//
#ifndef CLEAVE_TEST_RUNTIME_TESTTENSOR_H
#define CLEAVE_TEST_RUNTIME_TESTTENSOR_H

#include "runtime/io/Blocks.h"
#include <algorithm>
#include <gtest/gtest.h>
#include <numeric>
#include <vector>

namespace cleave::rt::test {

/// A tensor with storage.
struct TestTensor {
  std::vector<int64_t> shape, block;
  std::vector<std::vector<CleaveAxisRef>> refs;
  std::vector<CleaveAxes> dims;
  CleaveTensor tensor = {};

  TestTensor(uint32_t dtype, std::vector<int64_t> sizes,
             std::vector<std::vector<CleaveAxisRef>> axes)
      : shape(std::move(sizes)), refs(std::move(axes)) {
    tensor.bytes = dtypeBytes(dtype);
    for (size_t d = 0; d < shape.size(); ++d) {
      dims.push_back({int64_t(refs[d].size()), refs[d].data()});
      int64_t n = numBlocks(dims[d]);
      block.push_back((shape[d] + n - 1) / n);
      tensor.bytes *= block[d];
    }
    tensor.name = tensor.storeName = "t";
    tensor.loc = "";
    tensor.dtype = dtype;
    tensor.rank = int64_t(shape.size());
    tensor.shape = shape.data();
    tensor.block = block.data();
    tensor.dims = dims.data();
  }
};

/// Reads all ranks' blocks out of an array and writes them back. The whole as
/// f32; padding must have become zero.
inline std::vector<float> readAll(const TestTensor &t,
                                  const CleaveProgram &program,
                                  const GlobalArray &array) {
  Mesh mesh(program);
  size_t count = 1;
  for (int64_t size : t.shape)
    count *= size_t(size);
  std::vector<float> back(count, -1);
  GlobalArray target;
  target.data = reinterpret_cast<char *>(back.data());
  target.dtype = CLEAVE_F32;
  target.shape = t.shape;
  target.setSteps(false);
  for (int64_t rank = 0; rank < program.numRanks; ++rank) {
    std::vector<char> block(size_t(t.tensor.bytes), char(0x55));
    BlockRange range = BlockRange::of(t.tensor, mesh, rank);
    EXPECT_EQ(readBlock(t.tensor, range, array, block.data()), 0);
    int64_t nonZero = 0, element = dtypeBytes(t.tensor.dtype);
    for (size_t i = 0; i < block.size(); i += size_t(element))
      nonZero += std::any_of(&block[i], &block[i] + element,
                             [](char byte) { return byte != 0; });
    EXPECT_EQ(nonZero, range.numElements()); // all data are above zero
    if (ownsBlock(t.tensor, mesh, rank))
      writeBlock(t.tensor, range, block.data(), target);
  }
  return back;
}

/// The same for an array of 1, 2, 3, ...: nothing is lost.
inline void roundTrip(const TestTensor &t, const CleaveProgram &program,
                      const GlobalArray &array, size_t count) {
  std::vector<float> expected(count);
  std::iota(expected.begin(), expected.end(), 1.0f);
  EXPECT_EQ(readAll(t, program, array), expected);
}

} // namespace cleave::rt::test

#endif // CLEAVE_TEST_RUNTIME_TESTTENSOR_H
