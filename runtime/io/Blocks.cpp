//===- Blocks.cpp - Between global arrays and the ranks' blocks -----------===//
#include "runtime/io/Blocks.h"
#include "runtime/support/Names.h"

#include <algorithm>

namespace cleave::rt {

void GlobalArray::setSteps(bool fortranOrder) {
  steps.resize(shape.size());
  int64_t step = dtypeBytes(dtype);
  for (size_t i = 0; i < shape.size(); ++i) {
    size_t d = fortranOrder ? i : shape.size() - 1 - i;
    steps[d] = step;
    step *= shape[d];
  }
}

BlockRange BlockRange::of(const CleaveTensor &tensor, const Mesh &mesh,
                          int64_t rank) {
  BlockRange range;
  int64_t position = mesh.position(rank);
  for (int64_t d = 0; d < tensor.rank; ++d) {
    int64_t index = mesh.index(position, tensor.dims[d]);
    int64_t start = std::min(tensor.shape[d], index * tensor.block[d]);
    int64_t end = std::min(tensor.shape[d], start + tensor.block[d]);
    range.start.push_back(start);
    range.size.push_back(end - start);
  }
  return range;
}

int64_t BlockRange::numElements() const {
  int64_t product = 1;
  for (int64_t n : size)
    product *= n;
  return product;
}

bool ownsBlock(const CleaveTensor &tensor, const Mesh &mesh, int64_t rank) {
  int64_t mine = mesh.position(rank);
  auto sameBlock = [&](int64_t position) {
    for (int64_t d = 0; d < tensor.rank; ++d)
      if (mesh.index(position, tensor.dims[d]) !=
          mesh.index(mine, tensor.dims[d]))
        return false;
    return true;
  };
  for (int64_t position = 0; position < mine; ++position)
    if (sameBlock(position))
      return false;
  return true;
}

namespace {

/// Walks over the elements of a range, a row of the last dim at a time.
struct RowWalk {
  const CleaveTensor &tensor;
  const BlockRange &range;
  const GlobalArray &global;
  std::vector<int64_t> blockSteps;

  RowWalk(const CleaveTensor &tensor, const BlockRange &range,
          const GlobalArray &global)
      : tensor(tensor), range(range), global(global),
        blockSteps(size_t(tensor.rank)) {
    int64_t step = dtypeBytes(tensor.dtype);
    for (int64_t d = tensor.rank; d-- > 0;) {
      blockSteps[d] = step;
      step *= tensor.block[d];
    }
  }

  /// How many trailing dims lie without gaps on both sides: they are copied as
  /// one row.
  int64_t mergedDims() const {
    int64_t merged = 0;
    int64_t dense = dtypeBytes(global.dtype);
    int64_t blockDense = dtypeBytes(tensor.dtype);
    for (int64_t d = tensor.rank; d-- > 0; ++merged) {
      if (global.steps[d] != dense || blockSteps[d] != blockDense)
        break;
      dense *= range.size[d];
      blockDense *= range.size[d];
    }
    return std::max<int64_t>(merged, std::min<int64_t>(tensor.rank, 1));
  }

  template <typename Row> void run(Row row) const {
    if (range.numElements() == 0)
      return;
    int64_t merged = mergedDims(), outer = tensor.rank - merged;
    int64_t count = 1;
    for (int64_t d = outer; d < tensor.rank; ++d)
      count *= range.size[d];
    int64_t globalAt = 0;
    for (int64_t d = 0; d < tensor.rank; ++d)
      globalAt += range.start[d] * global.steps[d];
    int64_t globalStep =
        tensor.rank ? global.steps[tensor.rank - 1] : dtypeBytes(global.dtype);
    walk(0, outer, globalAt, 0, [&](int64_t g, int64_t b) {
      row(global.data + g, globalStep, b, count);
    });
  }

  template <typename Visit>
  void walk(int64_t d, int64_t outer, int64_t globalAt, int64_t blockAt,
            const Visit &visit) const {
    if (d == outer)
      return visit(globalAt, blockAt);
    for (int64_t i = 0; i < range.size[d]; ++i)
      walk(d + 1, outer, globalAt + i * global.steps[d],
           blockAt + i * blockSteps[d], visit);
  }
};

} // namespace

int64_t readBlock(const CleaveTensor &tensor, const BlockRange &range,
                  const GlobalArray &global, char *block) {
  int64_t step = dtypeBytes(tensor.dtype), overflows = 0;
  if (range.numElements() * step != tensor.bytes)
    std::memset(block, 0, size_t(tensor.bytes));
  RowWalk(tensor, range, global)
      .run([&](char *at, int64_t globalStep, int64_t blockAt, int64_t count) {
        Source from{at, global.dtype, globalStep, global.swapBytes};
        overflows +=
            convert({block + blockAt, tensor.dtype, step}, from, count);
      });
  return overflows;
}

void writeBlock(const CleaveTensor &tensor, const BlockRange &range,
                const char *block, const GlobalArray &global) {
  int64_t step = dtypeBytes(tensor.dtype);
  RowWalk(tensor, range, global)
      .run([&](char *at, int64_t globalStep, int64_t blockAt, int64_t count) {
        convert({at, global.dtype, globalStep},
                {block + blockAt, tensor.dtype, step}, count);
      });
}

Status checkTensor(const CleaveTensor &tensor, const Mesh &mesh,
                   int64_t areaBytes) {
  auto wrong = [&](const auto &...pieces) {
    return internalError("'", tensor.name, "': ", concat(pieces...));
  };
  if (tensor.dtype >= kNumDtypes)
    return wrong("dtype ", tensor.dtype, " is unknown");
  int64_t bytes = dtypeBytes(tensor.dtype);
  for (int64_t d = 0; d < tensor.rank; ++d) {
    CLEAVE_RETURN_IF_ERROR(
        mesh.check(tensor.dims[d]).within(concat("'", tensor.name, "'")));
    int64_t n = numBlocks(tensor.dims[d]);
    if (tensor.shape[d] < 0 || tensor.block[d] != (tensor.shape[d] + n - 1) / n)
      return wrong("dim ", d, " of size ", tensor.shape[d], " over ", n,
                   " ranks has blocks of ", tensor.block[d]);
    bytes *= tensor.block[d];
  }
  if (tensor.bytes != bytes)
    return wrong("a block has ", bytes, " bytes, the program says ",
                 tensor.bytes);
  if (tensor.offset < 0 || tensor.offset + bytes > areaBytes)
    return wrong("bytes ", tensor.offset, " to ", tensor.offset + bytes,
                 " lie outside its memory of ", areaBytes);
  return Status();
}

std::string typeText(const CleaveTensor &tensor) {
  if (tensor.rank == 0)
    return dtypeName(tensor.dtype);
  return concat(shapeText(tensor.shape, tensor.rank), "x",
                dtypeName(tensor.dtype));
}

} // namespace cleave::rt
