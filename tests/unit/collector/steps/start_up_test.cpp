// SPDX-License-Identifier: Apache-2.0
// Warm-ups and captures of CUDA graphs before the program's work.
#include "collector/steps/start_up.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "tests/unit/support/step_tracker.h"

namespace gpuprof::test {
namespace {

constexpr Patience kPatience{1000, 24, 0, 50'000};

struct Program {
  StepTracker tracker = tracker_for("auto");
  uint64_t now = 2000;
  size_t graphs = 0;

  explicit Program(bool with_torch) {
    tracker.set_patience(kPatience);
    if (with_torch) tracker.expect_optimizers();
  }
  StepTracker::Result mark(StepSource source, uint64_t key) {
    StepMark mark{source, now += 10, key, "ncclAllReduce"};
    mark.trains = false;
    mark.graphs = graphs;
    return tracker.mark(mark);
  }
  StepTracker::Result call(char module) {
    return mark(StepSource::forward, static_cast<uint64_t>(module));
  }
  // The boundaries of what is counted at the end, each letter a call of a module.
  size_t calls(std::string_view modules) {
    size_t count = 0;
    for (const char module : modules) count += call(module).count;
    return count;
  }
};

// As vLLM (2 calls of its model for each batch size) and SGLang (3) do.
TEST(StartUp, CallsThatCaptureGraphsAreNoSteps) {
  for (const int calls : {1, 2, 3, 6}) {
    Program engine(true);
    engine.calls("M");  // the profile run
    size_t restarts = 0;
    for (engine.graphs = 1; engine.graphs < 60; ++engine.graphs) {
      for (int i = 0; i < calls; ++i) {
        const StepTracker::Result result = engine.call('M');
        EXPECT_EQ(result.starts_up, i == 0 && calls > 2 && engine.graphs > 1) << calls;
        EXPECT_TRUE(!result.starts_up || (result.restarts && result.count == 0));
        restarts += result.starts_up;
      }
    }
    EXPECT_EQ(restarts, calls > 2 ? 58u : 0u);
    EXPECT_EQ(engine.calls("MM"), 0u) << "the first of these shows the last graph";
    const StepTracker::Result result = engine.call('M');
    EXPECT_TRUE(result.chosen_now && !result.starts_up);
    EXPECT_EQ(result.count, 3u);
    EXPECT_EQ(described(engine.tracker), "forward");
  }
}

// A decode step that is one graph calls no model, but the layers after it.
TEST(StartUp, TheModuleThatLedThenDoesNotLeadForGood) {
  Program engine(true);
  for (; engine.graphs < 67; ++engine.graphs) engine.calls("MMM");
  size_t count = 0;
  for (int request = 0; request < 20; ++request) {
    std::string steps = "MLS";
    for (int token = 0; token < 20; ++token) steps += "LS";
    count += engine.calls(steps);
  }
  EXPECT_GE(count, 415u) << "a token each";
  EXPECT_LE(count, 420u);
}

TEST(StartUp, GraphsAndWaitsOfCapturesAreNoStepsEither) {
  for (const StepSource source : {StepSource::sync, StepSource::graph, StepSource::nccl}) {
    Program engine(false);
    for (; engine.graphs < 20; ++engine.graphs) {
      for (int i = 0; i < 4; ++i) engine.mark(source, engine.graphs);
    }
    EXPECT_TRUE(engine.mark(source, 1).starts_up);
    EXPECT_EQ(engine.tracker.source(), StepSource::automatic);
    for (int i = 0; i < 7; ++i) engine.mark(StepSource::graph, i % 2);
    EXPECT_EQ(described(engine.tracker), "graph:2") << "what serves may be another";
  }
}

// llama.cpp captures its graph again and again, but never has more of them.
TEST(StartUp, AProgramThatHasAllItsGraphsIsNotStartingUp) {
  Program server(false);
  server.graphs = 3;  // before the first mark
  size_t count = 0;
  for (int i = 0; i < 100; ++i) count += server.mark(StepSource::graph, 7).count;
  EXPECT_EQ(count, 100u);
}

TEST(StartUp, TheProgramsOwnMarksAreItsStepsAnyway) {
  Program training(true);
  size_t count = 0;
  for (; training.graphs < 50; ++training.graphs) {
    training.call('M');
    count += training.mark(StepSource::optimizer, 9).count;
  }
  EXPECT_EQ(count, 50 + 1u);
  Program named(false);
  named.tracker = tracker_for("graph:1");
  for (count = 0; named.graphs < 50; ++named.graphs)
    count += named.mark(StepSource::graph, 9).count;
  EXPECT_EQ(count, 50u) << "what is named stands";
}

TEST(StartUp, AWindowOfItIsDropped) {
  Program engine(true);
  engine.graphs = 1;
  engine.calls("MMMMMM");
  engine.tracker.hold_source(true, true);
  ++engine.graphs;
  const StepTracker::Result result = engine.call('M');
  EXPECT_TRUE(result.starts_up && result.restarts);
}

TEST(StartUp, AfterAWindowCountingGoesOn) {
  Program engine(true);
  engine.graphs = 1;
  engine.calls("MMMMMM");
  engine.tracker.hold_source(true, true);
  engine.tracker.keep_count();
  engine.tracker.hold_source(false);
  ++engine.graphs;
  StepTracker::Result result = engine.call('M');
  EXPECT_TRUE(result.starts_up && !result.restarts);
  engine.calls("M");
  result = engine.call('M');
  EXPECT_TRUE(result.chosen_now);
  EXPECT_EQ(result.count, 1u) << "no jump over a window";
  engine.tracker.hold_source(true, false);  // a second one
  ++engine.graphs;
  result = engine.call('M');
  EXPECT_TRUE(!result.starts_up && result.count == 1);
  engine.tracker.keep_count();
  engine.tracker.hold_source(false);
  ++engine.graphs;
  result = engine.call('M');
  EXPECT_TRUE(!result.starts_up && result.count == 1) << "that was the last one";
}

// torch.compile makes a graph for each shape that comes.
TEST(StartUp, EndsAtSomeTime) {
  StartUp late;
  EXPECT_FALSE(late.goes_on(1000, 0, 50'000, 0));
  EXPECT_TRUE(late.goes_on(900'000, 1, 50'000, 0)) << "the first call compiles for long";
  for (uint64_t i = 0; i < StartUp::kFewMarks; ++i) late.goes_on(900'001 + i, 1, 50'000, 0);
  EXPECT_FALSE(late.goes_on(901'000, 2, 50'000, 0)) << "work goes on";
  EXPECT_TRUE(late.goes_on(950'000, 3, 50'000, 0));
  EXPECT_FALSE(late.goes_on(950'001, 4, 50'000, 0)) << "it does so all the time";
  EXPECT_TRUE(late.goes_on(950'010, 5, 50'000, 1)) << "they were recorded, and may be start-up";

  StartUp early;
  size_t graphs = 0;
  early.goes_on(1000, graphs, 50'000, 0);
  for (uint64_t i = 0; i < 100; ++i) early.goes_on(1001 + i, graphs, 50'000, 0);
  EXPECT_TRUE(early.goes_on(2000, ++graphs, 50'000, 0));
  for (uint64_t i = 0; i < 100; ++i) early.goes_on(2001 + i, graphs, 50'000, 0);
  EXPECT_FALSE(early.goes_on(3000, ++graphs, 50'000, 1)) << "steps were recorded meanwhile";
  EXPECT_TRUE(early.goes_on(3001, ++graphs, 50'000, 1));
  EXPECT_FALSE(early.goes_on(3002, ++graphs, 50'000, 2)) << "as long as it lasts, no third one";

  StartUp ever;
  uint32_t times = 0;
  for (uint32_t i = 0; i < 10'000; ++i) times += ever.goes_on(1000 + i, i, 50'000, 0);
  EXPECT_EQ(times, StartUp::kMostTimes);
}

TEST(StartUp, DoesNotCostAProgramItsWindowForEver) {
  StartUp grows;
  grows.goes_on(1000, 0, 50'000, 0);
  size_t graphs = 0;
  for (uint32_t i = 0; i < StartUp::kMostLost; ++i) {
    EXPECT_TRUE(grows.goes_on(1001 + i, ++graphs, 50'000, 0)) << i;
    grows.lost_window();
  }
  EXPECT_FALSE(grows.goes_on(2000, ++graphs, 50'000, 0));
  EXPECT_TRUE(grows.goes_on(2001, ++graphs, 50'000, 1)) << "one more, of what follows";
}

}  // namespace
}  // namespace gpuprof::test
