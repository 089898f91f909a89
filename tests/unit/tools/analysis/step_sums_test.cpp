// SPDX-License-Identifier: Apache-2.0
// Steps that overlap: each is the sum of its own time, whatever else is open.
#include "tools/analysis/step_sums.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace gpuprof::analysis {
namespace {

struct Piece {
  Interval time;
  Part part;
};

// Of one step and one piece.
int64_t common(const Step& step, Interval piece) {
  return std::max<int64_t>(0, std::min(step.end, piece.end) - std::max(step.begin, piece.begin));
}

std::vector<Step> sorted(std::vector<Step> steps) {
  std::sort(steps.begin(), steps.end(),
            [](const Step& a, const Step& b) { return a.begin < b.begin; });
  return steps;
}

// Pieces one after the other, with gaps between some.
std::vector<Piece> pieces_until(int64_t end, std::mt19937& random) {
  std::vector<Piece> out;
  for (int64_t at = 0; at < end;) {
    const int64_t length = static_cast<int64_t>(random() % 40);
    out.push_back({{at, at + length}, static_cast<Part>(random() % kParts)});
    at += length + static_cast<int64_t>(random() % 5);
  }
  return out;
}

void expect_sums(const std::vector<Step>& steps, const std::vector<Piece>& pieces) {
  IdleTimes idle;
  Intervals device_idle;
  StepSums sums(steps, &idle, &device_idle);
  for (const Piece& piece : pieces) {
    sums.pass(piece.time.begin);
    if (piece.part == Part::other) {
      sums.add_device_idle(piece.time);
    } else {
      sums.add(piece.time, piece.part);
    }
    sums.add_overlapped(piece.time, Part::transfer);
    sums.add_no_processor(piece.time, piece.part, (piece.time.end - piece.time.begin) / 2);
  }
  const std::vector<StepAnatomy> found = sums.take();
  ASSERT_EQ(found.size(), steps.size());
  for (size_t i = 0; i < steps.size(); ++i) {
    PartTimes parts{};
    int64_t all = 0, waited = 0, found_waited = 0;
    for (const Piece& piece : pieces) {
      const int64_t length = common(steps[i], piece.time);
      parts[static_cast<size_t>(piece.part)] += length;
      all += length;
      waited += length / 2;
    }
    for (const int64_t each : found[i].no_processor) found_waited += each;
    EXPECT_EQ(found[i].step, steps[i].step);
    EXPECT_EQ(found[i].parts, parts) << "step " << i;
    EXPECT_EQ(found[i].overlapped[1], all);
    EXPECT_EQ(found[i].device_idle, parts[static_cast<size_t>(Part::other)]);
    EXPECT_NEAR(static_cast<double>(found_waited), static_cast<double>(waited),
                2.0 * static_cast<double>(pieces.size()));  // each is rounded
  }
}

TEST(StepSums, StepsOneAfterTheOther) {
  std::mt19937 random(1);
  std::vector<Step> steps;
  for (int64_t i = 0; i < 20; ++i) steps.push_back({static_cast<uint64_t>(i), i * 50, i * 50 + 50});
  expect_sums(steps, pieces_until(1200, random));
}

TEST(StepSums, StepsThatOverlap) {
  for (uint32_t seed = 0; seed < 20; ++seed) {
    std::mt19937 random(seed);
    std::vector<Step> steps;
    for (uint64_t i = 0; i < 30; ++i) {
      const auto begin = static_cast<int64_t>(random() % 1000);
      steps.push_back({i, begin, begin + static_cast<int64_t>(random() % 400)});
    }
    expect_sums(sorted(steps), pieces_until(1200, random));
  }
}

// With a look at each open step for each piece this takes many minutes.
TEST(StepSums, ManyOpenSteps) {
  constexpr int64_t kSteps = 400'000;
  std::vector<Step> steps;
  for (int64_t i = 0; i < kSteps; ++i) {
    steps.push_back({static_cast<uint64_t>(i), i * 10, (i + kSteps) * 10});
  }
  StepSums sums(steps, nullptr, nullptr);
  for (int64_t i = 0; i < 2 * kSteps; ++i) {
    sums.pass(i * 10);
    sums.add({i * 10, i * 10 + 3}, Part::compute);
    sums.add({i * 10 + 3, i * 10 + 10}, Part::other);
  }
  const std::vector<StepAnatomy> found = sums.take();
  for (const StepAnatomy& step : {found.front(), found[kSteps / 2], found.back()}) {
    EXPECT_EQ(step.parts[static_cast<size_t>(Part::compute)], 3 * kSteps);
    EXPECT_EQ(step.parts[static_cast<size_t>(Part::other)], 7 * kSteps);
  }
}

}  // namespace
}  // namespace gpuprof::analysis
