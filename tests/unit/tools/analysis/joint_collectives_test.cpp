// SPDX-License-Identifier: Apache-2.0
// Collectives that a rank does in several pieces: kernels of a group.
#include <gtest/gtest.h>

#include "tests/unit/support/rank_job.h"
#include "tools/analysis/ranks.h"
#include "tools/analysis/replay/replay.h"

namespace gpuprof::analysis {
namespace {

// Two ranks in step.
test::RankJob in_step() {
  test::RankJob job;
  job.ranks = 2, job.steps = 3, job.layers = 3, job.forward = 1, job.backward = 2;
  job.noise = 0;
  return job;
}

RankComparison compare(const test::RankJob& job) {
  const Trace trace = test::load_rank_job(job);
  return compare_ranks(make_timelines(trace));
}

TEST(JointCollectives, KernelsOfAGroupAreOnePartOfEachRank) {
  test::RankJob job = in_step();
  job.grouped = 3, job.group_kernels = 2;
  for (const bool identified : {true, false}) {
    job.identified = identified;
    const RankComparison ranks = compare(job);
    EXPECT_EQ(ranks.named, identified);
    EXPECT_EQ(ranks.works, 2u * 9 * 2);
    EXPECT_EQ(ranks.matched, ranks.works);
    ASSERT_EQ(ranks.collectives.size(), 9u);
    for (const JointCollective& each : ranks.collectives) {
      ASSERT_EQ(each.parts.size(), 2u);
      EXPECT_NE(each.parts[0].rank, each.parts[1].rank);
      EXPECT_NE(each.parts[0].event, each.parts[0].last);
      EXPECT_EQ(each.shortest_ns, 3 * job.collective);
    }
    for (const RankSpeed& speed : ranks.speeds) EXPECT_EQ(speed.waited_us, 0);
  }
}

TEST(JointCollectives, WaitsOfAGroupAreThoseForItsLastRank) {
  test::RankJob job = in_step();
  job.grouped = 3, job.group_kernels = 2;
  job.slow_rank = 1, job.slow = test::Slow::data_loading, job.factor = 3.5;  // by 5 ms
  const RankComparison ranks = compare(job);
  EXPECT_NEAR(ranks.speeds[0].waited_us, 5'000, 50);
  EXPECT_EQ(ranks.speeds[1].waited_us, 0);
}

TEST(JointCollectives, AreNotThoseOfOneRank) {
  test::RankJob job = in_step();
  job.layers = 0, job.split = 1, job.group_kernels = 2;  // each rank alone in a communicator
  const RankComparison ranks = compare(job);
  EXPECT_EQ(ranks.works, 2u * 3 * 2);
  EXPECT_EQ(ranks.matched, 0u);
  EXPECT_TRUE(ranks.collectives.empty());
  EXPECT_FALSE(ranks.comparable);
}

// Of each rank one piece waits for the others: else the replay would wait for ever.
TEST(JointCollectives, OfSeveralKernelsAreReplayedAsTheyRan) {
  test::RankJob job = in_step();
  job.grouped = 3, job.group_kernels = 2;
  job.slow_rank = 1, job.slow = test::Slow::data_loading, job.factor = 3.5;
  const Trace trace = test::load_rank_job(job);
  const auto timelines = make_timelines(trace);
  const Replay replay(timelines, compare_ranks(timelines));
  ASSERT_TRUE(replay.ended());
  EXPECT_NEAR(replay.step_time(Fix::none), replay.recorded_step_time(),
              0.01 * replay.recorded_step_time());
  EXPECT_LT(replay.step_time(Fix::straggler), 0.5 * replay.step_time(Fix::none));
}

}  // namespace
}  // namespace gpuprof::analysis
