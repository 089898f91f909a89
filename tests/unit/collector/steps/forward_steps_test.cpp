// SPDX-License-Identifier: Apache-2.0
// Calls of PyTorch's modules as steps: when `auto` takes them, and of which module.
#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "collector/steps/leading_module.h"
#include "tests/unit/support/step_tracker.h"

namespace gpuprof::test {
namespace {

constexpr Patience kPatience{1000, 24, 0};

StepMark forward(uint64_t at, bool trains, uint64_t module = 1) {
  StepMark mark{StepSource::forward, at, module};
  mark.trains = trains;
  return mark;
}

StepTracker torch_tracker() {
  StepTracker tracker = tracker_for("auto");
  tracker.set_patience(kPatience);
  tracker.expect_optimizers();
  return tracker;
}

TEST(ForwardSteps, AreTakenAtOnceWhereNobodyWantsGradients) {
  StepTracker tracker = torch_tracker();
  EXPECT_EQ(tracker.mark(forward(2001, false)).count, 0u);
  EXPECT_EQ(tracker.mark(forward(2002, false)).count, 0u);
  const StepTracker::Result result = tracker.mark(forward(2003, false));
  EXPECT_TRUE(result.chosen_now);
  EXPECT_EQ(ticks(result), (std::vector<uint64_t>{2001, 2002, 2003}));
  EXPECT_EQ(described(tracker), "forward");
}

TEST(ForwardSteps, WaitForOptimizersWhereGradientsAreWanted) {
  StepTracker tracker = torch_tracker();
  for (uint64_t i = 0; i < 24; ++i) {
    EXPECT_EQ(tracker.mark(forward(2000 + i * 100, true)).count, 0u) << i;
  }
  EXPECT_TRUE(tracker.mark(forward(4400, true)).chosen_now) << "1,000 ticks and a cycle later";
}

TEST(ForwardSteps, WaitForAnOptimizerThatIsThere) {
  StepTracker tracker = torch_tracker();
  const auto validation = [&](uint64_t at) {
    StepMark mark = forward(at, false);
    mark.may_train = true;
    return tracker.mark(mark);
  };
  for (uint64_t i = 0; i < 24; ++i) EXPECT_EQ(validation(2000 + i * 100).count, 0u) << i;
  for (const uint64_t at : {4310, 4320, 4330}) tracker.mark({StepSource::optimizer, at, 7});
  EXPECT_EQ(tracker.source(), StepSource::optimizer);
}

TEST(ForwardSteps, OfATrainingAreNotItsEvaluations) {
  StepTracker tracker = torch_tracker();
  uint64_t now = 2000;
  const auto calls = [&](bool trains, int times) {
    size_t count = 0;
    for (int i = 0; i < times; ++i) count += tracker.mark(forward(now += 100, trains)).count;
    return count;
  };
  EXPECT_EQ(calls(true, 30), 30u);
  ASSERT_EQ(described(tracker), "forward");
  EXPECT_EQ(calls(false, 10), 0u);
  EXPECT_EQ(calls(true, 5), 5u);
  EXPECT_EQ(calls(false, 1000), 0u);
  EXPECT_EQ(calls(true, 5), 5u);
  EXPECT_EQ(calls(false, 2500), 2500 - 2000u) << "it has become a server";
  EXPECT_EQ(calls(true, 5), 5u) << "or not";
}

TEST(ForwardSteps, OfATrainingFollowThoseOfAValidation) {
  StepTracker tracker = tracker_for("forward");
  size_t count = 0;
  for (int i = 0; i < 20; ++i) count += tracker.mark(forward(2000, false)).count;
  EXPECT_EQ(count, 20u);
  for (int i = 0; i < 20; ++i) count += tracker.mark(forward(2000, i % 2 == 0)).count;
  EXPECT_EQ(count, 20 + 10 + 2u) << "two without gradients until three have wanted them";
}

TEST(ForwardSteps, OfAServerMayBeginWithGradients) {
  StepTracker tracker = tracker_for("forward");
  size_t count = 0;
  for (int i = 0; i < 50; ++i) count += tracker.mark(forward(2000, i < 2)).count;
  EXPECT_EQ(count, 2 + 48 - 3u);
}

TEST(ForwardSteps, GiveWayToAnOptimizer) {
  StepTracker tracker = torch_tracker();
  for (uint64_t i = 0; i < 5; ++i) tracker.mark(forward(2000 + i, false));
  ASSERT_EQ(tracker.source(), StepSource::forward);
  bool restarts = false;
  for (uint64_t i = 0; i < 3; ++i) {
    tracker.mark(forward(3000 + 10 * i, true));
    restarts |= tracker.mark({StepSource::optimizer, 3005 + 10 * i, 7}).restarts;
  }
  EXPECT_TRUE(restarts) << "validation before the training was no step";
  EXPECT_EQ(tracker.source(), StepSource::optimizer);
}

TEST(ForwardSteps, AreBelowRangesAndAboveGraphs) {
  StepTracker ranges = torch_tracker();
  ASSERT_TRUE(ranges.nvtx_matches("step 1"));
  for (uint64_t i = 0; i < 4; ++i) {
    ranges.mark({StepSource::nvtx, 2000 + 10 * i});
    ranges.mark(forward(2001 + 10 * i, false));
  }
  EXPECT_EQ(ranges.source(), StepSource::nvtx);
  StepTracker graphs = torch_tracker();
  for (uint64_t i = 0; i < 4; ++i) {
    graphs.mark({StepSource::graph, 2000 + 10 * i, 5});
    graphs.mark(forward(2001 + 10 * i, false));
  }
  EXPECT_EQ(graphs.source(), StepSource::forward);
}

// The program ends before the wait is over: nothing better came.
TEST(ForwardSteps, AreTakenAtTheEnd) {
  StepTracker tracker = torch_tracker();
  EXPECT_EQ(tracker.settle().count, 0u) << "nothing has fired";
  for (uint64_t i = 0; i < 5; ++i) tracker.mark(forward(2000 + i, true));
  ASSERT_EQ(tracker.source(), StepSource::automatic);
  EXPECT_EQ(ticks(tracker.settle()), (std::vector<uint64_t>{2000, 2001, 2002, 2003, 2004}));
  EXPECT_EQ(described(tracker), "forward");

  StepTracker trains = torch_tracker();
  for (uint64_t i = 0; i < 5; ++i) trains.mark(forward(2000 + i, true));
  trains.mark({StepSource::optimizer, 3000, 7});
  EXPECT_EQ(trains.settle().count, 0u) << "batches of one step";

  StepTracker graphs = torch_tracker();
  for (uint64_t i = 0; i < 7; ++i) graphs.mark({StepSource::graph, 2000 + i, i % 2});
  EXPECT_EQ(ticks(graphs.settle()), (std::vector<uint64_t>{2000, 2002, 2004, 2006}));
  EXPECT_EQ(described(graphs), "graph:2");
}

// How many calls count, each letter a module.
size_t steps_of(std::string_view modules) {
  StepTracker tracker = tracker_for("forward");
  size_t count = 0;
  for (const char module : modules) {
    count += tracker.mark(forward(2000, false, static_cast<uint64_t>(module))).count;
  }
  return count;
}

TEST(ForwardSteps, AreThoseOfTheModuleThatIsCalledMost) {
  EXPECT_EQ(steps_of("AAAAA"), 5u);
  EXPECT_EQ(steps_of("ABABABAB"), 4u) << "two towers: the first";
  EXPECT_EQ(steps_of("EDDDDDEDDDDDE"), 1 + 8u) << "an encoder, and a decoder for each token";
  std::string many;
  for (char module = 'a'; module <= 'z'; ++module) many += module;
  EXPECT_EQ(steps_of(many + "ZZZZZ"), 1 + 3u) << "a place for one that comes late";
}

TEST(ForwardSteps, AnotherModuleGoesOnWhereTheLeaderIsGone) {
  const std::string old(5000, 'A'), fresh(100, 'B');
  EXPECT_EQ(steps_of(old + fresh), 5000 + 100 - 64u) << "a model that is loaded anew";
  EXPECT_EQ(steps_of(old + fresh + "C" + fresh), 5000 + 200 - 64u);
  std::string with_helper;
  for (int i = 0; i < 1000; ++i) with_helper += "HA";
  EXPECT_EQ(steps_of("AA" + with_helper + fresh + "HHHH" + fresh), 2 + 1000 + 200 - 64u)
      << "calls beside the one that is gone are of before";
  std::string rarely = std::string(500, 'A');
  for (int i = 0; i < 5; ++i) rarely += std::string(50, 'B') + "A";
  EXPECT_EQ(steps_of(rarely + std::string(90, 'B') + "A"), 500 + 5 + 1u) << "twice as rarely";
}

TEST(ForwardSteps, ModulesThatAreGoneMakePlace) {
  std::string models;
  for (char module = 'a'; module <= 'z'; ++module) models += std::string(200, module);
  EXPECT_EQ(steps_of(models), 200 + 25 * (200 - 64u));
}

}  // namespace
}  // namespace gpuprof::test
