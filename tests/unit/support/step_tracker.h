// SPDX-License-Identifier: Apache-2.0
// Step trackers for tests, and what they found.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "collector/steps/step_tracker.h"

namespace gpuprof::test {

inline constexpr uint64_t kStart = 1000;

inline StepTracker tracker_for(const char* text) {
  StepSpec spec;
  SettingError error;
  EXPECT_TRUE(parse_step(text, spec, error)) << error.text;
  StepTracker tracker;
  tracker.start(spec, kStart);
  return tracker;
}

inline std::vector<uint64_t> ticks(const StepTracker::Result& result) {
  return {result.ticks, result.ticks + result.count};
}

inline std::string described(const StepTracker& tracker) {
  char text[160];
  return {text, tracker.describe(text, sizeof text)};
}

// Three steps of an optimizer.
inline StepTracker tracker_with_optimizer() {
  StepTracker tracker = tracker_for("auto");
  for (const uint64_t at : {2000, 3000, 4000}) tracker.mark({StepSource::optimizer, at, 7});
  EXPECT_EQ(tracker.source(), StepSource::optimizer);
  return tracker;
}

}  // namespace gpuprof::test
