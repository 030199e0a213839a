//===- PackTest.cpp - Weights that are ready to map -----------------------===//
#include "runtime/io/Pack.h"
#include "test/runtime/Files.h"
#include "test/runtime/TestProgram.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

using namespace cleave::rt;
using namespace cleave::rt::test;

namespace {

/// Two ranks with a state in the middle of their weights.
struct Pack : testing::Test {
  static constexpr int64_t kBytes = 5 * 4096 + 100;
  TemporaryFolder folder;
  TestProgram owner{{2}};
  CleaveTensor state = {};
  std::string layout = "weight 'a' at 0\nweight 'b' at 64\n";

  void SetUp() override {
    state.offset = 4096 + 64;
    state.bytes = 4096;
    owner.program.states = &state;
    owner.program.numStates = 1;
    owner.program.residentBytes = kBytes;
    owner.program.isa = CLEAVE_ISA_AVX2;
    owner.program.layout = layout.c_str();
  }
  static bool isState(int64_t at) { return at >= 4160 && at < 8256; }

  /// Packs an area full of a pattern; states are left out.
  void pack(int64_t rank) {
    std::string area(size_t(kBytes), '\0');
    for (int64_t i = 0; i < kBytes; ++i)
      area[size_t(i)] = char(i * 7 + rank + 1);
    PackWriter writer;
    ASSERT_TRUE(
        writer.open(owner.program, folder.path("p"), rank, "t", false).ok());
    ASSERT_TRUE(writer.write(owner.program, area.data()).ok());
    ASSERT_TRUE(writer.commit().ok());
  }
  std::string error(const CleaveProgram &program, int64_t rank = 0) {
    return PackFile().open(program, folder.path("p"), rank).message();
  }
  std::string file(int64_t rank = 0) {
    return folder.path("p/rank-") + std::to_string(rank) + ".pack";
  }
};

TEST_F(Pack, IsMappedAndLeavesTheState) {
  pack(1);
  PackFile file;
  Status status = file.open(owner.program, folder.path("p"), 1);
  ASSERT_TRUE(status.ok()) << status.message();
  for (bool maps : {true, false}) {
    size_t size = 6 * 4096;
    auto *area = static_cast<char *>(mmap(nullptr, size, PROT_READ | PROT_WRITE,
                                          MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    ASSERT_NE(area, MAP_FAILED);
    std::memset(area + state.offset, 0x55, size_t(state.bytes));
    ASSERT_TRUE(file.place(owner.program, area, maps).ok());
    for (int64_t i = 0; i < kBytes; ++i)
      ASSERT_EQ(area[i], isState(i) ? char(0x55) : char(i * 7 + 2)) << i;
    area[state.offset] = 1; // state can be written
    munmap(area, size);
  }
  EXPECT_EQ(packedBytes(owner.program), kBytes - 4096);
}

TEST_F(Pack, AnotherMesh) {
  pack(0);
  TestProgram other({2}, 1 << 20, {1, 0});
  CleaveProgram program = owner.program;
  program.ranks = other.program.ranks;
  EXPECT_EQ(error(program), "'" + file() +
                                "' is packed for the mesh a=2, the "
                                "program has a=2, ranks 1 0");
  TestProgram larger({2, 3});
  program = larger.program;
  EXPECT_EQ(error(program), "'" + file() +
                                "' is packed for the mesh a=2, the "
                                "program has a=2, b=3");
  TestProgram single({});
  EXPECT_EQ(error(single.program), "'" + file() +
                                       "' is packed for the mesh "
                                       "a=2, the program has one "
                                       "rank");
}

TEST_F(Pack, AnotherCpuLevel) {
  pack(0);
  owner.program.isa = CLEAVE_ISA_AVX512;
  EXPECT_EQ(error(owner.program),
            "'" + file() +
                "' is packed for the CPU level avx2, this run uses "
                "avx512; pack the weights again, or set "
                "CLEAVE_ISA=avx2");
}

TEST_F(Pack, AnotherProgram) {
  pack(0);
  std::string other = "weight 'a' at 0\nweight 'b' at 128\n";
  owner.program.layout = other.c_str();
  EXPECT_EQ(error(owner.program), "'" + file() +
                                      "' is packed for another "
                                      "program: it has weight 'b' "
                                      "at 64, where this one has "
                                      "weight 'b' at 128");
  other = "weight 'a' at 0\n";
  EXPECT_EQ(error(owner.program), "'" + file() +
                                      "' is packed for another "
                                      "program: it has weight 'b' "
                                      "at 64, where this one has "
                                      "nothing");
}

TEST_F(Pack, AnotherRank) {
  pack(0);
  ASSERT_EQ(rename(file(0).c_str(), file(1).c_str()), 0);
  EXPECT_EQ(error(owner.program, 1),
            "'" + file(1) + "' is the pack of rank 0, not of rank 1");
  EXPECT_EQ(error(owner.program, 0), "--packed: cannot open '" + file(0) +
                                         "': no such file or directory");
}

TEST_F(Pack, DamagedFiles) {
  pack(0);
  std::string good = readFile(file());
  writeFile(file(), good.substr(0, good.size() - 1));
  EXPECT_EQ(error(owner.program),
            "'" + file() + "' is cut off: it has 28671 bytes instead of 28672");
  for (const std::string &bytes :
       {std::string(), good.substr(0, 100), "X" + good}) {
    writeFile(file(), bytes);
    EXPECT_EQ(error(owner.program),
              "'" + file() + "' is no pack of weights, or cut off");
  }
  std::string old = good;
  old.replace(old.find("\"version\":1"), 11, "\"version\":0");
  writeFile(file(), old);
  EXPECT_EQ(error(owner.program), "'" + file() +
                                      "' was packed by another "
                                      "version of Cleave; pack the "
                                      "weights again");
}

TEST_F(Pack, OldPackStaysUntilCommit) {
  pack(0);
  std::string before = readFile(file());
  {
    PackWriter writer;
    std::string area(size_t(kBytes), 'x');
    ASSERT_TRUE(
        writer.open(owner.program, folder.path("p"), 0, "t", false).ok());
    ASSERT_TRUE(writer.write(owner.program, area.data()).ok());
  }
  EXPECT_EQ(readFile(file()), before);
}

} // namespace
