// SPDX-License-Identifier: Apache-2.0
#include "formats/trace/listing.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <set>
#include <string>
#include <vector>

namespace gpuprof {
namespace {

using Numbers = std::vector<int32_t>;

TEST(NumberRanges, RunsAreOne) {
  EXPECT_EQ(number_ranges(Numbers{}), "");
  EXPECT_EQ(number_ranges(Numbers{7}), "7");
  EXPECT_EQ(number_ranges(Numbers{0, 1, 2, 3, 7, 9, 10}), "0-3, 7, 9-10");
  EXPECT_EQ(number_ranges(std::set<uint64_t>{5, 4, 9}), "4-5, 9");
  EXPECT_EQ(range_count(Numbers{}), 0u);
  EXPECT_EQ(range_count(Numbers{0, 1, 2, 3, 7, 9, 10}), 3u);
}

TEST(NumberRanges, WhatIsManyIsCounted) {
  Numbers odd;
  for (int32_t i = 1; i < 1024; i += 2) odd.push_back(i);
  EXPECT_EQ(range_count(odd), 512u);
  EXPECT_EQ(rank_ranges(odd), "ranks 1, 3, 5, 7, 9, 11, 13, 15 and 504 more");
  EXPECT_EQ(number_ranges(Numbers{0, 1, 4, 6}, 2), "0-1, 4 and 1 more");
  EXPECT_EQ(rank_ranges(Numbers{3}), "rank 3");
}

TEST(NamesOfSome, TheRestIsCounted) {
  const std::vector<std::string> names{"a", "b", "c"};
  EXPECT_EQ(names_of_some(names, 3), "a, b, c");
  EXPECT_EQ(names_of_some(names, 2), "a, b and 1 more");
  EXPECT_EQ(names_of_some(std::vector<std::string>{}, 2), "");
}

}  // namespace
}  // namespace gpuprof
