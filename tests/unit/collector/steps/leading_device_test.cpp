// SPDX-License-Identifier: Apache-2.0
// Of several GPUs of a process one makes the steps.
#include "collector/steps/leading_device.h"

#include <gtest/gtest.h>

#include "tests/unit/support/step_tracker.h"

namespace gpuprof::test {
namespace {

// A thread for each GPU, one process.
TEST(StepTracker, OfSeveralGpusOneLeads) {
  for (const char* text : {"nvtx:step", "sync:1", "graph:1", "kernel:adam:1", "manual", "auto"}) {
    StepTracker tracker = tracker_for(text);
    const bool automatic = tracker.source() == StepSource::automatic;
    const StepSource source = automatic ? StepSource::sync : tracker.source();
    size_t count = 0;
    for (uint32_t i = 0; i < 400; ++i) {
      const uint32_t gpu = (i * 7 + i / 4 % 3) % 4;  // in an order that changes
      StepMark mark{source, 2000 + 10 * i, 5};
      mark.thread = 100 + gpu;
      mark.device = static_cast<int32_t>(gpu);
      count += tracker.mark(mark).count;
    }
    EXPECT_NEAR(static_cast<double>(count), automatic ? 101 : 100, 1) << text;
    EXPECT_NE(tracker.leading_device(), kUnknownDevice) << text;
  }
}

TEST(LeadingDevice, WhoCounts) {
  LeadingDevice pool;  // threads that take turns with one GPU
  for (uint32_t i = 0; i < 20; ++i) EXPECT_TRUE(pool.leads(100 + i % 4, 0, false));
  EXPECT_EQ(pool.among_others(), kUnknownDevice);

  LeadingDevice thread;  // one that goes from GPU to GPU
  for (int32_t i = 0; i < 20; ++i) {
    EXPECT_EQ(thread.leads(100, i % 4, false), i % 4 == 0) << "it waits for each of them";
  }
  LeadingDevice ranges;
  for (int32_t i = 0; i < 20; ++i) EXPECT_TRUE(ranges.leads(100, i % 4, true));

  LeadingDevice unknown;
  EXPECT_TRUE(unknown.leads(100, kUnknownDevice, false));
  EXPECT_TRUE(unknown.leads(101, 2, false)) << "the first whose GPU is known";
  EXPECT_TRUE(unknown.leads(102, kUnknownDevice, false));
  EXPECT_FALSE(unknown.leads(103, 1, false));

  LeadingDevice gone;
  EXPECT_TRUE(gone.leads(100, 0, false));
  uint32_t silent = 0;
  while (!gone.leads(101, 1, false)) ++silent;
  EXPECT_EQ(silent, LeadingDevice::kSilence);
  EXPECT_TRUE(gone.leads(101, 1, false) && !gone.leads(100, 0, false));
}

}  // namespace
}  // namespace gpuprof::test
