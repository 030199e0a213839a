//===- MpiBench.cpp - Times the same collectives with MPI -----------------===//
// mpirun -n RANKS bench_collectives_mpi [--min= --max= --batch=]
// bf16 is no type of MPI: reductions use an operation of our own on 16-bit
// integers, as one has to.
#include "bench/collectives/Cases.h"

#include <cstring>
#include <mpi.h>

using namespace cleave;

static void addBf16(void *in, void *inOut, int *count, MPI_Datatype *) {
  const uint16_t *a = static_cast<const uint16_t *>(in);
  uint16_t *b = static_cast<uint16_t *>(inOut);
  for (int i = 0; i < *count; ++i) {
    uint32_t x = uint32_t(a[i]) << 16, y = uint32_t(b[i]) << 16;
    float fx, fy;
    std::memcpy(&fx, &x, 4);
    std::memcpy(&fy, &y, 4);
    fx += fy;
    std::memcpy(&x, &fx, 4);
    b[i] = uint16_t((x + 0x7fff + ((x >> 16) & 1)) >> 16);
  }
}

namespace {

struct Bench {
  int rank = 0, size = 1;
  std::vector<char> in, out;
  MPI_Op addOp = MPI_OP_NULL;

  void once(int kind, bool isBf16, int64_t bytes);
};

} // namespace

void Bench::once(int kind, bool isBf16, int64_t bytes) {
  MPI_Datatype type = isBf16 ? MPI_UINT16_T : MPI_FLOAT;
  MPI_Op op = isBf16 ? addOp : MPI_SUM;
  int count = int(bytes / (isBf16 ? 2 : 4)), part = count / size;
  MPI_Comm world = MPI_COMM_WORLD;
  switch (kind) {
  case 0:
    MPI_Allreduce(in.data(), out.data(), count, type, op, world);
    break;
  case 1:
    MPI_Reduce_scatter_block(in.data(), out.data(), part, type, op, world);
    break;
  case 2:
    MPI_Allgather(in.data(), part, type, out.data(), part, type, world);
    break;
  case 3:
    MPI_Alltoall(in.data(), part, type, out.data(), part, type, world);
    break;
  default:
    if (rank == 0) {
      MPI_Send(in.data(), count, type, 1, 0, world);
      MPI_Recv(out.data(), count, type, 1, 0, world, MPI_STATUS_IGNORE);
    } else if (rank == 1) {
      MPI_Recv(out.data(), count, type, 0, 0, world, MPI_STATUS_IGNORE);
      MPI_Send(in.data(), count, type, 0, 0, world);
    }
  }
}

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  bench::Selection selection(argc, argv);
  Bench b;
  MPI_Comm_rank(MPI_COMM_WORLD, &b.rank);
  MPI_Comm_size(MPI_COMM_WORLD, &b.size);
  MPI_Op_create(addBf16, 1, &b.addOp);
  b.in.assign(size_t(selection.sizes.back()), char(b.rank + 1));
  b.out.assign(size_t(selection.sizes.back()), 0);
  for (int kind = 0; kind < 5; ++kind)
    for (int d = 0; d < 2; ++d)
      for (int64_t bytes : selection.sizes) {
        double seconds = bench::measure(
            selection.batchSeconds, [&] { b.once(kind, d == 1, bytes); },
            [&](int64_t count) {
              MPI_Bcast(&count, 1, MPI_INT64_T, 0, MPI_COMM_WORLD);
              return count;
            },
            [&] { MPI_Barrier(MPI_COMM_WORLD); });
        if (b.rank == 0)
          bench::report(bench::kKinds[kind], bench::kDtypes[d], b.size, bytes,
                        kind == 4 ? seconds / 2 : seconds);
      }
  MPI_Finalize();
  return 0;
}
