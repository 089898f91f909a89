// SPDX-License-Identifier: Apache-2.0
// Slow ranks against jobs that have one. STRAGGLER_SEEDS=100: as many seeds of each;
// STRAGGLER_FIRST=2001: from that one on.
#include "tools/analysis/ranks/slow_ranks.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>

#include "tests/unit/support/rank_job.h"
#include "tools/analysis/evidence.h"
#include "tools/analysis/report.h"

namespace gpuprof::analysis {
namespace {

int seeds() {
  const char* const wanted = std::getenv("STRAGGLER_SEEDS");
  return wanted ? std::atoi(wanted) : 3;
}

int first_seed() {
  const char* const wanted = std::getenv("STRAGGLER_FIRST");
  return wanted ? std::atoi(wanted) : 1;
}

test::RankJob job_of(uint64_t seed) {
  test::RankJob job;
  job.ranks = 8, job.steps = 12, job.seed = seed;
  job.kernel = 40'000;
  job.data = 400'000;
  job.copy = 200'000, job.allocation = 50'000, job.unscheduled = 100'000;
  return job;
}

struct Case {
  const char* name;
  test::Slow cause;
  double factor;
  SlowPart part;
};
constexpr Case kCases[] = {{"compute", test::Slow::compute, 1.5, SlowPart::compute},
                           {"data", test::Slow::data_loading, 4, SlowPart::data_loading},
                           {"host", test::Slow::host, 8, SlowPart::host},
                           {"copies", test::Slow::copies, 8, SlowPart::copies},
                           {"allocation", test::Slow::allocation, 16, SlowPart::allocation},
                           {"launches", test::Slow::launches, 15, SlowPart::launches},
                           {"processor", test::Slow::processor, 15, SlowPart::processor},
                           {"throttled", test::Slow::throttled, 1.5, SlowPart::throttled}};

const SlowRank* persistent(const std::vector<SlowRank>& found) {
  const auto at = std::find_if(found.begin(), found.end(), [](const SlowRank& slow) {
    return slow.pattern == SlowPattern::persistent;
  });
  return at == found.end() ? nullptr : &*at;
}

std::vector<SlowRank> found_in(const test::RankJob& job) {
  return make_report(test::load_rank_job(job)).slow_ranks;
}

TEST(Stragglers, OneThatIsSlowThroughoutIsNamedBesideAPauseOfAnother) {
  for (const Case& each : kCases) {
    int right = 0;
    for (int seed = first_seed(); seed < first_seed() + seeds(); ++seed) {
      test::RankJob job = job_of(static_cast<uint64_t>(seed));
      job.slow_rank = seed % job.ranks, job.slow = each.cause, job.factor = each.factor;
      job.slow_from = 4;
      job.pausing_rank = (seed + 3) % job.ranks, job.pausing_step = 6, job.pause_once = 30'000'000;
      const auto found = found_in(job);
      const SlowRank* const slow = persistent(found);
      right += slow && slow->rank == job.slow_rank && slow->part == each.part && slow->since == 4;
    }
    std::printf("%s: %d of %d\n", each.name, right, seeds());
    EXPECT_GE(right * 100, seeds() * 98) << each.name;
  }
}

// Copies beside the computing take longer on one rank, and nobody waits for them.
TEST(Stragglers, APartThatNobodyWaitsForNamesNobody) {
  std::vector<StepTimes> ranks(4);
  for (int32_t rank = 0; rank < 4; ++rank) {
    StepTimes& each = ranks[static_cast<size_t>(rank)];
    each.rank = rank;
    for (uint64_t step = 0; step < 8; ++step) each.steps.push_back(step);
    each.compute.assign(8, 1000), each.data_loading.assign(8, 10), each.host.assign(8, 10);
    each.copies.assign(8, rank == 2 ? 500 : 100);
    each.waited.assign(8, 20);
  }
  EXPECT_TRUE(find_slow_ranks(ranks, 1200).empty());
  for (StepTimes& each : ranks) each.waited.assign(8, each.rank == 2 ? 0 : 400);
  const auto found = find_slow_ranks(ranks, 1200);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].rank, 2);
  EXPECT_EQ(found[0].part, SlowPart::copies);
}

// Beside a long pause of rank 1, rank 0 waits for a processor: nobody waits longer for that.
TEST(Stragglers, WhatIsBesideAnotherRanksPauseNamesNobody) {
  std::vector<StepTimes> ranks(4);
  for (int32_t rank = 0; rank < 4; ++rank) {
    StepTimes& each = ranks[static_cast<size_t>(rank)];
    each.rank = rank;
    for (uint64_t step = 0; step < 10; ++step) each.steps.push_back(step);
    each.compute.assign(10, 8000), each.data_loading.assign(10, 10), each.host.assign(10, 100);
    each.processor.assign(10, 50), each.waited.assign(10, 20);
    if (rank == 1) each.host[5] += 1'000'000;
    if (rank == 0) each.processor[5] += 8700;
    if (rank != 1) each.waited[5] += rank == 0 ? 999'900 : 1'000'000;
  }
  const auto found = find_slow_ranks(ranks, 9000);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].rank, 1);
  EXPECT_EQ(found[0].pattern, SlowPattern::one_off);
  EXPECT_EQ(describe(found[0]),
            "rank 1: the host's own work 1.000 s more than the median rank's, once, in step 5");
}

// It writes a log when a step is over, say: the others wait for it in the next one.
TEST(Stragglers, APauseAtAStepsEndIsWaitedForInTheNextStep) {
  constexpr size_t kSteps = 20;
  std::vector<StepTimes> ranks(3);
  for (int32_t rank = 0; rank < 3; ++rank) {
    StepTimes& each = ranks[static_cast<size_t>(rank)];
    each.rank = rank;
    for (uint64_t step = 0; step < kSteps; ++step) each.steps.push_back(step);
    each.compute.assign(kSteps, 2000), each.data_loading.assign(kSteps, 10);
    each.host.assign(kSteps, 100), each.waited.assign(kSteps, 20);
    for (size_t step = 2; step + 1 < kSteps; step += 5) {
      if (rank == 1) each.host[step] += 8000;
      if (rank != 1) each.waited[step + 1] += 8000;
    }
  }
  const auto found = find_slow_ranks(ranks, 2400);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].rank, 1);
  EXPECT_EQ(found[0].part, SlowPart::host);
  EXPECT_EQ(found[0].pattern, SlowPattern::periodic);
  EXPECT_EQ(found[0].period, 5u);
}

TEST(Stragglers, NobodyInHealthyJobs) {
  int wrong = 0;
  for (int seed = first_seed(); seed < first_seed() + seeds(); ++seed) {
    wrong += !found_in(job_of(static_cast<uint64_t>(seed))).empty();
  }
  EXPECT_EQ(wrong, 0);
}

TEST(Stragglers, PeriodicAndOnceAreToldApart) {
  test::RankJob job = job_of(5);
  job.slow_rank = 2, job.slow_from = 1, job.slow_every = 4;
  job.pausing_rank = 5, job.pausing_step = 7, job.pause_once = 20'000'000;
  const auto found = found_in(job);
  ASSERT_EQ(found.size(), 2u);
  const auto of = [&](int rank) {
    return std::find_if(found.begin(), found.end(), [&](auto& each) { return each.rank == rank; });
  };
  ASSERT_NE(of(2), found.end());
  EXPECT_EQ(of(2)->pattern, SlowPattern::periodic);
  EXPECT_EQ(of(2)->period, 4u);
  EXPECT_EQ(of(2)->since, 1u);
  ASSERT_NE(of(5), found.end());
  EXPECT_EQ(of(5)->pattern, SlowPattern::one_off);
  EXPECT_EQ(of(5)->since, 7u);
  EXPECT_NEAR(of(5)->excess_us, 20'000, 2'000);
}

TEST(Stragglers, TheVerdictNamesTheOneThatIsSlowThroughout) {
  test::RankJob job = job_of(2);
  job.slow_rank = 2;
  job.pausing_rank = 1, job.pausing_step = 3, job.pause_once = 60'000'000;
  const Report report = make_report(test::load_rank_job(job));
  const auto verdict =
      std::find_if(report.verdict.begin(), report.verdict.end(),
                   [](const Verdict& each) { return each.cause == Cause::straggler; });
  ASSERT_NE(verdict, report.verdict.end());
  ASSERT_FALSE(verdict->evidence.empty());
  const auto finding = std::find_if(report.findings.begin(), report.findings.end(), [](auto& each) {
    return finding_row(each.kind).name == "slow_rank";
  });
  ASSERT_NE(finding, report.findings.end());
  EXPECT_EQ(finding->text.find("rank"), 0u) << finding->text;
  EXPECT_EQ(verdict->evidence[0].find("rank 2 waits least"), 0u) << verdict->evidence[0];
  EXPECT_NE(verdict->evidence[0].find("kernels 1.5"), std::string::npos) << verdict->evidence[0];
}

// Rank 1 is slow in most steps; rank 2 waits less in the median step, since it pauses in most.
TEST(Stragglers, TheEvidenceDoesNotSayThatTheSlowRankWaitsLeastWhereAnotherDoes) {
  Report report{};
  for (const double waited : {900.0, 200.0, 100.0}) {
    RankSpeed& speed = report.speeds.emplace_back();
    speed.rank = static_cast<int32_t>(report.speeds.size() - 1);
    speed.waited_median_us = waited;
    speed.collectives = 10;
  }
  report.slow_ranks.push_back({1, SlowPattern::persistent, SlowPart::copies, 4, 10, 0, 300, 1.5});
  Verdict verdict{};
  verdict.cause = Cause::straggler;
  add_evidence(report, verdict);
  ASSERT_EQ(verdict.evidence.size(), 2u);
  EXPECT_EQ(verdict.evidence[0].find("rank 1 is slow (it waits"), 0u) << verdict.evidence[0];
  EXPECT_NE(verdict.evidence[0].find("copies on the GPU 1.50 x the median rank's"),
            std::string::npos)
      << verdict.evidence[0];
  EXPECT_EQ(verdict.evidence[1].find("the others wait up to 900"), 0u) << verdict.evidence[1];

  report.slow_ranks.clear();
  verdict.evidence.clear();
  add_evidence(report, verdict);
  EXPECT_EQ(verdict.evidence[0].find("rank 2 waits least"), 0u) << verdict.evidence[0];
  EXPECT_EQ(verdict.evidence[1].find("the others wait for it up to 900"), 0u);
}

// Its host is slow in every step by some of a step, and in one it pauses for far longer.
TEST(Stragglers, APauseOfTheSlowRankIsNotAmongWhatItsSlownessCosts) {
  const auto saved_us = [](int64_t pause) {
    test::RankJob job = job_of(1);
    job.slow_rank = 3, job.slow = test::Slow::host, job.factor = 8;
    job.pausing_rank = 3, job.pausing_step = 6, job.pause_once = pause;
    const Report report = make_report(test::load_rank_job(job));
    for (const Verdict& verdict : report.verdict) {
      if (verdict.cause != Cause::straggler) continue;
      return verdict.saves_pct * report.step_time.mean_us / 100;
    }
    return 0.0;
  };
  const double without = saved_us(0);
  EXPECT_GT(without, 100);
  for (const int64_t pause : {30'000'000, 100'000'000}) {
    EXPECT_NEAR(saved_us(pause) / without, 1, 0.3) << pause;
  }
}

}  // namespace
}  // namespace gpuprof::analysis
