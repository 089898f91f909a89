// SPDX-License-Identifier: Apache-2.0
// Which marks are step boundaries, and which source `auto` chooses.
#include "collector/steps.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace gpuprof {
namespace {

constexpr uint64_t kStart = 1000;

StepTracker tracker_for(const char* text) {
  StepSpec spec;
  SettingError error;
  EXPECT_TRUE(parse_step(text, spec, error)) << error.text;
  StepTracker tracker;
  tracker.start(spec, kStart);
  return tracker;
}

std::vector<uint64_t> ticks(const StepTracker::Result& result) {
  return {result.ticks, result.ticks + result.count};
}

std::string described(const StepTracker& tracker) {
  char text[160];
  return {text, tracker.describe(text, sizeof text)};
}

TEST(StepNames, NameAloneOrWithANumber) {
  for (const char* message : {"step", "step 12", "step#3", "step_7", "step:0", "step42"}) {
    EXPECT_TRUE(step_name_matches(message, "step")) << message;
  }
  for (const char* message :
       {"", "steps", "step x", "my step 1", "step  1", "step-1", "ste", "12"}) {
    EXPECT_FALSE(step_name_matches(message, "step")) << message;
  }
  EXPECT_TRUE(step_name_matches("epoch 2", "epoch 2")) << "the whole text, digits and all";
}

TEST(StepTracker, ANamedSourceThatMarksEndsBeginsAtProcessStart) {
  for (const char* source : {"manual", "optimizer", "nccl:ncclAllReduce:1", "kernel:adam:1",
                             "graph:1", "sync:1", "time:10"}) {
    StepTracker tracker = tracker_for(source);
    EXPECT_EQ(ticks(tracker.first_boundary()), std::vector<uint64_t>{kStart}) << source;
    EXPECT_EQ(ticks(tracker.mark({tracker.source(), 5000})), std::vector<uint64_t>{5000}) << source;
  }
}

TEST(StepTracker, ANamedSourceThatMarksBeginsBeginsAtItsFirstMark) {
  StepTracker tracker = tracker_for("nvtx:train");
  EXPECT_EQ(tracker.first_boundary().count, 0u);
  EXPECT_EQ(tracker_for("profiler").first_boundary().count, 0u);
  EXPECT_TRUE(tracker.nvtx_matches("train 0"));
  EXPECT_FALSE(tracker.nvtx_matches("step 0"));
  EXPECT_EQ(ticks(tracker.mark({StepSource::nvtx, 5000})), std::vector<uint64_t>{5000});
}

TEST(StepTracker, OtherSourcesMarksAreIgnoredWhenOneIsNamed) {
  StepTracker tracker = tracker_for("manual");
  EXPECT_EQ(tracker.mark({StepSource::sync, 2000}).count, 0u);
  EXPECT_FALSE(tracker.nvtx_matches("step 0"));
  EXPECT_FALSE(tracker.wants(StepSource::sync));
}

TEST(StepTracker, EveryNth) {
  for (const char* source : {"nccl:ncclAllReduce:3", "kernel:adam:3", "graph:3", "sync:3"}) {
    StepTracker tracker = tracker_for(source);
    EXPECT_EQ(described(tracker), source);
    std::vector<uint64_t> found;
    for (uint64_t i = 1; i <= 9; ++i) {
      for (const uint64_t tick : ticks(tracker.mark({tracker.source(), kStart + i, i})))
        found.push_back(tick);
    }
    EXPECT_EQ(found, (std::vector<uint64_t>{kStart + 3, kStart + 6, kStart + 9})) << source;
  }
}

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
  // The generator's steps are fewer: known from its second on.
  EXPECT_EQ(optimizer_steps(repeated("DDDDDG", 40)), 10u + 39u);
  EXPECT_EQ(optimizer_steps(repeated("A", 20) + repeated("B", 37)), 20u + 22u)
      << "15 steps until the first optimizer counts as gone, and the one that shows it";
}

TEST(StepTracker, AutoPrefersOptimizers) {
  StepTracker tracker = tracker_for("auto");
  EXPECT_EQ(tracker.mark({StepSource::optimizer, 2000, 7}).count, 0u);
  EXPECT_EQ(tracker.mark({StepSource::profiler, 2500}).count, 0u);
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
  EXPECT_EQ(tracker.mark({StepSource::manual, 4500}).count, 0u) << "the choice stands";
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
  const StepTracker::Result result = tracker.fall_back_to_time(1000);
  EXPECT_EQ(ticks(result), std::vector<uint64_t>{kStart});
  EXPECT_TRUE(result.chosen_now);
  EXPECT_EQ(described(tracker), "time:1000");
  EXPECT_EQ(ticks(tracker.mark({StepSource::time, 9000})), std::vector<uint64_t>{9000});
}

}  // namespace
}  // namespace gpuprof
