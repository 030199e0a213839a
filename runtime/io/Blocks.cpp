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
/// dims without gaps on both sides are one run.
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
    walk(0, -1, {at, 0}, [&](Place place) { runRow(place, row); });
  }

  /// The dim along which the global array is dense where the block is not, as
  /// that of a transposed weight is; -1 for none.
  int64_t denseDim() const { return dense; }

  /// The same in tiles of at most kTile times kTile elements along the dense
  /// and the last dim: both sides then use whole cache lines. Calls
  /// tile(global places of the columns, blockAt, rows, columns).
  static constexpr int64_t kTile = 64;
  template <typename Tile> void runTiles(Tile tile) const {
    if (range.numElements() == 0)
      return;
    int64_t at = 0, last = tensor.rank - 1;
    for (int64_t d = 0; d < last; ++d)
      at += global.place(d, range.start[d]);
    walk(0, dense, {at, 0}, [&](Place place) {
      for (int64_t column = 0; column < count; column += kTile)
        for (int64_t row = 0; row < range.size[dense]; row += kTile) {
          int64_t places[kTile], columns = std::min(kTile, count - column);
          for (int64_t c = 0; c < columns; ++c)
            places[c] = place.global + row * global.steps[dense] +
                        global.place(last, range.start[last] + column + c);
          tile(places,
               place.block + row * blockSteps[dense] +
                   column * dtypeBytes(tensor.dtype),
               std::min(kTile, range.size[dense] - row), columns);
        }
    });
  }

  int64_t blockStep(int64_t d) const { return blockSteps[d]; }

private:
  /// Offsets in bytes.
  struct Place {
    int64_t global, block;
  };

  void findRow();
  void findDenseDim();

  /// Visits the places of all dims before the run but `skipped`.
  template <typename Visit>
  void walk(int64_t d, int64_t skipped, Place at, const Visit &visit) const {
    if (d == outer)
      return visit(at);
    if (d == skipped)
      return walk(d + 1, skipped, at, visit);
    int64_t first = global.place(d, range.start[d]);
    for (int64_t i = 0; i < range.size[d]; ++i)
      walk(d + 1, skipped,
           {at.global + global.place(d, range.start[d] + i) - first,
            at.block + i * blockSteps[d]},
           visit);
  }

  /// The run, cut where the distance of neighbours changes.
  template <typename Row> void runRow(Place at, const Row &row) const {
    int64_t last = tensor.rank - 1, e = dtypeBytes(tensor.dtype);
    if (!global.isListed(last))
      return row(at.global, global.steps[last], at.block, count);
    const int64_t *places = &global.places[last][range.start[last]];
    for (int64_t i = 0, next; i < count; i = next) {
      next = i + 1;
      int64_t step = next < count ? places[next] - places[i] : 0;
      while (next < count && places[next] - places[next - 1] == step)
        ++next;
      row(at.global + places[i] - places[0], step, at.block + i * e, next - i);
    }
  }

  const CleaveTensor &tensor;
  const BlockRange &range;
  const GlobalArray &global;
  std::vector<int64_t> blockSteps;
  int64_t outer = 0;  // dims before the run
  int64_t count = 1;  // elements of a run
  int64_t dense = -1; // see denseDim()
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
  int64_t globalDense = dtypeBytes(global.dtype);
  int64_t blockDense = dtypeBytes(tensor.dtype);
  while (outer > 0 && !global.isListed(outer - 1) &&
         global.steps[outer - 1] == globalDense &&
         blockSteps[outer - 1] == blockDense) {
    --outer;
    globalDense *= range.size[outer];
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
      dense = d;
}

/// Writes a tile, whose columns follow each other in `tile`, by rows.
template <typename T>
static void storeTile(const char *tile, char *block, int64_t rowStep,
                      int64_t rows, int64_t columns) {
  constexpr int64_t kColumnStep = (BlockWalk::kTile + 1) * int64_t(sizeof(T));
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t column = 0; column < columns; ++column)
      std::memcpy(block + row * rowStep + column * int64_t(sizeof(T)),
                  tile + column * kColumnStep + row * int64_t(sizeof(T)),
                  sizeof(T));
}

/// Reads a block along the dim in which the global array is dense. Columns go
/// to a buffer first: those of a large array often compete for the same lines
/// of the cache. There they don't; hence the odd distance.
static int64_t readTransposed(const CleaveTensor &tensor, const BlockWalk &walk,
                              const GlobalArray &global, char *block) {
  constexpr int64_t kTile = BlockWalk::kTile, kLargest = 8;
  alignas(64) char buffer[kTile * (kTile + 1) * kLargest];
  int64_t element = dtypeBytes(tensor.dtype), overflows = 0;
  int64_t from = dtypeBytes(global.dtype),
          step = walk.blockStep(walk.denseDim());
  auto store = element == 1   ? storeTile<uint8_t>
               : element == 2 ? storeTile<uint16_t>
               : element == 4 ? storeTile<uint32_t>
                              : storeTile<uint64_t>;
  walk.runTiles([&](const int64_t *places, int64_t blockAt, int64_t rows,
                    int64_t columns) {
    for (int64_t c = 0; c < columns; ++c)
      overflows += convert(
          {buffer + c * (kTile + 1) * element, tensor.dtype, element},
          {global.data + places[c], global.dtype, from, global.swapBytes},
          rows);
    store(buffer, block + blockAt, step, rows, columns);
  });
  return overflows;
}

int64_t readBlock(const CleaveTensor &tensor, const BlockRange &range,
                  const GlobalArray &global, char *block) {
  int64_t step = dtypeBytes(tensor.dtype), overflows = 0;
  if (range.numElements() * step != tensor.bytes)
    std::memset(block, 0, size_t(tensor.bytes));
  BlockWalk walk(tensor, range, global);
  if (walk.denseDim() >= 0)
    return readTransposed(tensor, walk, global, block);
  walk.run([&](int64_t at, int64_t globalStep, int64_t blockAt, int64_t count) {
    Source from{global.data + at, global.dtype, globalStep, global.swapBytes};
    overflows += convert({block + blockAt, tensor.dtype, step}, from, count);
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
