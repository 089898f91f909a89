// SPDX-License-Identifier: Apache-2.0
// A source whose marks stop coming.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/unit/support/step_tracker.h"

namespace gpuprof::test {
namespace {

TEST(StepTracker, ASourceThatFallsSilentGivesWayToAnother) {
  StepTracker tracker = tracker_with_optimizer();
  EXPECT_FALSE(tracker.wants(StepSource::graph));
  ASSERT_TRUE(tracker.look_again());
  EXPECT_TRUE(tracker.waits_for_source());
  EXPECT_EQ(tracker.source(), StepSource::automatic);
  EXPECT_TRUE(tracker.wants(StepSource::graph) && tracker.wants(StepSource::optimizer));
  EXPECT_EQ(tracker.mark({StepSource::graph, 50'000, 3}).count, 0u);
  EXPECT_EQ(tracker.mark({StepSource::graph, 51'000, 3}).count, 0u);
  const StepTracker::Result chosen = tracker.mark({StepSource::graph, 52'000, 3});
  EXPECT_TRUE(chosen.chosen_now);
  EXPECT_EQ(ticks(chosen), std::vector<uint64_t>{52'000}) << "no jump over a window";
  EXPECT_EQ(described(tracker), "graph:1");
}

TEST(StepTracker, AnOptimizerThatComesAgainIsTakenBack) {
  for (const bool other_was_chosen : {false, true}) {
    StepTracker tracker = tracker_with_optimizer();
    ASSERT_TRUE(tracker.look_again());
    for (uint64_t at = 50'000; other_was_chosen && at < 53'000; at += 1000) {
      tracker.mark({StepSource::graph, at, 3});
    }
    EXPECT_EQ(tracker.source(), other_was_chosen ? StepSource::graph : StepSource::automatic);
    const StepTracker::Result back = tracker.mark({StepSource::optimizer, 60'000, 7});
    EXPECT_TRUE(back.chosen_now && back.comes_back);
    EXPECT_EQ(ticks(back), std::vector<uint64_t>{60'000});
    EXPECT_EQ(tracker.source(), StepSource::optimizer);
    EXPECT_FALSE(tracker.wants(StepSource::graph));
    EXPECT_FALSE(tracker.waits_for_source());
  }
}

TEST(StepTracker, InAWindowStepsStayWhatTheyAre) {
  StepTracker tracker = tracker_with_optimizer();
  ASSERT_TRUE(tracker.look_again());
  for (const uint64_t at : {50'000, 51'000, 52'000}) tracker.mark({StepSource::graph, at, 3});
  tracker.hold_source(true);
  EXPECT_FALSE(tracker.wants(StepSource::optimizer));
  EXPECT_EQ(tracker.mark({StepSource::optimizer, 60'000, 7}).count, 0u);  // captured once more
  EXPECT_EQ(ticks(tracker.mark({StepSource::graph, 61'000, 3})), std::vector<uint64_t>{61'000});
  tracker.hold_source(false);  // the window has ended
  EXPECT_EQ(ticks(tracker.mark({StepSource::optimizer, 70'000, 7})), std::vector<uint64_t>{70'000});
  EXPECT_EQ(tracker.source(), StepSource::optimizer);
}

// A validation or a checkpoint, between two steps of the training.
TEST(StepTracker, WhatGoesOnInASilenceIsNoStep) {
  StepTracker tracker = tracker_with_optimizer();
  ASSERT_TRUE(tracker.look_again());
  for (uint64_t at = 50'000; at < 60'000; at += 1000) {
    for (const StepSource source : {StepSource::forward, StepSource::nccl, StepSource::sync}) {
      EXPECT_FALSE(tracker.wants(source));
      StepMark mark{source, at, 5, "ncclAllReduce"};
      mark.trains = false;
      EXPECT_EQ(tracker.mark(mark).count, 0u);
    }
  }
  EXPECT_EQ(tracker.source(), StepSource::automatic);
  EXPECT_TRUE(tracker.mark({StepSource::optimizer, 60'000, 7}).comes_back);
  EXPECT_EQ(tracker.source(), StepSource::optimizer);
}

TEST(StepTracker, TheFirstWindowOfWhatWasTakenInASilenceIsDropped) {
  StepTracker tracker = tracker_with_optimizer();
  ASSERT_TRUE(tracker.look_again());
  for (const uint64_t at : {50'000, 51'000, 52'000}) tracker.mark({StepSource::graph, at, 3});
  tracker.hold_source(true, true);
  EXPECT_EQ(tracker.mark({StepSource::optimizer, 60'000, 7}).count, 0u) << "captured once more";
  EXPECT_EQ(ticks(tracker.mark({StepSource::graph, 61'000, 3})), std::vector<uint64_t>{61'000});
  EXPECT_EQ(tracker.mark({StepSource::optimizer, 62'000, 7}).count, 0u);
  const StepTracker::Result back = tracker.mark({StepSource::optimizer, 63'000, 7});
  EXPECT_TRUE(back.chosen_now && back.restarts && back.comes_back);
  EXPECT_EQ(ticks(back), (std::vector<uint64_t>{60'000, 62'000, 63'000}));
  EXPECT_EQ(ticks(tracker.mark({StepSource::optimizer, 64'000, 7})), std::vector<uint64_t>{64'000});
}

TEST(StepTracker, NothingComesBackOfWhatRecurs) {
  StepTracker tracker = tracker_for("auto");
  for (const uint64_t at : {2000, 3000, 4000}) tracker.mark({StepSource::sync, at});
  ASSERT_TRUE(tracker.look_again());
  EXPECT_FALSE(tracker.waits_for_source()) << "time may take over";
  EXPECT_EQ(ticks(tracker.fall_back_to_time(1000, 90'000)), std::vector<uint64_t>{90'000});
}

TEST(StepTracker, ARangeThatComesAgainIsTakenBackByItsName) {
  StepTracker tracker = tracker_for("auto");
  for (const uint64_t at : {2000, 3000, 4000}) {
    ASSERT_TRUE(tracker.nvtx_matches("train_step 1"));
    tracker.mark({StepSource::nvtx, at});
  }
  ASSERT_TRUE(tracker.look_again());
  EXPECT_FALSE(tracker.nvtx_matches("iteration 5")) << "train_step was it";
  ASSERT_TRUE(tracker.nvtx_matches("train_step 4"));
  EXPECT_EQ(ticks(tracker.mark({StepSource::nvtx, 60'000})), std::vector<uint64_t>{60'000});
  EXPECT_EQ(described(tracker), "nvtx:train_step");
}

TEST(StepTracker, AfterASilenceWhatIsTakenGivesWayToo) {
  StepTracker tracker = tracker_for("auto");
  for (const uint64_t at : {2000, 3000, 4000}) tracker.mark({StepSource::sync, at});
  ASSERT_TRUE(tracker.look_again());
  for (const uint64_t at : {50'000, 51'000, 52'000}) tracker.mark({StepSource::sync, at});
  EXPECT_EQ(tracker.source(), StepSource::sync);
  EXPECT_EQ(tracker.mark({StepSource::manual, 53'000}).count, 0u);
  const StepTracker::Result own = tracker.mark({StepSource::manual, 57'000});
  EXPECT_TRUE(own.chosen_now && own.restarts && !own.comes_back);
  EXPECT_EQ(ticks(own), (std::vector<uint64_t>{53'000, 57'000}));
  EXPECT_EQ(described(tracker), "manual");
}

TEST(StepTracker, WhatWasNamedIsWaitedFor) {
  for (const char* source : {"optimizer", "nvtx:step", "graph:1", "sync:1", "time:10", "manual"}) {
    StepTracker tracker = tracker_for(source);
    tracker.mark({tracker.source(), 5000});
    EXPECT_FALSE(tracker.look_again()) << source;
    EXPECT_EQ(described(tracker), source);
  }
  StepTracker tracker = tracker_for("auto");
  EXPECT_FALSE(tracker.look_again()) << "nothing has been chosen yet";
}

}  // namespace
}  // namespace gpuprof::test
