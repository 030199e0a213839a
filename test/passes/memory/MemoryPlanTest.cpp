//===- MemoryPlanTest.cpp - Offsets of buffers in one arena ---------------===//
#include "passes/memory/MemoryPlan.h"
#include <gtest/gtest.h>
#include <random>

using namespace cleave;

namespace {

/// No two that are alive at once overlap; offsets are aligned; the arena ends
/// where the last buffer ends.
void expectValid(const std::vector<PlannedBuffer> &buffers,
                 const MemoryPlan &plan) {
  int64_t end = 0;
  ASSERT_EQ(plan.offsets.size(), buffers.size());
  for (size_t i = 0; i < buffers.size(); ++i) {
    EXPECT_EQ(plan.offsets[i] % kMemoryAlignment, 0);
    end = std::max(end, plan.offsets[i] + buffers[i].bytes);
    for (size_t j = 0; j < i; ++j) {
      const PlannedBuffer &a = buffers[i], &b = buffers[j];
      bool together = a.begin <= b.end && b.begin <= a.end;
      bool overlap = plan.offsets[i] < plan.offsets[j] + b.bytes &&
                     plan.offsets[j] < plan.offsets[i] + a.bytes;
      EXPECT_FALSE(together && overlap) << i << " and " << j;
    }
  }
  EXPECT_EQ(plan.bytes, end);
  EXPECT_GE(plan.bytes, plan.lowerBound);
}

TEST(MemoryPlan, NothingNeedsNothing) { EXPECT_EQ(planMemory({}).bytes, 0); }

TEST(MemoryPlan, EndsWhereTheLastBufferEnds) {
  MemoryPlan plan = planMemory({{100, 0, 1}});
  EXPECT_EQ(plan.bytes, 100);
  EXPECT_EQ(plan.lowerBound, 100);
}

// A chain needs two buffers at a time, however long it is.
TEST(MemoryPlan, ReusesDeadBuffers) {
  std::vector<PlannedBuffer> buffers;
  for (int64_t i = 0; i < 100; ++i)
    buffers.push_back({640, i, i + 1});
  MemoryPlan plan = planMemory(buffers);
  expectValid(buffers, plan);
  EXPECT_EQ(plan.bytes, 1280);
}

// Ending at the moment when another begins is being alive together.
TEST(MemoryPlan, MomentsAreInclusive) {
  EXPECT_EQ(planMemory({{64, 0, 1}, {64, 1, 2}}).bytes, 128);
  EXPECT_EQ(planMemory({{64, 0, 1}, {64, 2, 3}}).bytes, 64);
}

TEST(MemoryPlan, EmptyBuffersTakeNoRoom) {
  std::vector<PlannedBuffer> buffers = {{0, 0, 9}, {64, 0, 9}, {0, 3, 4}};
  MemoryPlan plan = planMemory(buffers);
  expectValid(buffers, plan);
  EXPECT_EQ(plan.bytes, 64);
}

// The order by time fails here, the order by size does not.
TEST(MemoryPlan, TriesSeveralOrders) {
  std::vector<PlannedBuffer> buffers = {
      {64, 0, 1}, {64, 0, 3}, {128, 2, 3}, {64, 0, 0}, {192, 4, 5}};
  MemoryPlan plan = planMemory(buffers);
  expectValid(buffers, plan);
  EXPECT_EQ(plan.bytes, plan.lowerBound);
}

TEST(MemoryPlan, RandomBuffersAreValidAndNearTheBound) {
  std::mt19937 random(7);
  int64_t total = 0, bound = 0;
  for (int round = 0; round < 200; ++round) {
    std::vector<PlannedBuffer> buffers(random() % 40);
    for (PlannedBuffer &buffer : buffers) {
      buffer.bytes = random() % 5000;
      buffer.begin = random() % 50;
      buffer.end = buffer.begin + random() % 12;
    }
    MemoryPlan plan = planMemory(buffers);
    expectValid(buffers, plan);
    for (int64_t tried : plan.tried)
      EXPECT_LE(plan.bytes, tried);
    total += plan.bytes;
    bound += plan.lowerBound;
  }
  EXPECT_LE(total, bound + bound / 10);
}

} // namespace
