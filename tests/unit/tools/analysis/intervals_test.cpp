// SPDX-License-Identifier: Apache-2.0
#include "tools/analysis/intervals.h"

#include <gtest/gtest.h>

#include <random>

namespace gpuprof::analysis {
namespace {

TEST(Measure, AStretchTouchesASetWhereItHasALengthInsideIt) {
  std::mt19937 random(1);
  std::uniform_int_distribution<int64_t> time(0, 60);
  for (int turn = 0; turn < 200; ++turn) {
    Intervals any;
    for (int i = 0; i < turn % 7; ++i) {
      const int64_t begin = time(random);
      any.push_back({begin, begin + time(random) / 6});
    }
    const Intervals set = cover(any);
    const Measure measure(set);
    for (int64_t begin = -1; begin < 75; ++begin) {
      for (int64_t end = begin - 1; end < 75; ++end) {
        const int64_t length = begin < end ? total(intersect({{begin, end}}, set)) : 0;
        ASSERT_EQ(measure.inside(begin, end), length) << turn << ": " << begin << " to " << end;
        ASSERT_EQ(measure.touches(begin, end), length > 0)
            << turn << ": " << begin << " to " << end;
      }
    }
  }
}

}  // namespace
}  // namespace gpuprof::analysis
