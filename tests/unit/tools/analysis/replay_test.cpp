// SPDX-License-Identifier: Apache-2.0
#include "tools/analysis/replay/replay.h"

#include <gtest/gtest.h>

#include "tests/unit/support/rank_job.h"
#include "tools/analysis/report.h"
#include "tools/analysis/verdict.h"

namespace gpuprof::analysis {
namespace {

test::RankJob job_of(int ranks) {
  test::RankJob job;
  job.ranks = ranks;
  job.kernel = 30'000;  // GPUs are behind their hosts: many ends of work lie ahead
  return job;
}

// Counted, not timed: what is done beside working out each node once.
TEST(Replay, CarriesNoMoreBetweenPiecesForMoreRanks) {
  for (const int ranks : {2, 128}) {
    const Trace trace = test::load_rank_job(job_of(ranks));
    const auto timelines = make_timelines(trace);
    const RankComparison comparison = compare_ranks(timelines);
    const Replay replay(timelines, comparison);
    ASSERT_TRUE(replay.ended());
    EXPECT_GT(replay.recorded_step_time(), 0);
    EXPECT_NEAR(replay.step_time(Fix::none), replay.recorded_step_time(),
                0.01 * replay.recorded_step_time());
    EXPECT_LT(replay.carried(), 2) << ranks << " ranks";
  }
}

TEST(Replay, GivesUpWhereItWouldNotEndInTimeAndTheReportSaysSo) {
  const Trace trace = test::load_rank_job(job_of(8));
  const auto timelines = make_timelines(trace);
  const RankComparison comparison = compare_ranks(timelines);
  const Replay replay(timelines, comparison, {.seconds = 1e-9});
  EXPECT_FALSE(replay.ended());
  EXPECT_GT(replay.would_take_seconds(), 1e-9);
  EXPECT_EQ(replay.recorded_step_time(), 0);
  Report report = make_report(trace);
  report.verdict.clear();
  Judge judge;
  judge.add_window(timelines, comparison, replay);
  judge.decide(report);
  EXPECT_TRUE(report.verdict.empty());
  EXPECT_NE(report.reason.find("it would take"), std::string::npos) << report.reason;
}

TEST(Replay, GivesUpWhereAPieceIsTooLargeAndTheReportSaysSo) {
  const Trace trace = test::load_rank_job(job_of(8));
  const auto timelines = make_timelines(trace);
  const RankComparison comparison = compare_ranks(timelines);
  const Replay replay(timelines, comparison, {.nodes = 100});
  EXPECT_FALSE(replay.ended());
  EXPECT_EQ(replay.recorded_step_time(), 0);

  Report report = make_report(trace);
  ASSERT_FALSE(report.verdict.empty());
  report.verdict.clear();
  Judge judge;
  judge.add_window(timelines, comparison, replay);
  judge.decide(report);
  EXPECT_TRUE(report.verdict.empty());
  EXPECT_NE(report.reason.find("the replay was given up"), std::string::npos) << report.reason;
  EXPECT_GT(report.breakdown_pct[0], 0);
}

}  // namespace
}  // namespace gpuprof::analysis
