// SPDX-License-Identifier: Apache-2.0
// Collectives against jobs whose transfers, waits and communicators are known.
#include "tools/analysis/ranks/collective_times.h"

#include <gtest/gtest.h>

#include "tests/unit/support/rank_job.h"
#include "tools/analysis/ranks/bus_bandwidth.h"
#include "tools/analysis/report.h"

namespace gpuprof::analysis {
namespace {

constexpr double kBytes = 4.0 * (1 << 20);  // of a call

test::RankJob job_of(int ranks) {
  test::RankJob job;
  job.ranks = ranks;
  job.ranks_per_host = 4;
  job.steps = 3, job.layers = 3, job.forward = 1, job.backward = 2;
  return job;
}

const CollectiveTimesRow* find(const CollectiveTimes& times, std::string_view function) {
  for (const CollectiveTimesRow& row : times.rows) {
    if (row.function == function) return &row;
  }
  return nullptr;
}

TEST(BusBandwidth, CountsAsNcclTestsDoes) {
  EXPECT_DOUBLE_EQ(bus_factor("ncclAllReduce", 4), 1.5);
  EXPECT_DOUBLE_EQ(bus_factor("ncclAllReduceConfig", 4), 1.5);
  for (const char* name : {"ncclAllGather", "ncclReduceScatter", "ncclAlltoAll", "ncclGather"}) {
    EXPECT_DOUBLE_EQ(bus_factor(name, 4), 0.75) << name;
    EXPECT_EQ(collective_bytes(name, 100, 4), 400u) << name;
  }
  for (const char* name : {"ncclBroadcast", "ncclBcast", "ncclReduce", "ncclSend", "ncclRecv"}) {
    EXPECT_DOUBLE_EQ(bus_factor(name, 4), 1) << name;
    EXPECT_EQ(collective_bytes(name, 100, 4), 100u) << name;
  }
}

// Pipelines, groups, splits, shrinks and windows at different steps.
TEST(CollectiveTimes, MatchesEveryCallAndKnowsItsBandwidth) {
  for (const int ranks : {8, 64}) {
    test::RankJob job = job_of(ranks);
    job.grouped = 4, job.split = 4, job.shrunk = true, job.message = 50'000, job.late_windows = 1;
    const CollectiveTimes times = make_report(test::load_rank_job(job)).collective_times;
    EXPECT_EQ(times.different, 0u);
    // What the late windows do not have is not matched; of the two steps that all have, all is.
    const auto steps = static_cast<uint64_t>(job.steps - 1), all = static_cast<uint64_t>(ranks);
    const CollectiveTimesRow* const reduce = find(times, "ncclAllReduce");
    ASSERT_NE(reduce, nullptr);
    EXPECT_EQ(reduce->matched, steps * 3 * 4) << ranks;
    const double n = ranks, us = static_cast<double>(job.collective) / 1000;
    EXPECT_NEAR(reduce->bus_gbs / (kBytes / us / 1e3 * 2 * (n - 1) / n), 1, 0.01);
    EXPECT_EQ(reduce->members.size(), all);
    uint64_t scattered = 0;
    for (const CollectiveTimesRow& row : times.rows) {
      if (row.function != "ncclReduceScatter") continue;
      scattered += row.matched;
      EXPECT_EQ(row.ranks, 4u);
      EXPECT_NEAR(row.bus_gbs / (kBytes * 4 / us / 1e3 * 0.75), 1, 0.01);
    }
    EXPECT_EQ(scattered, steps * all / 4);
    const CollectiveTimesRow* const broadcast = find(times, "ncclBroadcast");
    ASSERT_NE(broadcast, nullptr);
    EXPECT_EQ(broadcast->ranks, static_cast<uint32_t>(ranks - 1));
    EXPECT_EQ(broadcast->matched, steps);
    EXPECT_NEAR(broadcast->bus_gbs / (kBytes / us / 1e3), 1, 0.01);
    const CollectiveTimesRow* const messages = find(times, "ncclSend, ncclRecv");
    ASSERT_NE(messages, nullptr);
    EXPECT_EQ(messages->matched, steps * (all - 1));
    EXPECT_NEAR(messages->bus_gbs / (kBytes / 50 / 1e3), 1, 0.01);
    EXPECT_EQ(times.links.size(), all - 1);
    EXPECT_EQ(times.host_links.size(), all / 4 + all / 4 - 1);  // within each host, and to the next
  }
}

TEST(CollectiveTimes, MatchesAllWhereAllRecordedIt) {
  test::RankJob job = job_of(8);
  job.grouped = 2, job.split = 2, job.message = 50'000;
  const CollectiveTimes times = make_report(test::load_rank_job(job)).collective_times;
  EXPECT_EQ(times.calls, 3u * (3 * 2 + 4 + 7));
  EXPECT_EQ(times.matched, times.calls);
}

// One kernel a rank, which serves all peers at once.
TEST(CollectiveTimes, AGroupOfMessagesToAllGivesNoLinkMoreThanItCarried) {
  test::RankJob job = job_of(4);
  job.exchange = 80'000, job.noise = 0;
  const Report report = make_report(test::load_rank_job(job));
  const CollectiveTimes& times = report.collective_times;
  EXPECT_EQ(times.links.size(), 4u * 3) << "a rank's message to itself takes no link";
  for (const LinkRow& link : times.links) {
    EXPECT_NE(link.from, link.to);
    EXPECT_NEAR(link.gbs() / (kBytes / 80 / 1e3), 1, 0.01) << link.from << " to " << link.to;
  }
  const CollectiveTimesRow* const messages = find(times, "ncclSend, ncclRecv");
  ASSERT_NE(messages, nullptr);
  EXPECT_EQ(messages->matched, 3u * 4 * 3);
  EXPECT_NEAR(messages->bus_gbs / (3 * kBytes / 80 / 1e3), 1, 0.01) << "what each GPU sends";
}

TEST(CollectiveTable, CallsOfOneKernelShareItsTime) {
  test::RankJob job = job_of(4);
  job.exchange = 80'000, job.noise = 0;
  const Report report = make_report(test::load_rank_job(job));
  double us = 0;
  for (const CollectiveRow& row : report.tables.collectives) {
    if (row.name == "ncclSend" || row.name == "ncclRecv") us += row.total_us;
  }
  EXPECT_NEAR(us, 80.0 * job.steps * job.ranks, 1) << "not 8 times as much";
}

std::string why_ranks_wait(const test::RankJob& job) {
  for (const Finding& finding : make_report(test::load_rank_job(job)).findings) {
    if (finding.kind == FindingKind::rank_jitter) return finding.text;
  }
  return {};
}

// Kernels of very different lengths: another rank is late each time.
TEST(RankJitter, AnExchangeOfAllWithAllIsNoPipeline) {
  test::RankJob job = job_of(4);
  job.steps = 40, job.layers = 1, job.forward = 8, job.backward = 1, job.noise = 0.6;
  job.kernel = 100'000, job.collective = 1'000;
  job.data = 20'000, job.exchange = 80'000;
  const std::string all = why_ranks_wait(job);
  EXPECT_NE(all.find("sends and receives of all with all"), std::string::npos) << all;
  job.exchange = 0, job.message = 80'000;
  const std::string stages = why_ranks_wait(job);
  EXPECT_NE(stages.find("as stages of a pipeline do"), std::string::npos) << stages;
}

TEST(CollectiveTimes, SaysWhoWaitsForWhomAndWhatIsExposed) {
  test::RankJob job = job_of(4);
  job.slow_rank = 2, job.factor = 2, job.kernel = 100'000;
  const CollectiveTimes times = make_report(test::load_rank_job(job)).collective_times;
  const CollectiveTimesRow* const reduce = find(times, "ncclAllReduce");
  ASSERT_NE(reduce, nullptr);
  // Nothing computes while this job's collectives run, and each lasts its transfer and its wait.
  EXPECT_NEAR(reduce->exposed_us, reduce->transfer_us + reduce->waiting_us,
              0.01 * reduce->exposed_us);
  EXPECT_LT(reduce->overlapped_us, 0.01 * reduce->exposed_us);
  EXPECT_GT(reduce->waiting_us, reduce->transfer_us);
  ASSERT_EQ(times.waits.names, (std::vector<std::string>{"rank 0", "rank 1", "rank 2", "rank 3"}));
  double for_slow = 0, all = 0;
  for (size_t i = 0; i < 4; ++i) {
    for (size_t j = 0; j < 4; ++j) all += times.waits.waits_us[i][j];
    for_slow += times.waits.waits_us[i][2];
  }
  EXPECT_GT(for_slow, 0.95 * all);
  EXPECT_NEAR(all / 4, reduce->waiting_us, 0.01 * reduce->waiting_us);
}

TEST(CollectiveTimes, GivesNoBandwidthWhereARankIsMissing) {
  test::RankJob job = job_of(4);
  std::string dumps;
  test::run_rank_job(job, [&](int rank, std::string_view bytes) {
    if (rank != 3) dumps += bytes;
  });
  const CollectiveTimes times = make_report(test::load(dumps)).collective_times;
  EXPECT_EQ(times.calls, 9u);
  EXPECT_EQ(times.matched, 0u);
  ASSERT_EQ(times.rows.size(), 1u);
  EXPECT_EQ(times.rows[0].bus_gbs, 0);
}

TEST(CollectiveTimes, JoinsDumpsThatNameNoCommunicators) {
  test::RankJob job = job_of(4);
  job.identified = false;
  const CollectiveTimes times = make_report(test::load_rank_job(job)).collective_times;
  EXPECT_EQ(times.calls, 9u);
  EXPECT_EQ(times.matched, 9u);
  EXPECT_NEAR(times.rows.at(0).bus_gbs / (kBytes / 60 / 1e3 * 1.5), 1, 0.01);
}

TEST(CollectiveTimes, ShowsManyRanksByHost) {
  test::RankJob job = job_of(68);
  job.ranks_per_host = 34, job.slow_rank = 40, job.factor = 3;
  job.forward = 20, job.backward = 40;
  const CollectiveTimes times = make_report(test::load_rank_job(job)).collective_times;
  EXPECT_EQ(times.waits.names, (std::vector<std::string>{"node0", "node1"}));
  EXPECT_GT(times.waits.waits_us[0][1], times.waits.waits_us[1][0]);
  EXPECT_EQ(members_text(times.rows.at(0)), "68 ranks: 0-67");
  EXPECT_EQ(size_text(times.rows.at(0)), "4 MiB to 16 MiB");
}

}  // namespace
}  // namespace gpuprof::analysis
