//===- CopyTest.cpp - Copies past the cache -------------------------------===//
#include "runtime/cpu/Copy.h"
#include "runtime/comm/Plan.h"

#include <gtest/gtest.h>
#include <vector>

using namespace cleave::rt;

namespace {

std::vector<char> numbered(size_t size) {
  std::vector<char> bytes(size);
  for (size_t i = 0; i < size; ++i)
    bytes[i] = char(i * 131 >> 3);
  return bytes;
}

TEST(Copy, EveryAlignmentAndTail) {
  constexpr size_t kRoom = 4096 + 256;
  std::vector<char> source = numbered(kRoom);
  for (size_t size : {0, 1, 63, 64, 65, 127, 128, 200, 4096, 4111})
    for (size_t to = 0; to < 68; to += size > 200 ? 17 : 1)
      for (size_t from : {0, 1, 16, 33}) {
        std::vector<char> target(kRoom, 'x'), expected = target;
        std::copy_n(source.begin() + long(from), size,
                    expected.begin() + long(to));
        copyStreaming(target.data() + to, source.data() + from, size);
        ASSERT_EQ(target, expected)
            << size << " bytes to " << to << " from " << from;
      }
}

TEST(Copy, RegionsAreTheSamePastTheCache) {
  for (int64_t bytes : {7, 4095, 4096, 5003}) {
    Region region;
    region.count = {2, 1, 3};
    region.bytes = bytes;
    region.sourceStep = {3 * bytes + 5, 0, bytes};
    region.targetStep = {3 * (bytes + 1), 0, bytes + 1};
    region.sourceOffset = 2;
    region.targetOffset = 1;
    std::vector<char> source = numbered(size_t(8 * bytes + 64));
    std::vector<char> through(source.size(), 0), past = through;
    copyRegion(region, through.data(), source.data());
    copyRegion(region, past.data(), source.data(), /*streams=*/true);
    EXPECT_EQ(through, past) << bytes;
    EXPECT_NE(through, std::vector<char>(source.size(), 0));
  }
}

TEST(Copy, TheCacheHasASize) {
  EXPECT_GE(lastLevelCacheBytes(), int64_t(64) << 10);
}

} // namespace
