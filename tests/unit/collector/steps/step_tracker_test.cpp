// SPDX-License-Identifier: Apache-2.0
// Which marks of a named source are step boundaries.
#include "collector/steps/step_tracker.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "formats/core/steps/step_names.h"
#include "tests/unit/support/step_tracker.h"

namespace gpuprof::test {
namespace {

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

TEST(StepNames, WhatBeginsAlike) {
  EXPECT_TRUE(step_name_matches("execute_context_1(512)_generation_3(3)", "execute_*"));
  EXPECT_TRUE(step_name_matches("execute_", "execute_*"));
  EXPECT_TRUE(step_name_matches("execute_* 4", "execute_*")) << "also itself";
  EXPECT_FALSE(step_name_matches("_execute_", "execute_*"));
  EXPECT_FALSE(step_name_matches("execute_context_1", "execute_"));
}

TEST(StepNames, OfInferenceEngines) {
  EXPECT_EQ(engine_step_name("execute_context_1(512)_generation_3(3)"), "execute_context_*");
  EXPECT_EQ(engine_step_name("execute_new_1_cached_3"), "execute_new_*");
  EXPECT_EQ(engine_step_name("[Executor] _forward_step 17: 0 ctx reqs, 32 gen reqs"),
            "[Executor] _forward_step*");
  for (const char* other : {"", "step 1", "execute_model", "[Executor] _prepare_draft_requests"}) {
    EXPECT_EQ(engine_step_name(other), "") << other;
  }
}

TEST(StepNames, AModuleOfXlaByItsName) {
  for (const char* message :
       {"XlaModule:#prefix=jit(train_step)/jit(main),hlo_module=jit_train_step,program_id=12#",
        "XlaModule:#hlo_module=jit_train_step#",
        "XlaModule:#hlo_module=jit_train_step,program_id=7#"}) {
    EXPECT_TRUE(step_name_matches(message, "jit_train_step")) << message;
    EXPECT_FALSE(step_name_matches(message, "train_step")) << message;
    EXPECT_FALSE(step_name_matches(message, "jit_train")) << message;
  }
  for (const char* message : {"Thunk:#hlo_op=jit_train_step#", "hlo_module=jit_train_step",
                              "XlaModule:#", "XlaModule:#hlo_module=#"}) {
    EXPECT_FALSE(step_name_matches(message, "jit_train_step")) << message;
    EXPECT_TRUE(xla_module(message).empty()) << message;
  }
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

}  // namespace
}  // namespace gpuprof::test
