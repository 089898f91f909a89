// SPDX-License-Identifier: Apache-2.0
// How ranks compare where a job has several windows: over all of them, not in one.
#include "tools/analysis/ranks/rank_speeds.h"

#include <gtest/gtest.h>

#include "tests/unit/support/rank_job.h"
#include "tools/analysis/report.h"

namespace gpuprof::analysis {
namespace {

constexpr int kRanks = 4;

// A rank has slow kernels in this window; -1: none.
test::RankJob window(uint32_t number, int steps, int slow_rank) {
  test::RankJob job;
  job.ranks = kRanks, job.steps = steps, job.seed = 1 + number;
  job.kernel = 40'000, job.data = 400'000;
  job.window = number, job.first_step = static_cast<int>(number) * 100;
  job.slow_rank = slow_rank, job.factor = 2;
  return job;
}

std::vector<RankSpeed> speeds_of(const std::vector<test::RankJob>& windows) {
  std::string dumps;
  for (const test::RankJob& each : windows) dumps += test::rank_job_dumps(each);
  const Trace trace = test::load(dumps);
  EXPECT_EQ(trace.processes.size(), windows.size() * kRanks);
  return make_report(trace).speeds;
}

TEST(RankSpeeds, OfAllWindowsByTheirSteps) {
  const auto slow = speeds_of({window(0, 9, 2)}), even = speeds_of({window(1, 3, -1)});
  const auto both = speeds_of({window(0, 9, 2), window(1, 3, -1)});
  ASSERT_EQ(both.size(), size_t{kRanks});
  for (size_t rank = 0; rank < both.size(); ++rank) {
    const auto mean = [&](double RankSpeed::*each) {
      return (9 * slow[rank].*each + 3 * even[rank].*each) / 12;
    };
    EXPECT_EQ(both[rank].rank, static_cast<int32_t>(rank));
    for (double RankSpeed::*const each :
         {&RankSpeed::compute_us, &RankSpeed::host_us, &RankSpeed::waited_us,
          &RankSpeed::waited_median_us, &RankSpeed::last_pct}) {
      EXPECT_NEAR(both[rank].*each, mean(each), 1e-6 * mean(each)) << rank;
    }
    EXPECT_EQ(both[rank].collectives, slow[rank].collectives + even[rank].collectives);
  }
  EXPECT_NEAR(slow[2].compute, 2, 0.05);
  EXPECT_NEAR(both[2].compute, 1.75, 0.05);
  EXPECT_GT(both[2].last_pct, 70) << "in nine steps of twelve, and by chance in the others";
}

TEST(RankSpeeds, DoNotDependOnTheOrderOfWindows) {
  const auto first = speeds_of({window(0, 6, 1), window(1, 6, -1)});
  const auto last = speeds_of({window(0, 6, -1), window(1, 6, 1)});
  EXPECT_NEAR(first[1].compute, 1.5, 0.05);
  EXPECT_NEAR(last[1].compute, 1.5, 0.05);
}

}  // namespace
}  // namespace gpuprof::analysis
