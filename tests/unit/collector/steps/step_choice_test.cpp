// SPDX-License-Identifier: Apache-2.0
// Which source `auto` chooses, and when.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/unit/support/step_tracker.h"

namespace gpuprof::test {
namespace {

// Marks as letters, each a collective or a graph of its own; "|" is where `auto` must choose.
struct Recurrence {
  const char* marks;
  const char* described;
  size_t boundaries;  // handed over
};

TEST(StepTracker, AutoFindsHowManyMakeAStep) {
  const Recurrence rows[] = {
      {"aaa|a", "1", 3},
      {"abcabca|b", "3", 3},
      {"xabcdefgabcdefgabcdefg", "auto", 0},  // the first never comes again
      {"abaccad", "auto", 0},                 // no regular distance
      {"aabcabcabca|", "3", 3},               // one more at the start
      {"abcdabcda|", "4", 3},
  };
  for (const StepSource source : {StepSource::nccl, StepSource::graph}) {
    for (const Recurrence& row : rows) {
      StepTracker tracker = tracker_for("auto");
      std::string marks;
      uint64_t now = 2000;
      StepTracker::Result chosen{};
      for (const char* c = row.marks; *c; ++c) {
        if (*c == '|') {
          EXPECT_TRUE(chosen.chosen_now) << row.marks;
          continue;
        }
        const StepTracker::Result result =
            tracker.mark({source, ++now, static_cast<uint64_t>(*c), "ncclReduceScatter"});
        if (result.chosen_now) chosen = result;
      }
      EXPECT_EQ(chosen.count, row.boundaries) << row.marks;
      const std::string prefix = source == StepSource::nccl ? "nccl:ncclReduceScatter:" : "graph:";
      EXPECT_EQ(described(tracker), row.boundaries ? prefix + row.described : "auto") << row.marks;
    }
  }
}

// Of those of one function alone, which are the marks once it is chosen.
TEST(StepTracker, AutoCountsCollectivesOfOneFunction) {
  const auto name_of = [](char c) {
    return c == 'a' || c == 'b' ? "ncclAllGather"
           : c == 'r'           ? "ncclAllReduce"
                                : "ncclReduceScatter";
  };
  const auto described_after = [&](const char* marks) {
    StepTracker tracker = tracker_for("auto");
    uint64_t now = 2000;
    for (const char* c = marks; *c; ++c) {
      if (tracker.source() == StepSource::nccl) break;
      tracker.mark({StepSource::nccl, ++now, static_cast<uint64_t>(*c), name_of(*c)});
    }
    return described(tracker);
  };
  EXPECT_EQ(described_after("arsarsarsars"), "nccl:ncclAllGather:1");
  EXPECT_EQ(described_after("absrabsrabsrabsr"), "nccl:ncclAllGather:2");
  EXPECT_EQ(described_after("srsrsrsr"), "nccl:ncclReduceScatter:1");
}

TEST(StepTracker, AutoGoesOnWhereItFoundNOf) {
  StepTracker tracker = tracker_for("auto");
  std::vector<uint64_t> found;
  for (uint64_t i = 0; i < 14; ++i) {
    for (const uint64_t tick : ticks(tracker.mark({StepSource::graph, i, i % 3})))
      found.push_back(tick);
  }
  EXPECT_EQ(found, (std::vector<uint64_t>{0, 3, 6, 9, 12})) << "the same graph each time";
}

TEST(StepTracker, AutoLooksForAnotherMarkWhereOneDoesNotComeAgain) {
  StepTracker tracker = tracker_for("auto");
  tracker.mark({StepSource::nccl, 1, 99, "ncclAllReduce"});
  EXPECT_EQ(tracker.mark({StepSource::sync, 2, 0}).count, 0u);
  bool chosen = false;
  for (uint64_t i = 0; i < 5000; ++i) {
    chosen = chosen || tracker.mark({StepSource::nccl, 10 + i, i % 8, "ncclAllReduce"}).chosen_now;
  }
  EXPECT_TRUE(chosen);
  EXPECT_EQ(described(tracker), "nccl:ncclAllReduce:8");
}

TEST(StepTracker, AutoIsNotHeldUpByACollectiveThatComesOnce) {
  StepTracker tracker = tracker_for("auto");
  tracker.mark({StepSource::nccl, 1500, 7, "ncclAllReduce"});
  tracker.mark({StepSource::sync, 2000});
  EXPECT_TRUE(tracker.mark({StepSource::sync, 3000}).chosen_now);
  EXPECT_EQ(described(tracker), "sync:1");
}

TEST(StepTracker, AutoTakesTheProgramsOwnStartAtOnce) {
  StepTracker tracker = tracker_for("auto");
  const StepTracker::Result result = tracker.mark({StepSource::profiler, 4000});
  EXPECT_TRUE(result.chosen_now);
  EXPECT_EQ(ticks(result), std::vector<uint64_t>{4000});
  EXPECT_EQ(described(tracker), "profiler");
  EXPECT_EQ(ticks(tracker.mark({StepSource::profiler, 5000})), std::vector<uint64_t>{5000});

  StepTracker manual = tracker_for("auto");
  manual.mark({StepSource::manual, 2000});
  EXPECT_EQ(manual.mark({StepSource::profiler, 4000}).count, 0u) << "manual is above it";

  StepTracker armed;
  armed.start(StepSpec{}, kStart, true);
  EXPECT_FALSE(armed.wants(StepSource::profiler)) << "triggers alone open windows there";
}

TEST(StepTracker, AutoLetsTheProgramsOwnStartTakeTheStepsOver) {
  for (const StepSource before :
       {StepSource::optimizer, StepSource::nvtx, StepSource::nccl, StepSource::sync}) {
    for (const size_t marks : {1u, 8u}) {  // seen, chosen
      StepTracker tracker = tracker_for("auto");
      size_t count = 0;
      for (uint64_t i = 0; i < marks; ++i) count += tracker.mark({before, 2000 + i, 7, "x"}).count;
      EXPECT_EQ(count > 0, marks > 1) << static_cast<int>(before);
      EXPECT_TRUE(tracker.wants(StepSource::profiler));
      const StepTracker::Result result = tracker.mark({StepSource::profiler, 3000});
      EXPECT_TRUE(result.chosen_now);
      EXPECT_EQ(ticks(result), std::vector<uint64_t>{3000});
      EXPECT_EQ(described(tracker), "profiler");
      EXPECT_EQ(tracker.mark({before, 3500, 7, "x"}).count, 0u);
      EXPECT_EQ(ticks(tracker.mark({StepSource::profiler, 4000})), std::vector<uint64_t>{4000});
    }
  }
  EXPECT_FALSE(tracker_for("optimizer").wants(StepSource::profiler)) << "what is named stands";
  StepTracker manual = tracker_for("auto");
  for (uint64_t i = 0; i < 4; ++i) manual.mark({StepSource::manual, 2000 + i});
  EXPECT_FALSE(manual.wants(StepSource::profiler)) << "the program says more with gpuprof_step()";
}

TEST(StepTracker, AutoPrefersOptimizers) {
  StepTracker tracker = tracker_for("auto");
  EXPECT_EQ(tracker.mark({StepSource::optimizer, 2000, 7}).count, 0u);
  EXPECT_EQ(tracker.mark({StepSource::sync, 2500}).count, 0u);
  EXPECT_EQ(tracker.mark({StepSource::optimizer, 2600, 8}).count, 0u);
  EXPECT_EQ(ticks(tracker.mark({StepSource::optimizer, 3000, 7})),
            (std::vector<uint64_t>{kStart, 2000, 3000}));
  EXPECT_EQ(described(tracker), "optimizer");
}

TEST(StepTracker, AutoNeverTakesAKernel) {
  EXPECT_FALSE(tracker_for("auto").wants(StepSource::kernel));
}

TEST(StepTracker, AutoTakesTheFirstWithThreeBoundariesAndHandsOverItsCount) {
  StepTracker tracker = tracker_for("auto");
  EXPECT_EQ(tracker.mark({StepSource::sync, 2000}).count, 0u);
  const StepTracker::Result chosen = tracker.mark({StepSource::sync, 3000});
  EXPECT_TRUE(chosen.chosen_now);
  EXPECT_EQ(ticks(chosen), (std::vector<uint64_t>{kStart, 2000, 3000})) << "process start is one";
  EXPECT_EQ(described(tracker), "sync:1");
  EXPECT_EQ(ticks(tracker.mark({StepSource::sync, 4000})), std::vector<uint64_t>{4000});
  EXPECT_EQ(tracker.mark({StepSource::graph, 4500, 1}).count, 0u) << "the choice stands";
}

constexpr uint64_t kBurst = 20'000;  // in what follows a tick is a microsecond

StepTracker patient_tracker(bool with_torch) {
  StepTracker tracker = tracker_for("auto");
  tracker.set_patience({10'000'000, 22, kBurst});
  if (with_torch) tracker.expect_optimizers();
  return tracker;
}

// The first forward pass of a program that lets cuDNN try its algorithms.
TEST(StepTracker, OptimizersHaveTheirChanceBeforeOtherSources) {
  for (const StepSource source : {StepSource::sync, StepSource::graph, StepSource::nccl}) {
    StepTracker tracker = patient_tracker(true);
    for (uint64_t i = 0; i < 500; ++i) {
      EXPECT_EQ(tracker.mark({source, 2000 + 15 * i, 7, "ncclAllReduce"}).count, 0u) << i;
    }
    EXPECT_EQ(tracker.mark({StepSource::optimizer, 500'000, 9}).count, 0u);
    for (uint64_t i = 0; i < 50; ++i) {
      EXPECT_EQ(tracker.mark({source, 500'100 + i, 7, "ncclAllReduce"}).count, 0u) << "fired";
    }
    EXPECT_EQ(ticks(tracker.mark({StepSource::optimizer, 600'000, 9})),
              (std::vector<uint64_t>{kStart, 500'000, 600'000}));
  }
}

TEST(StepTracker, WithoutOptimizersOthersAreTakenAfterTheirChanceAndACycle) {
  for (const uint64_t period : {50'000u, 2'000'000u}) {  // 10 s pass first, or a cycle
    StepTracker tracker = patient_tracker(true);
    uint64_t marks = 0;
    StepTracker::Result result{};
    for (; result.count == 0 && marks < 1000; ++marks) {
      result = tracker.mark({StepSource::graph, 5000 + period * marks, 7});
    }
    EXPECT_EQ(marks, period == 50'000 ? 201u : 23u);
    EXPECT_EQ(result.count, marks) << "the count carries over";
    EXPECT_EQ(result.ticks[0], 5000u);
    EXPECT_EQ(described(tracker), "graph:1");
  }
  StepTracker tracker = patient_tracker(true);
  StepTracker::Result result{};
  for (uint64_t i = 0; result.count == 0; ++i)
    result = tracker.mark({StepSource::graph, 5000 + 1000 * i, 7});
  ASSERT_GT(result.count, 500u);
  EXPECT_LE(result.count, 1024u) << "of very many the newest";
  for (size_t i = 1; i < result.count; ++i) EXPECT_EQ(result.ticks[i], result.ticks[i - 1] + 1000);
}

TEST(StepTracker, WhatWasTakenGivesWayToTheProgramsOwnMarks) {
  for (const StepSource taken : {StepSource::sync, StepSource::graph, StepSource::nccl}) {
    for (const bool inside : {false, true}) {
      StepTracker tracker = patient_tracker(false);
      for (uint64_t i = 0; i < 30; ++i) tracker.mark({taken, 2000 + 15 * i, 7, "ncclAllReduce"});
      EXPECT_EQ(tracker.source(), taken);
      if (inside) tracker.hold_source(true, true);
      const StepTracker::Result result = tracker.mark({StepSource::optimizer, 9000, 9});
      EXPECT_TRUE(result.chosen_now && result.restarts);
      EXPECT_EQ(ticks(result), (std::vector<uint64_t>{kStart, 9000})) << "as though alone";
      EXPECT_EQ(described(tracker), "optimizer");
      EXPECT_EQ(tracker.mark({taken, 9500, 7, "ncclAllReduce"}).count, 0u);
      EXPECT_EQ(ticks(tracker.mark({StepSource::optimizer, 9900, 9})), std::vector<uint64_t>{9900});
    }
  }
  StepTracker tracker = patient_tracker(false);
  for (uint64_t i = 0; i < 30; ++i) tracker.mark({StepSource::nccl, 2000 + i, 7, "ncclAllReduce"});
  ASSERT_TRUE(tracker.nvtx_matches("train_step 1"));
  EXPECT_EQ(tracker.mark({StepSource::nvtx, 9000}).count, 0u) << "one range is no step";
  ASSERT_FALSE(tracker.nvtx_matches("iteration 1"));
  EXPECT_EQ(ticks(tracker.mark({StepSource::nvtx, 9500})), (std::vector<uint64_t>{9000, 9500}));
  EXPECT_EQ(described(tracker), "nvtx:train_step");
  EXPECT_FALSE(tracker_for("sync:1").wants(StepSource::optimizer)) << "what is named stands";
}

TEST(StepTracker, AfterAWindowCountingGoesOn) {
  StepTracker tracker = patient_tracker(false);
  for (uint64_t i = 0; i < 30; ++i) tracker.mark({StepSource::sync, 2000 + 15 * i});
  tracker.hold_source(true, true);
  tracker.keep_count();
  tracker.hold_source(false);
  tracker.hold_source(true, false);
  EXPECT_FALSE(tracker.wants(StepSource::optimizer)) << "a second window is open";
  tracker.hold_source(false);
  EXPECT_EQ(tracker.mark({StepSource::optimizer, 9000, 9}).count, 0u);
  const StepTracker::Result result = tracker.mark({StepSource::optimizer, 9100, 9});
  EXPECT_TRUE(result.chosen_now && !result.restarts);
  EXPECT_EQ(ticks(result), std::vector<uint64_t>{9100});
}

// Bursts of marks, each `marks` at a distance of `apart`, and `silence` between them.
TEST(StepTracker, BurstsAreNoSteps) {
  StepTracker tracker = patient_tracker(false);
  uint64_t now = 2000;
  for (int i = 0; i < 100; ++i) tracker.mark({StepSource::sync, now += 20});
  EXPECT_EQ(tracker.source(), StepSource::sync) << "it might be a loop";
  const StepTracker::Result after = tracker.mark({StepSource::sync, now += 100'000});
  EXPECT_TRUE(after.restarts);
  EXPECT_EQ(ticks(after), std::vector<uint64_t>{now});
  for (int i = 0; i < 40; ++i) {
    const StepTracker::Result step = tracker.mark({StepSource::sync, now += 30'000});
    EXPECT_TRUE(step.count == 1 && !step.restarts) << "a loop of long steps";
  }
  EXPECT_FALSE(tracker.mark({StepSource::sync, now += 5'000'000}).restarts) << "a pause in a loop";

  StepTracker quick = patient_tracker(false);
  now = 2000;
  for (int i = 0; i < 100; ++i) quick.mark({StepSource::sync, now += 300});
  EXPECT_FALSE(quick.mark({StepSource::sync, now += 200'000}).restarts) << "30 ms are no burst";

  StepTracker seen = patient_tracker(false);  // two of them, not yet chosen
  seen.mark({StepSource::graph, 2000, 1});
  seen.mark({StepSource::graph, 2010, 2});
  seen.mark({StepSource::graph, 2020, 3});
  for (uint64_t i = 0; i < 2; ++i) seen.mark({StepSource::graph, 100'000 + 30'000 * i, 7});
  EXPECT_TRUE(seen.mark({StepSource::graph, 160'000, 7}).chosen_now)
      << "what was before is forgotten";
}

// XLA waits for the GPU before each algorithm that it tries; its steps are one graph.
TEST(StepTracker, WhatRecursAfterSynchronizationsTakesTheirPlace) {
  for (const StepSource source : {StepSource::graph, StepSource::nccl}) {
    StepTracker tracker = patient_tracker(false);
    uint64_t now = 2000;
    for (int i = 0; i < 40; ++i) tracker.mark({StepSource::sync, now += 2000});
    ASSERT_EQ(described(tracker), "sync:1");
    const uint64_t last = now;
    now += 30'000;
    size_t marks = 0;
    StepTracker::Result result{};
    for (; result.count == 0 && marks < 100; ++marks) {
      result = tracker.mark({source, now += 5000, 7, "ncclAllReduce"});
    }
    EXPECT_TRUE(result.chosen_now && result.restarts);
    EXPECT_GE(now - last, 39u * 2000) << "as long as they came";
    EXPECT_EQ(result.count, marks) << "its own boundaries, from the first one on";
    EXPECT_EQ(described(tracker), source == StepSource::graph ? "graph:1" : "nccl:ncclAllReduce:1");
    EXPECT_EQ(tracker.mark({StepSource::sync, now += 5000}).count, 0u);
  }
}

TEST(StepTracker, WhatRecursBetweenSynchronizationsIsAPartOfAStep) {
  StepTracker tracker = patient_tracker(false);
  uint64_t now = 2000;
  for (int i = 0; i < 20; ++i) tracker.mark({StepSource::sync, now += 2000});
  for (int step = 0; step < 200; ++step) {
    for (int i = 0; i < 9; ++i) {
      EXPECT_EQ(tracker.mark({StepSource::graph, now += 100, 7}).count, 0u) << step;
    }
    now += 100;
    EXPECT_EQ(ticks(tracker.mark({StepSource::sync, now})), std::vector<uint64_t>{now});
  }
  for (int i = 0; i < 50; ++i) {  // a validation, shorter than the training before it
    EXPECT_EQ(tracker.mark({StepSource::graph, now += 4000, 7}).count, 0u) << i;
  }
  EXPECT_EQ(described(tracker), "sync:1");
  StepTracker named = tracker_for("sync:1");
  EXPECT_FALSE(named.wants(StepSource::graph)) << "what is named stands";
}

TEST(StepTracker, AWindowOfSynchronizationsIsFollowedByOneOfWhatRecurs) {
  StepTracker tracker = patient_tracker(false);
  uint64_t now = 2000;
  for (int i = 0; i < 40; ++i) tracker.mark({StepSource::sync, now += 2000});
  tracker.keep_count();
  tracker.hold_source(true, false);
  EXPECT_FALSE(tracker.wants(StepSource::graph)) << "a window is open";
  tracker.hold_source(false);
  now += 100'000;
  tracker.mark({StepSource::graph, now += 5000, 7});
  tracker.mark({StepSource::graph, now += 5000, 7});
  const StepTracker::Result result = tracker.mark({StepSource::graph, now += 5000, 7});
  EXPECT_TRUE(result.chosen_now && !result.restarts) << "the count goes on";
  EXPECT_EQ(ticks(result), std::vector<uint64_t>{now});
}

TEST(StepTracker, AutoWaitsForASourceAboveThatHasFired) {
  StepTracker tracker = tracker_for("auto");
  ASSERT_TRUE(tracker.nvtx_matches("step 0"));
  EXPECT_EQ(tracker.mark({StepSource::nvtx, 1500}).count, 0u);
  for (uint64_t i = 0; i < 10; ++i) EXPECT_EQ(tracker.mark({StepSource::sync, 2000 + i}).count, 0u);
  EXPECT_EQ(tracker.mark({StepSource::nvtx, 3000}).count, 0u);
  EXPECT_EQ(ticks(tracker.mark({StepSource::nvtx, 4000})),
            (std::vector<uint64_t>{1500, 3000, 4000}));
  EXPECT_EQ(described(tracker), "nvtx:step");
}

TEST(StepTracker, AutoKeepsTheFirstLikelyName) {
  StepTracker tracker = tracker_for("auto");
  EXPECT_FALSE(tracker.nvtx_matches("forward"));
  EXPECT_TRUE(tracker.nvtx_matches("Iteration 5"));
  EXPECT_FALSE(tracker.nvtx_matches("step 1"));
  EXPECT_TRUE(tracker.nvtx_matches("Iteration 6"));
}

TEST(StepTracker, FallingBackToTimeDoesNotJumpOverTheWindow) {
  StepTracker tracker = tracker_for("auto");
  const StepTracker::Result result = tracker.fall_back_to_time(1000, 90'000);
  EXPECT_EQ(ticks(result), std::vector<uint64_t>{kStart});
  EXPECT_TRUE(result.chosen_now);
  EXPECT_EQ(described(tracker), "time:1000");
  EXPECT_EQ(ticks(tracker.mark({StepSource::time, 9000})), std::vector<uint64_t>{9000});
}

// A server loads its model, and waits for its requests.
TEST(StepTracker, TimeThatWasFallenBackToGivesWayToInference) {
  StepTracker tracker = patient_tracker(true);
  const auto call = [&](uint64_t at) {
    StepMark mark{StepSource::forward, at, 7};
    mark.trains = false;
    return tracker.mark(mark);
  };
  EXPECT_EQ(call(5000).count, 0u) << "it is compiled";
  tracker.fall_back_to_time(1000, 90'000);
  tracker.hold_source(true, true);
  EXPECT_EQ(call(91'000).count, 0u) << "a window is open";
  tracker.keep_count();
  tracker.hold_source(false);
  EXPECT_EQ(call(92'000).count, 0u);
  const StepTracker::Result result = call(93'000);
  EXPECT_TRUE(result.chosen_now && !result.restarts);
  EXPECT_EQ(ticks(result), std::vector<uint64_t>{93'000});
  EXPECT_EQ(described(tracker), "forward");
  EXPECT_EQ(tracker.mark({StepSource::time, 94'000}).count, 0u);

  StepTracker graphs = patient_tracker(false);
  graphs.fall_back_to_time(1000, 90'000);
  for (uint64_t i = 0; i < 50; ++i) graphs.mark({StepSource::graph, 100'000 + 30'000 * i, i});
  EXPECT_EQ(graphs.source(), StepSource::time) << "none of them recurs";
  graphs = patient_tracker(false);
  graphs.fall_back_to_time(1000, 90'000);
  for (uint64_t i = 0; i < 5; ++i) graphs.mark({StepSource::graph, 100'000 + 30'000 * i, i % 2});
  EXPECT_EQ(described(graphs), "graph:2");

  StepTracker training = patient_tracker(true);
  training.fall_back_to_time(1000, 90'000);
  for (uint64_t i = 0; i < 24; ++i) training.mark({StepSource::forward, 100'000 + 1000 * i, 7});
  EXPECT_EQ(training.source(), StepSource::time) << "its optimizer has its chance";
}

// A server that waits for requests after its first ones.
TEST(StepTracker, CallsOfModulesComeBackFromTime) {
  StepTracker tracker = patient_tracker(true);
  const auto call = [&](uint64_t at) {
    StepMark mark{StepSource::forward, at, 7};
    mark.trains = false;
    return tracker.mark(mark);
  };
  for (uint64_t at = 2000; at < 7000; at += 1000) call(at);
  ASSERT_EQ(described(tracker), "forward");
  ASSERT_TRUE(tracker.look_again());
  tracker.fall_back_to_time(1000, 90'000);
  for (const uint64_t at : {95'000, 96'000}) EXPECT_EQ(call(at).count, 0u);
  EXPECT_EQ(ticks(call(97'000)), std::vector<uint64_t>{97'000});
  EXPECT_EQ(described(tracker), "forward");
}

TEST(StepTracker, CallsOfModulesSayThatStepsAreNear) {
  StepTracker tracker = patient_tracker(true);
  EXPECT_EQ(tracker.last_sign(), 0u);
  tracker.mark({StepSource::graph, 1500, 7});
  EXPECT_EQ(tracker.last_sign(), 0u) << "it may never recur";
  for (uint64_t at = 2000; at < 9000; at += 1000) tracker.mark({StepSource::forward, at, 7});
  EXPECT_EQ(tracker.last_sign(), 3000u) << "two; more of them wait for an optimizer";
  StepMark grown{StepSource::graph, 9500, 8};
  grown.graphs = 1;
  tracker.mark(grown);
  EXPECT_EQ(tracker.last_sign(), 9500u) << "one more graph of a start-up";
}

// A model may take longer to load, or to compile, than `auto` waits.
TEST(StepTracker, TimeThatWasFallenBackToGivesWayToTheProgramsOwnSteps) {
  for (const StepSource source : {StepSource::manual, StepSource::optimizer, StepSource::nvtx}) {
    StepTracker tracker = tracker_for("auto");
    tracker.fall_back_to_time(1000, 90'000);
    tracker.mark({StepSource::time, 91'000});
    const auto mark = [&](uint64_t at) {
      if (source == StepSource::nvtx) tracker.nvtx_matches("train_step");
      return tracker.mark({source, at, 7});
    };
    tracker.hold_source(true);
    for (const uint64_t at : {91'100, 91'200, 91'300}) EXPECT_EQ(mark(at).count, 0u);
    EXPECT_EQ(tracker.source(), StepSource::time) << "a window is open";
    tracker.hold_source(false);
    StepTracker::Result result{};
    uint64_t at = 91'400;
    for (; result.count == 0 && at < 92'000; at += 100) result = mark(at);
    EXPECT_EQ(tracker.source(), source);
    EXPECT_TRUE(result.chosen_now);
    EXPECT_EQ(ticks(result), std::vector<uint64_t>{at - 100}) << "the others were no boundaries";
    EXPECT_EQ(ticks(mark(at)), std::vector<uint64_t>{at});
    EXPECT_EQ(tracker.mark({StepSource::time, 93'000}).count, 0u);
  }
  StepTracker tracker = tracker_for("auto");
  tracker.fall_back_to_time(1000, 90'000);
  for (const StepSource source : {StepSource::sync, StepSource::nccl}) {
    EXPECT_FALSE(tracker.wants(source)) << "comes for other reasons, too";
  }
  StepTracker named = tracker_for("time:1000");
  EXPECT_FALSE(named.wants(StepSource::optimizer));
}

}  // namespace
}  // namespace gpuprof::test
