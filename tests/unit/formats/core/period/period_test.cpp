// SPDX-License-Identifier: Apache-2.0
// Steps from the order of launches alone: generated programs, with up to 5 % of kernels missing or
// added.
#include "formats/core/period/period.h"

#include <gtest/gtest.h>

#include <functional>
#include <vector>

#include "tests/unit/support/launch_streams.h"

namespace gpuprof {
namespace {

struct Outcome {
  int right = 0, wrong_and_sure = 0, silent = 0, all = 0;
};

Outcome outcome_of(const std::function<test::LaunchStream(test::StreamMaker&)>& make, int streams) {
  Outcome out;
  for (int seed = 0; seed < streams; ++seed) {
    test::StreamMaker maker(1000 + static_cast<uint64_t>(seed) * 7);
    test::LaunchStream stream = make(maker);
    maker.disturb(stream, (seed % 4) * 5.0 / 3);
    Period period;
    EXPECT_TRUE(find_period(stream.kernels.data(), stream.kernels.size(), period));
    const bool right = period.begins.size() == stream.steps && stream.steps > 0;
    ++out.all;
    out.right += right;
    out.silent += period.begins.empty() && period.confidence == 0;
    out.wrong_and_sure += !right && period.confidence > 0.5;
  }
  return out;
}

TEST(Period, Llm) {
  const Outcome out = outcome_of([](test::StreamMaker& m) { return m.llm(1); }, 24);
  EXPECT_GE(out.right, 0.95 * out.all);
  EXPECT_EQ(out.wrong_and_sure, 0);
}

TEST(Period, Accumulation) {
  const Outcome out = outcome_of([](test::StreamMaker& m) { return m.llm(m.from(2, 5)); }, 24);
  EXPECT_GE(out.right, 0.95 * out.all);
  EXPECT_EQ(out.wrong_and_sure, 0);
}

TEST(Period, ConvolutionalNetwork) {
  const Outcome out = outcome_of([](test::StreamMaker& m) { return m.cnn(); }, 24);
  EXPECT_GE(out.right, 0.85 * out.all);
  EXPECT_EQ(out.wrong_and_sure, 0);
}

TEST(Period, Generation) {
  const Outcome out = outcome_of([](test::StreamMaker& m) { return m.generation(); }, 24);
  EXPECT_GE(out.right, 0.85 * out.all);
  EXPECT_EQ(out.wrong_and_sure, 0);
}

// Some batches are evaluated after every few steps: forward passes that are no steps.
TEST(Period, Evaluation) {
  using Maker = test::StreamMaker;
  const std::function<test::LaunchStream(Maker&)> ways[] = {
      [](Maker& m) { return m.llm(1, m.from(3, 6)); },
      [](Maker& m) { return m.llm(1, m.from(3, 6), m.from(1, 8)); },
      [](Maker& m) { return m.llm(1, m.from(10, 15), m.from(1, 30)); },
      [](Maker& m) { return m.llm(m.from(2, 4), m.from(3, 6), m.from(1, 8)); },
      [](Maker& m) { return m.cnn(m.from(3, 6), m.from(1, 8)); },
  };
  int right = 0, all = 0;
  for (const auto& way : ways) {
    const Outcome out = outcome_of(way, 24);
    EXPECT_GE(out.right, 0.65 * out.all);
    EXPECT_EQ(out.wrong_and_sure, 0);
    right += out.right;
    all += out.all;
  }
  EXPECT_GE(right, 0.85 * all);
}

// Batches of a few launches each, after the program has put its weights in place.
TEST(Period, ShortSteps) {
  for (const uint32_t length : {4, 5, 17, 60}) {
    std::vector<uint32_t> kernels;
    for (uint32_t i = 0; i < 300; ++i) kernels.push_back(1000 + i % 3);
    for (uint32_t i = 0; i < 400 * length; ++i) kernels.push_back(i % length);
    Period period;
    EXPECT_TRUE(find_period(kernels.data(), kernels.size(), period));
    EXPECT_GT(period.confidence, 0.9) << length;
    EXPECT_EQ(period.length, length);
    EXPECT_EQ(period.begins.size(), 400u);
  }
}

TEST(Period, SilentWhereThereIsNone) {
  const Outcome out = outcome_of([](test::StreamMaker& m) { return m.noise(); }, 12);
  EXPECT_EQ(out.silent, out.all);
  Period period;
  EXPECT_TRUE(find_period(nullptr, 0, period) && period.begins.empty());
  const std::vector<uint32_t> same(1000, 7);
  EXPECT_TRUE(find_period(same.data(), same.size(), period) && period.begins.empty());
}

}  // namespace
}  // namespace gpuprof
