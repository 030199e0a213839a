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

/// Walks over the elements of a range, a run along one dim at a time. Trailing
/// dims without gaps on both sides are one run. Where the global array is
/// dense along another dim than the block, as a transposed weight is, runs are
/// short, and neighbouring ones follow each other: both sides then use whole
/// cache lines.
class BlockWalk {
public:
  BlockWalk(const CleaveTensor &tensor, const BlockRange &range,
            const GlobalArray &global);

  /// Calls row(globalAt, globalStep, blockAt, count); offsets in bytes.
  template <typename Row> void run(Row row) const {
    if (range.numElements() == 0)
      return;
    int64_t at = 0;
    for (int64_t d = 0; d < tensor.rank; ++d)
      at += global.place(d, range.start[d]);
    if (tensor.rank == 0)
      return row(at, dtypeBytes(global.dtype), 0, 1);
    walk(0, at, 0, [&](int64_t globalAt, int64_t blockAt) {
      if (denseDim >= 0)
        runTiles(globalAt, blockAt, row);
      else
        runRow(globalAt, blockAt, 0, count, row);
    });
  }

private:
  static constexpr int64_t kTile = 64; // elements; lines of both sides fit L1

  void findRow();
  void findDenseDim();

  template <typename Visit>
  void walk(int64_t d, int64_t globalAt, int64_t blockAt,
            const Visit &visit) const {
    if (d == outer)
      return visit(globalAt, blockAt);
    if (d == denseDim)
      return walk(d + 1, globalAt, blockAt, visit);
    int64_t first = global.place(d, range.start[d]);
    for (int64_t i = 0; i < range.size[d]; ++i)
      walk(d + 1, globalAt + global.place(d, range.start[d] + i) - first,
           blockAt + i * blockSteps[d], visit);
  }

  /// Elements [begin, end) along the last dim, cut where the distance of
  /// neighbours changes.
  template <typename Row>
  void runRow(int64_t globalAt, int64_t blockAt, int64_t begin, int64_t end,
              const Row &row) const {
    int64_t last = tensor.rank - 1, e = dtypeBytes(tensor.dtype);
    if (!global.isListed(last))
      return row(globalAt + begin * global.steps[last], global.steps[last],
                 blockAt + begin * e, end - begin);
    const int64_t *places = &global.places[last][range.start[last]];
    for (int64_t i = begin, next; i < end; i = next) {
      next = i + 1;
      int64_t step = next < end ? places[next] - places[i] : 0;
      while (next < end && places[next] - places[next - 1] == step)
        ++next;
      row(globalAt + places[i] - places[0], step, blockAt + i * e, next - i);
    }
  }

  template <typename Row>
  void runTiles(int64_t globalAt, int64_t blockAt, const Row &row) const {
    int64_t rows = range.size[denseDim], step = global.steps[denseDim];
    for (int64_t column = 0; column < count; column += kTile)
      for (int64_t first = 0; first < rows; first += kTile)
        for (int64_t i = first; i < std::min(rows, first + kTile); ++i)
          runRow(globalAt + i * step, blockAt + i * blockSteps[denseDim],
                 column, std::min(count, column + kTile), row);
  }

  const CleaveTensor &tensor;
  const BlockRange &range;
  const GlobalArray &global;
  std::vector<int64_t> blockSteps;
  int64_t outer = 0;     // dims before the run
  int64_t count = 1;     // elements of a run
  int64_t denseDim = -1; // the dim along which the global array is dense
};

} // namespace

BlockWalk::BlockWalk(const CleaveTensor &tensor, const BlockRange &range,
                     const GlobalArray &global)
    : tensor(tensor), range(range), global(global),
      blockSteps(size_t(tensor.rank)) {
  int64_t step = dtypeBytes(tensor.dtype);
  for (int64_t d = tensor.rank; d-- > 0;) {
    blockSteps[d] = step;
    step *= tensor.block[d];
  }
  findRow();
  findDenseDim();
}

void BlockWalk::findRow() {
  outer = tensor.rank;
  int64_t dense = dtypeBytes(global.dtype);
  int64_t blockDense = dtypeBytes(tensor.dtype);
  while (outer > 0 && !global.isListed(outer - 1) &&
         global.steps[outer - 1] == dense &&
         blockSteps[outer - 1] == blockDense) {
    --outer;
    dense *= range.size[outer];
    blockDense *= range.size[outer];
  }
  outer = std::min(outer, std::max<int64_t>(tensor.rank - 1, 0));
  for (int64_t d = outer; d < tensor.rank; ++d)
    count *= range.size[d];
}

void BlockWalk::findDenseDim() {
  int64_t element = dtypeBytes(global.dtype), last = tensor.rank - 1;
  if (outer != last || last < 1 ||
      (!global.isListed(last) && global.steps[last] == element))
    return;
  for (int64_t d = 0; d < last; ++d)
    if (!global.isListed(d) && global.steps[d] == element && range.size[d] > 1)
      denseDim = d;
}

int64_t readBlock(const CleaveTensor &tensor, const BlockRange &range,
                  const GlobalArray &global, char *block) {
  int64_t step = dtypeBytes(tensor.dtype), overflows = 0;
  if (range.numElements() * step != tensor.bytes)
    std::memset(block, 0, size_t(tensor.bytes));
  BlockWalk(tensor, range, global)
      .run([&](int64_t at, int64_t globalStep, int64_t blockAt, int64_t count) {
        Source from{global.data + at, global.dtype, globalStep,
                    global.swapBytes};
        overflows +=
            convert({block + blockAt, tensor.dtype, step}, from, count);
      });
  return overflows;
}

char *blockInPlace(const CleaveTensor &tensor, const BlockRange &range,
                   const GlobalArray &global) {
  int64_t element = dtypeBytes(tensor.dtype);
  // A byte of a boolean is only known to be 0 or 1 after it was read.
  if (global.dtype != tensor.dtype || global.swapBytes ||
      tensor.dtype == CLEAVE_I1 || tensor.bytes == 0 ||
      range.numElements() * element != tensor.bytes)
    return nullptr;
  char *place = nullptr;
  int64_t runs = 0;
  BlockWalk(tensor, range, global)
      .run([&](int64_t at, int64_t globalStep, int64_t, int64_t count) {
        place = global.data + at;
        runs += count == 1 || globalStep == element ? 1 : 2;
      });
  bool aligned = reinterpret_cast<uintptr_t>(place) % uint64_t(element) == 0;
  return runs == 1 && aligned ? place : nullptr;
}

void writeBlock(const CleaveTensor &tensor, const BlockRange &range,
                const char *block, const GlobalArray &global) {
  int64_t step = dtypeBytes(tensor.dtype);
  BlockWalk(tensor, range, global)
      .run([&](int64_t at, int64_t globalStep, int64_t blockAt, int64_t count) {
        convert({global.data + at, global.dtype, globalStep},
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
