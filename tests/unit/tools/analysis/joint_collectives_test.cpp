// SPDX-License-Identifier: Apache-2.0
// Collectives that a rank does in several pieces: kernels of a group, copies of copy engines.
#include <gtest/gtest.h>

#include "tests/unit/support/rank_job.h"
#include "tools/analysis/ranks.h"
#include "tools/analysis/ranks/clocks.h"
#include "tools/analysis/ranks/collective_times.h"
#include "tools/analysis/replay/replay.h"
#include "tools/analysis/report.h"

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

// A ReduceScatter of all ranks at a step's end has a call, and the collectives of layers have none.
test::RankJob mixed() {
  test::RankJob job = in_step();
  job.in_graph = true, job.split = 2, job.data = 100'000;
  job.slow_rank = 1, job.slow = test::Slow::compute, job.factor = 4, job.collective = 20'000;
  return job;
}

TEST(JointCollectives, WithoutACallAreFoundByOrderBesideThoseWithOne) {
  for (const int late_windows : {0, 1}) {
    test::RankJob job = mixed();
    job.steps = 5, job.late_windows = late_windows;
    const Trace trace = test::load_rank_job(job);
    const auto timelines = make_timelines(trace);
    const RankComparison ranks = compare_ranks(timelines);
    EXPECT_TRUE(ranks.named);
    EXPECT_EQ(ranks.works, (5u + 5 - static_cast<unsigned>(late_windows)) * 4);
    EXPECT_EQ(ranks.collectives.size(), (5u - static_cast<unsigned>(late_windows)) * 4);
    const Report report = make_report(trace);
    ASSERT_FALSE(report.verdict.empty());
    EXPECT_EQ(report.verdict[0].cause, Cause::straggler);
    EXPECT_EQ(report.verdict[0].evidence[0].rfind("rank 1 ", 0), 0u);
  }
}

TEST(JointCollectives, WithoutACallAreFoundWhereRanksCountStepsDifferently) {
  test::RankJob job = mixed();
  std::string dumps[2];
  for (const int first : {0, 7}) {
    job.first_step = first;
    test::run_rank_job(job, [&](int rank, std::string_view bytes) {
      if (rank == (first == 7)) dumps[rank] += bytes;
    });
  }
  const Trace trace = test::load(dumps[0] + dumps[1]);
  const RankComparison ranks = compare_ranks(make_timelines(trace));
  EXPECT_EQ(ranks.matched, ranks.works);
  EXPECT_EQ(ranks.collectives.size(), 3u * 4);
}

// Those of stages that have nothing to do with each other do not run together.
TEST(JointCollectives, WithoutACallAreNotOneWhereTheyRunApart) {
  test::RankJob job = mixed();
  job.pausing_rank = 1, job.pausing_step = 1, job.pause_once = 50'000'000;
  Trace trace = test::load_rank_job(job);
  const size_t all = compare_ranks(make_timelines(trace)).collectives.size();
  EXPECT_EQ(all, 3u * 4);
  job.offset = 50'000'000, job.ranks_per_host = 1;  // as if they ran at another time
  trace = test::load_rank_job(job);
  EXPECT_EQ(compare_ranks(make_timelines(trace)).collectives.size(), 3u) << "those with a call";
}

test::RankJob by_copies() {
  test::RankJob job = in_step();
  job.by_copies = true;
  return job;
}

test::RankJob late_by_copies() {
  test::RankJob job = by_copies();
  job.slow_rank = 1, job.slow = test::Slow::data_loading, job.factor = 3.5;  // by 5 ms
  return job;
}

TEST(CopyEngineCollectives, OfRanksInStepHaveNoWaits) {
  for (const bool identified : {true, false}) {
    test::RankJob job = by_copies();
    job.identified = identified;
    const RankComparison ranks = compare(job);
    EXPECT_EQ(ranks.works, 2u * 9 * 3);
    ASSERT_EQ(ranks.collectives.size(), 9u);
    EXPECT_EQ(ranks.timed, 0u);
    for (const JointCollective& each : ranks.collectives) {
      EXPECT_TRUE(each.by_copies);
      EXPECT_EQ(each.parts.size(), 2u);
      EXPECT_EQ(each.shortest_ns, job.collective);
    }
    for (const RankSpeed& speed : ranks.speeds) {
      EXPECT_EQ(speed.waited_us, 0);
      EXPECT_EQ(speed.last_pct, 0);
      EXPECT_EQ(speed.collectives, 0u) << "how it compares is not known";
    }
  }
}

TEST(CopyEngineCollectives, BlameNobodyAndSayWhatLiesBetweenTheCopies) {
  const test::RankJob job = late_by_copies();
  std::vector<CollectiveCall> calls;
  const Trace trace = test::load_rank_job(job);
  const auto timelines = make_timelines(trace);
  const RankComparison ranks = compare_ranks(timelines);
  for (const RankSpeed& speed : ranks.speeds) EXPECT_EQ(speed.waited_us, 0);
  EXPECT_GT(ranks.speeds[1].data_loading, 3) << "of its own it is known";
  CollectiveTimesMaker maker(&calls);
  maker.add_window(timelines, ranks);
  const CollectiveTimes times = maker.take();
  ASSERT_EQ(times.rows.size(), 1u);
  const CollectiveTimesRow& row = times.rows[0];
  EXPECT_EQ(row.matched, 9u);
  EXPECT_EQ(row.by_copies, 9u);
  EXPECT_EQ(row.waiting_us, 0);
  EXPECT_NEAR(row.between_us, 3 * 5'000 / 2.0, 100) << "one of two ranks, once a step";
  EXPECT_NEAR(row.transfer_us, 9 * static_cast<double>(job.collective) / 1000, 20);
  EXPECT_NEAR(row.exposed_us + row.overlapped_us, row.transfer_us, 20) << "of the copies alone";
  EXPECT_TRUE(times.waits.names.empty());
  for (const CollectiveCall& call : calls) {
    EXPECT_TRUE(call.matched);
    EXPECT_FALSE(call.wait_us);
  }
  const Report report = make_report(trace);
  for (const Verdict& verdict : report.verdict) EXPECT_NE(verdict.cause, Cause::straggler);
}

TEST(CopyEngineCollectives, AreReplayedAsTheyRan) {
  for (const test::RankJob& job : {by_copies(), late_by_copies()}) {
    const Trace trace = test::load_rank_job(job);
    const auto timelines = make_timelines(trace);
    const Replay replay(timelines, compare_ranks(timelines));
    ASSERT_TRUE(replay.ended());
    EXPECT_NEAR(replay.step_time(Fix::none), replay.recorded_step_time(),
                0.01 * replay.recorded_step_time());
  }
}

TEST(CopyEngineCollectives, AlignNoClocks) {
  test::RankJob job = by_copies();
  job.ranks = 4, job.ranks_per_host = 2, job.offset = 50'000'000;
  Trace trace = test::load_rank_job(job);
  const int64_t begin = trace.processes[3].events.begin_of(0);
  const auto clocks = align_clocks(trace);
  ASSERT_EQ(clocks.size(), 2u);
  EXPECT_EQ(clocks[1].collectives, 0u);
  EXPECT_EQ(trace.processes[3].events.begin_of(0), begin);
  job.by_copies = false;
  Trace kernels = test::load_rank_job(job);
  EXPECT_GT(align_clocks(kernels)[1].collectives, 0u);
}

}  // namespace
}  // namespace gpuprof::analysis
