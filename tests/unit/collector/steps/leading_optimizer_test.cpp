// SPDX-License-Identifier: Apache-2.0
// Of several optimizers one makes the steps.
#include "collector/steps/leading_optimizer.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "tests/unit/support/step_tracker.h"

namespace gpuprof::test {
namespace {

// How many boundaries the marks of these optimizers make, each letter one.
size_t optimizer_steps(std::string_view optimizers) {
  StepTracker tracker = tracker_for("optimizer");
  size_t count = 0;
  for (const char optimizer : optimizers) {
    count += tracker.mark({StepSource::optimizer, 2000, static_cast<uint64_t>(optimizer)}).count;
  }
  return count;
}

std::string repeated(std::string_view text, int times) {
  std::string all;
  for (int i = 0; i < times; ++i) all += text;
  return all;
}

TEST(StepTracker, SeveralOptimizersMakeOneStep) {
  EXPECT_EQ(optimizer_steps(repeated("A", 40)), 40u);
  EXPECT_EQ(optimizer_steps(repeated("AB", 40)), 40u);
  EXPECT_EQ(optimizer_steps(repeated("ABCDEFGHIJKLMNOPQRSTUVWXYZ", 40)), 40u)
      << "one optimizer for each parameter";
  EXPECT_EQ(optimizer_steps(repeated("ABBBBB", 40)), 40u);
  EXPECT_EQ(optimizer_steps(repeated("AB", 20) + "AA" + repeated("AB", 20)), 42u)
      << "one that leaves out a step now and then is not rarer";
}

TEST(StepTracker, TheRarerOptimizerLeadsFromItsSecondStepOn) {
  for (const int critics : {2, 5, 15, 16, 17, 20}) {
    const std::string round = repeated("D", critics) + "G";
    EXPECT_EQ(optimizer_steps(repeated(round, 40)), 2u * static_cast<size_t>(critics) + 39)
        << critics;
  }
  // The first one's rivals make it seem gone once, and no more.
  EXPECT_EQ(optimizer_steps(repeated("G" + repeated("D", 20), 40)), 1 + 3 + 20 + 38u);
  // More at the start, as WGAN does: steps of the critic, until the mean falls; then no more.
  const std::string many = repeated(repeated("D", 100) + "G", 25), few = repeated("DDDDDG", 500);
  EXPECT_EQ(optimizer_steps(many + few + many + few), 2500 + 5 * 128 + 373 + 25 + 500u);
}

// DiLoCo: an optimizer of the inner loop's steps, and one that steps after so many of them.
TEST(StepTracker, AnOuterLoopsOptimizerDoesNotLead) {
  for (const int inner : {21, 30, 50, 100, 199, 500}) {
    const std::string round = repeated("I", inner) + "O";
    EXPECT_EQ(optimizer_steps(repeated(round, 40)), 40u * static_cast<size_t>(inner)) << inner;
  }
}

TEST(StepTracker, AnOptimizerThatStoppedLeadsNoLonger) {
  EXPECT_EQ(optimizer_steps(repeated("A", 20) + repeated("B", 37)), 20u + 20u)
      << "17 steps of another until it counts as gone; the 18th shows it";
  EXPECT_EQ(optimizer_steps(repeated("AB", 20) + repeated("C", 200)), 20 + 183u);
  EXPECT_EQ(optimizer_steps(repeated("AB", 20) + repeated("CD", 200)), 20 + 191u);
  // Phases that take turns: the one that leads keeps the lead, and nothing is counted twice.
  const size_t phases = optimizer_steps(repeated(repeated("A", 80) + repeated("B", 80), 20));
  EXPECT_GE(phases, 19 * 80u);
  EXPECT_LE(phases, 21 * 80u);
}

TEST(StepTracker, TrialsHaveOptimizersOfTheirOwn) {
  for (const int length : {10, 100}) {
    std::string all;
    for (char name = 'A'; name <= 'Z'; ++name) all += repeated(std::string(1, name), length);
    const size_t steps = all.size();
    const size_t found = optimizer_steps(all);
    EXPECT_GE(found, steps / 10) << length;
    EXPECT_LE(found, steps) << length;
  }
}

TEST(StepTracker, MoreOptimizersThanAreKnown) {
  const auto rounds = [](StepTracker& tracker, uint64_t first, uint64_t optimizers, int times) {
    size_t count = 0;
    for (int round = 0; round < times; ++round) {
      for (uint64_t i = 0; i < optimizers; ++i)
        count += tracker.mark({StepSource::optimizer, 2000, first + i}).count;
    }
    return count;
  };
  for (const uint64_t optimizers : {30u, 264u, 265u, 300u, 1000u, 3000u}) {
    StepTracker tracker = tracker_for("optimizer");
    EXPECT_EQ(rounds(tracker, 1, optimizers, 50), 50u) << optimizers;
    EXPECT_GE(rounds(tracker, 1000000, optimizers, 50), 25u) << "all of them are replaced";
  }
}

}  // namespace
}  // namespace gpuprof::test
