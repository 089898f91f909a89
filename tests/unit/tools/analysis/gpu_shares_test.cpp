// SPDX-License-Identifier: Apache-2.0
#include "tools/analysis/gpu_shares.h"

#include <gtest/gtest.h>

#include "tests/unit/support/job_model.h"
#include "tools/analysis/report.h"

namespace gpuprof::analysis {
namespace {

// As in other tools' traces of several windows.
TEST(GpuShares, TimeBetweenStepsIsNoneOfTheirs) {
  test::Job job;
  job.steps = 10;
  job.pausing_rank = 0, job.pausing_step = 4, job.pause_once = 60'000'000;
  const Trace trace = test::JobModel(job).trace();
  auto timelines = make_timelines(trace);
  Timeline& timeline = timelines.front();
  ASSERT_GT(timeline.steps.size(), 8u);
  timeline.steps.erase(timeline.steps.begin() + 4);
  const std::vector<Step> steps = timeline.steps;
  const GpuShares all = gpu_shares_of(timeline);
  double busy = 0, whole = 0;
  for (const Step& step : steps) {
    timeline.steps = {step};
    const double length = static_cast<double>(step.end - step.begin);
    busy += length * gpu_shares_of(timeline).any_pct;
    whole += length;
  }
  EXPECT_GT(all.any_pct, 10);
  EXPECT_NEAR(all.any_pct, busy / whole, 0.01);
  EXPECT_DOUBLE_EQ(all.busiest_pct, all.any_pct);
  EXPECT_EQ(all.gpus, 1u);
}

}  // namespace
}  // namespace gpuprof::analysis
