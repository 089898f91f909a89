// SPDX-License-Identifier: Apache-2.0
#include "tools/analysis/ranks/shared_waits.h"

#include <gtest/gtest.h>

#include <map>

namespace gpuprof::analysis {
namespace {

std::map<uint32_t, double> sums_of(const std::vector<Wait>& waits) {
  std::map<uint32_t, double> out;
  for (const auto& [time, last, share] : shares_of(waits)) {
    out[last] += share * static_cast<double>(time.length());
  }
  return out;
}

TEST(SharedWaits, ForOneRankAreTheTimeThatTheyCover) {
  EXPECT_TRUE(shares_of({}).empty());
  EXPECT_TRUE(shares_of(std::vector<Wait>{{{5, 5}, 1}}).empty());
  EXPECT_EQ(sums_of({{{0, 10}, 1}, {{0, 10}, 1}, {{5, 12}, 1}, {{20, 30}, 1}})[1], 22);
}

TEST(SharedWaits, ForSeveralRanksAreDividedBetweenThem) {
  const auto sums = sums_of({{{0, 10}, 1}, {{4, 10}, 2}, {{4, 8}, 2}, {{6, 16}, 3}});
  EXPECT_DOUBLE_EQ(sums.at(1), 4 + 1 + 4 / 3.0);
  EXPECT_DOUBLE_EQ(sums.at(2), 1 + 4 / 3.0);
  EXPECT_DOUBLE_EQ(sums.at(3), 4 / 3.0 + 6);
}

TEST(SharedWaits, CountByTheirWeight) { EXPECT_DOUBLE_EQ(sums_of({{{0, 8}, 1, 0.5}})[1], 4); }

}  // namespace
}  // namespace gpuprof::analysis
