//===- PartitionedTest.cpp - Ranks in lock-step, by hand ------------------===//
#include "test/oracle/Programs.h"

using namespace cleave::oracle;

namespace {
using PartitionedTest = ProgramTest;

Blocks blocksOf(llvm::ArrayRef<int64_t> shape,
                llvm::ArrayRef<Numbers> perRank) {
  Blocks result;
  for (const Numbers &values : perRank)
    result.push_back(tensorOf(kI32, shape, values));
  return result;
}

/// Numbers of each rank of the first result.
std::vector<Numbers> perRank(const std::vector<Blocks> &results) {
  std::vector<Numbers> numbersOfRanks;
  if (!results.empty())
    for (const Tensor &block : results.front())
      numbersOfRanks.push_back(numbers(block));
  return numbersOfRanks;
}

/// One op from tensor<inxi32> to tensor<outxi32> on a mesh.
std::string program(llvm::StringRef mesh, llvm::StringRef in,
                    llvm::StringRef out, llvm::StringRef op) {
  return ("cleave.mesh @m = <" + mesh + ">\nfunc.func @f(%a: tensor<" + in +
          "xi32>) -> tensor<" + out + "xi32> {\n  %r = " + op +
          "\n  return %r : tensor<" + out + "xi32>\n}\n")
      .str();
}

TEST_F(PartitionedTest, AllReduceInGroups) {
  // Ranks 0 1 have a = 0, ranks 2 3 have a = 1.
  Blocks in = blocksOf({1}, {{1}, {20}, {300}, {4000}});
  auto reduce = [&](const char *kind, const char *axes) {
    return perRank(
        runBlocks(program("[\"a\"=2, \"b\"=2]", "1", "1",
                          std::string("comm.all_reduce ") + kind +
                              " %a over @m " + axes + " : tensor<1xi32>"),
                  {in}));
  };
  using Ranks = std::vector<Numbers>;
  EXPECT_EQ(reduce("sum", "[\"b\"]"), (Ranks{{21}, {21}, {4300}, {4300}}));
  EXPECT_EQ(reduce("sum", "[\"a\"]"), (Ranks{{301}, {4020}, {301}, {4020}}));
  EXPECT_EQ(reduce("max", "[\"a\", \"b\"]"),
            (Ranks{{4000}, {4000}, {4000}, {4000}}));
  EXPECT_EQ(reduce("min", "[\"b\"]"), (Ranks{{1}, {1}, {300}, {300}}));
  EXPECT_EQ(reduce("xor", "[\"b\"]"), (Ranks{{21}, {21}, {3724}, {3724}}));
}

TEST_F(PartitionedTest, SubAxesAndRankOrder) {
  using Ranks = std::vector<Numbers>;
  // "a":(2)2 of an axis of 4: pairs 0 1 and 2 3; "a":(1)2: pairs 0 2 and 1 3.
  Blocks in = blocksOf({1}, {{1}, {20}, {300}, {4000}});
  auto reduce = [&](const char *mesh, const char *axes) {
    return perRank(
        runBlocks(program(mesh, "1", "1",
                          std::string("comm.all_reduce sum %a over @m ") +
                              axes + " : tensor<1xi32>"),
                  {in}));
  };
  EXPECT_EQ(reduce("[\"a\"=4]", "[\"a\":(2)2]"),
            (Ranks{{21}, {21}, {4300}, {4300}}));
  EXPECT_EQ(reduce("[\"a\"=4]", "[\"a\":(1)2]"),
            (Ranks{{301}, {4020}, {301}, {4020}}));
  EXPECT_EQ(reduce("[\"a\"=2, \"b\"=2], ranks=[0, 2, 1, 3]", "[\"b\"]"),
            (Ranks{{301}, {4020}, {301}, {4020}}));
}

TEST_F(PartitionedTest, GatherScatterSlice) {
  using Ranks = std::vector<Numbers>;
  auto gathered = runBlocks(program("[\"a\"=2]", "2x1", "2x2",
                                    "comm.all_gather %a dim 1 over @m [\"a\"]"
                                    " : tensor<2x1xi32> -> tensor<2x2xi32>"),
                            {blocksOf({2, 1}, {{1, 2}, {3, 4}})});
  EXPECT_EQ(perRank(gathered), (Ranks{{1, 3, 2, 4}, {1, 3, 2, 4}})) << error;
  auto scattered =
      runBlocks(program("[\"a\"=2]", "2x2", "1x2",
                        "comm.reduce_scatter sum %a dim 0 over @m [\"a\"]"
                        " : tensor<2x2xi32> -> tensor<1x2xi32>"),
                {blocksOf({2, 2}, {{1, 2, 3, 4}, {10, 20, 30, 40}})});
  EXPECT_EQ(perRank(scattered), (Ranks{{11, 22}, {33, 44}})) << error;
  auto sliced = runBlocks(program("[\"a\"=2]", "2x2", "2x1",
                                  "comm.slice %a dim 1 over @m [\"a\"]"
                                  " : tensor<2x2xi32> -> tensor<2x1xi32>"),
                          {blocksOf({2, 2}, {{1, 2, 3, 4}, {10, 20, 30, 40}})});
  EXPECT_EQ(perRank(sliced), (Ranks{{1, 3}, {20, 40}})) << error;
}

TEST_F(PartitionedTest, AllToAllAndPermute) {
  using Ranks = std::vector<Numbers>;
  auto exchanged =
      runBlocks(program("[\"a\"=2]", "2x1", "1x2",
                        "comm.all_to_all %a split 0 concat 1 over @m [\"a\"]"
                        " : tensor<2x1xi32> -> tensor<1x2xi32>"),
                {blocksOf({2, 1}, {{1, 2}, {3, 4}})});
  EXPECT_EQ(perRank(exchanged), (Ranks{{1, 3}, {2, 4}})) << error;
  // Rank (a, b) gets what rank (b, a) of the other order holds.
  auto permuted = runBlocks(
      program("[\"a\"=2, \"b\"=3]", "1", "1",
              "comm.permute %a from [\"b\", \"a\"] over @m [\"a\", \"b\"]"
              " : tensor<1xi32>"),
      {blocksOf({1}, {{0}, {1}, {2}, {3}, {4}, {5}})});
  // Member k over (a, b) takes from the rank with 2b + a = k.
  EXPECT_EQ(perRank(permuted), (Ranks{{0}, {3}, {1}, {4}, {2}, {5}})) << error;
}

TEST_F(PartitionedTest, RealignMovesBoundaries) {
  // 5 elements in blocks of 3; every second from 1 on, 2 of them, in blocks of
  // 1; the last block keeps its initial value where nothing comes.
  auto moved = runBlocks(
      "cleave.mesh @m = <[\"a\"=2]>\n"
      "func.func @f(%a: tensor<3xi32>, %i: tensor<2xi32>) -> tensor<2xi32> {\n"
      "  %r = comm.realign %a into %i dim 0 size 5 to 3 offset 1 stride 2"
      " from [\"a\"] over @m [\"a\"] : tensor<3xi32> -> tensor<2xi32>\n"
      "  return %r : tensor<2xi32>\n}\n",
      {blocksOf({3}, {{0, 1, 2}, {3, 4, 77}}),
       blocksOf({2}, {{-1, -2}, {-3, -4}})});
  EXPECT_EQ(perRank(moved), (std::vector<Numbers>{{1, 3}, {-3, -4}})) << error;
}

TEST_F(PartitionedTest, SendAndReceive) {
  auto moved =
      runBlocks("cleave.mesh @m = <[\"a\"=3]>\n"
                "func.func @f(%a: tensor<1xi32>) -> tensor<1xi32> {\n"
                "  comm.send %a delta 1 over @m [\"a\"] : tensor<1xi32>\n"
                "  %r = comm.recv delta -1 over @m [\"a\"] : tensor<1xi32>\n"
                "  return %r : tensor<1xi32>\n}\n",
                {blocksOf({1}, {{1}, {2}, {3}})});
  ASSERT_EQ(moved.size(), 1u) << error;
  EXPECT_EQ(perRank(moved)[1], (Numbers{1}));
  EXPECT_EQ(perRank(moved)[2], (Numbers{2}));
  runBlocks(program("[\"a\"=2]", "1", "1",
                    "comm.recv delta -1 over @m [\"a\"] : tensor<1xi32>"),
            {blocksOf({1}, {{1}, {2}})});
  EXPECT_NE(error.find("waits for a block that rank 0 has not sent"),
            std::string::npos);
}

TEST_F(PartitionedTest, CommunicationInADivergingBranchIsAnError) {
  runBlocks("cleave.mesh @m = <[\"a\"=2]>\n"
            "func.func @f(%a: tensor<1xi32>) -> tensor<1xi32> {\n"
            "  %c = comm.coordinate over @m [\"a\"]\n"
            "  %z = arith.constant 0 : index\n"
            "  %first = arith.cmpi eq, %c, %z : index\n"
            "  %r = scf.if %first -> tensor<1xi32> {\n"
            "    %s = comm.all_reduce sum %a over @m [\"a\"] : tensor<1xi32>\n"
            "    scf.yield %s : tensor<1xi32>\n"
            "  } else {\n    scf.yield %a : tensor<1xi32>\n  }\n"
            "  return %r : tensor<1xi32>\n}\n",
            {blocksOf({1}, {{1}, {2}})});
  EXPECT_NE(error.find("rank 0 waits for rank 1, which does not come here"),
            std::string::npos)
      << error;
}

/// Sum of 5 elements in blocks of 2 over 3 ranks; the mask is what `%keep` is.
std::string maskedSum(llvm::StringRef keep, llvm::StringRef axes) {
  return ("cleave.mesh @m = <[\"a\"=3]>\n"
          "#i = affine_map<(d0) -> (d0)>\n#o = affine_map<(d0) -> ()>\n"
          "func.func @f(%a: tensor<2xi32> {cleave.sharding ="
          " #cleave.sharding<@m, [{\"a\"}]>, cleave.global_type = "
          "tensor<5xi32>})"
          " -> (tensor<i32> {cleave.sharding = #cleave.sharding<@m, []>,"
          " cleave.global_type = tensor<i32>}) {\n"
          "  %zero = arith.constant dense<0> : tensor<i32>\n"
          "  %c = comm.coordinate over @m [\"a\"]\n"
          "  %two = arith.constant 2 : index\n"
          "  %five = arith.constant 5 : index\n"
          "  %start = arith.muli %c, %two : index\n"
          "  %none = arith.constant 0 : i32\n"
          "  %s = linalg.generic {indexing_maps = [#i, #o], iterator_types ="
          " [\"reduction\"]} ins(%a : tensor<2xi32>) outs(%zero : tensor<i32>) "
          "{\n"
          "  ^bb0(%x: i32, %sum: i32):\n"
          "    %j = linalg.index 0 : index\n"
          "    %g = arith.addi %start, %j : index\n"
          "    %keep = " +
          keep +
          "\n    %v = arith.select %keep, %x, %none : i32\n"
          "    %t = arith.addi %sum, %v : i32\n"
          "    linalg.yield %t : i32\n  } -> tensor<i32>\n"
          "  %r = comm.all_reduce sum %s over @m " +
          axes + " : tensor<i32>\n  return %r : tensor<i32>\n}\n")
      .str();
}

TEST_F(PartitionedTest, PaddingIsPoisonUnlessMasked) {
  Tensor in = tensorOf(kI32, {5}, {1, 2, 3, 4, 5});
  auto good = runPartitioned(
      maskedSum("arith.cmpi slt, %g, %five : index", "[\"a\"]"), {in});
  ASSERT_EQ(good.size(), 1u) << error;
  EXPECT_EQ(numbers(good[0]), (Numbers{15}));
  auto bad = runPartitioned(maskedSum("arith.constant true", "[\"a\"]"), {in});
  EXPECT_TRUE(bad.empty() || numbers(bad[0]) != (Numbers{15}));
}

TEST_F(PartitionedTest, CopiesThatDifferAreAnError) {
  Tensor in = tensorOf(kI32, {5}, {1, 2, 3, 4, 5});
  runPartitioned(maskedSum("arith.cmpi slt, %g, %five : index", "[]"), {in});
  EXPECT_NE(error.find("copies of 'res0' differ at []"), std::string::npos)
      << error;
}

TEST_F(PartitionedTest, ScatterThenGatherIsIdentity) {
  cleave::Mesh mesh;
  mesh.axes = {{"a", 3}, {"b", 2}};
  mesh.ranks = {5, 3, 1, 0, 2, 4};
  cleave::Sharding sharding = cleave::Sharding::whole(2, false);
  sharding.dims[0].axes = {mesh.whole(1), mesh.whole(0)};
  Tensor whole(kI32, {7, 3});
  for (int i = 0; i < 21; ++i)
    whole.data[i].i = i;
  Random random(3);
  auto blocks = scatter(mesh, sharding, whole, random);
  ASSERT_EQ(blocks.size(), 6u);
  EXPECT_EQ(blocks[0].shape, (Shape{2, 3}));
  // Rank 5 sits at (0, 0) and has the first block.
  EXPECT_EQ(blocks[5].data[0].i, 0);
  auto joined = unwrap(gather(mesh, sharding, whole.shape, blocks, "x"));
  EXPECT_EQ(compare(whole, joined, 0), "");
  blocks[5].data[0].i = 99;
  joined = unwrap(gather(mesh, sharding, whole.shape, blocks, "x"));
  EXPECT_EQ(compare(whole, joined, 0),
            "1 of 21 elements differ, first at [0, 0]: expected 0, got 99");
}
} // namespace
