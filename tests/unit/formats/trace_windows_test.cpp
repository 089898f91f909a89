// SPDX-License-Identifier: Apache-2.0
// Which windows of several processes, each in a trace of its own, are one.
#include "formats/trace_windows.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

namespace gpuprof::test {
namespace {

struct Part {
  int rank;
  int64_t begin, end;     // ms
  uint64_t first = 0;     // step
  uint64_t count = 0;     // of steps
  std::string file = {};  // where it is not one of its own
};

using Numbers = std::vector<uint32_t>;

// The windows that the traces get, in whatever order they are read.
Numbers numbers(const std::vector<Part>& parts) {
  std::vector<size_t> order(parts.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  Numbers out;
  std::mt19937 random(1);
  for (int round = 0; round < 5; ++round) {
    Trace trace;
    for (const size_t i : order) {
      const Part& part = parts[i];
      Process& process = trace.processes.emplace_back();
      process.source = Source::kineto;
      process.path = part.file.empty() ? std::to_string(i) : part.file;
      process.header.set_rank(part.rank);
      process.header.set_pid(100 + static_cast<uint32_t>(part.rank));
      process.window_begin = part.begin * 1'000'000, process.window_end = part.end * 1'000'000;
      for (uint64_t step = part.first; step < part.first + part.count; ++step) {
        process.steps.push_back({step, process.window_begin, process.window_end});
      }
    }
    number_windows(trace);
    Numbers found(parts.size());
    for (size_t i = 0; i < order.size(); ++i) {
      found[order[i]] = trace.processes[i].header.window();
    }
    if (round > 0) {
      EXPECT_EQ(found, out);
    }
    out = found;
    std::shuffle(order.begin(), order.end(), random);
  }
  return out;
}

TEST(TraceWindows, OfOneProcessGrowAndOverlappingOnesAreOne) {
  EXPECT_EQ(numbers({{0, 200, 300}, {0, 0, 100}, {0, 400, 500}}), (Numbers{1, 0, 2}));
  EXPECT_EQ(numbers({{0, 0, 100}, {0, 50, 120}, {0, 120, 200}}), (Numbers{0, 0, 1}));
}

TEST(TraceWindows, OfAProcessWithoutTheFirstAreThoseOfTheSameTime) {
  EXPECT_EQ(numbers({{0, 0, 100}, {0, 200, 300}, {1, 205, 303}}), (Numbers{0, 1, 1}));
  EXPECT_EQ(numbers({{0, 0, 100, 10, 5}, {0, 200, 300, 30, 5}, {1, 205, 303, 30, 5}}),
            (Numbers{0, 1, 1}));
  // One in the middle, and one that nobody else has.
  EXPECT_EQ(numbers({{0, 0, 100},
                     {0, 400, 500},
                     {1, 1, 101},
                     {1, 200, 300},
                     {1, 401, 501},
                     {2, 402, 502},
                     {2, 600, 700}}),
            (Numbers{0, 2, 0, 1, 2, 2, 3}));
  // Neither has all.
  EXPECT_EQ(numbers({{0, 0, 100}, {0, 200, 300}, {1, 205, 303}, {1, 400, 500}}),
            (Numbers{0, 1, 1, 2}));
}

TEST(TraceWindows, StepsTellWhereClocksDoNot) {
  // Another host's clock, 10 s behind; then one that is off by the time between two windows.
  EXPECT_EQ(numbers({{0, 10'000, 10'100, 10, 5}, {0, 10'200, 10'300, 30, 5}, {1, 200, 300, 30, 5}}),
            (Numbers{0, 1, 1}));
  EXPECT_EQ(
      numbers(
          {{0, 0, 100, 10, 5}, {0, 200, 300, 30, 5}, {1, 200, 300, 10, 5}, {1, 400, 500, 30, 5}}),
      (Numbers{0, 1, 0, 1}));
  // Steps that begin anew in each window: the time tells which.
  EXPECT_EQ(numbers({{0, 0, 100, 0, 5}, {0, 200, 300, 0, 5}, {1, 201, 301, 0, 5}}),
            (Numbers{0, 1, 1}));
}

TEST(TraceWindows, WithoutStepsAndACommonClockTheyGoInOrder) {
  EXPECT_EQ(numbers({{0, 10'000, 10'100}, {0, 10'200, 10'300}, {1, 0, 100}, {1, 200, 300}}),
            (Numbers{0, 1, 0, 1}));
  EXPECT_EQ(numbers({{0, 10'000, 10'100}, {0, 10'200, 10'300}, {1, 0, 100}}), (Numbers{0, 1, 0}));
}

TEST(TraceWindows, OfOtherStepsAndAnotherTimeAreNotOne) {
  EXPECT_EQ(numbers({{0, 0, 100, 10, 5}, {1, 200, 300, 30, 5}}), (Numbers{0, 1}));
}

TEST(TraceWindows, OfOneFileAreOne) {
  EXPECT_EQ(numbers({{0, 0, 40, 0, 0, "a"},
                     {1, 50, 100, 0, 0, "a"},
                     {0, 200, 240, 0, 0, "b"},
                     {1, 230, 300, 0, 0, "b"}}),
            (Numbers{0, 0, 1, 1}));
}

// Clocks that differ by less than a window do not tear windows apart.
TEST(TraceWindows, OfManyRanksFitTogether) {
  std::vector<Part> parts;
  Numbers expected;
  std::mt19937 random(7);
  for (int rank = 0; rank < 50; ++rank) {
    const int64_t off = rank == 0 ? 0 : static_cast<int64_t>(random() % 60);
    for (uint32_t window = 0; window < 6; ++window) {
      if (rank % 3 == 1 && window == static_cast<uint32_t>(rank) % 6) continue;  // a missing file
      const int64_t begin = 100 * window + off;
      parts.push_back({rank, begin, begin + 90, 20 * window, 10});
      expected.push_back(window);
    }
  }
  EXPECT_EQ(numbers(parts), expected);
  for (Part& part : parts) part.count = 0;
  for (size_t i = 0; i < parts.size(); ++i) {  // by time alone where clocks are nearly the same
    parts[i].begin = 100 * expected[i] + parts[i].rank % 7;
    parts[i].end = parts[i].begin + 90;
  }
  EXPECT_EQ(numbers(parts), expected);
}

}  // namespace
}  // namespace gpuprof::test
