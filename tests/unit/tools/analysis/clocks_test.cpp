// SPDX-License-Identifier: Apache-2.0
// Clocks of hosts against clocks that are known. CLOCK_SEEDS=100: as many seeds.
#include "tools/analysis/ranks/clocks.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <map>

#include "tests/unit/support/rank_job.h"
#include "tools/analysis/report.h"

namespace gpuprof::analysis {
namespace {

test::RankJob apart(uint64_t seed, int ranks_per_host) {
  test::RankJob job;
  job.ranks = 4, job.ranks_per_host = ranks_per_host;
  job.steps = 6, job.layers = 32, job.forward = 1, job.backward = 2;
  job.offset = 50'000'000;
  job.drift_ppm = 100;
  job.leaving = 20'000;
  job.seed = seed;
  return job;
}

// The largest distance between what two ranks show at the same true moment, us.
double largest_error(const Trace& aligned, const Trace& recorded,
                     const std::vector<test::HostClock>& clocks, int ranks_per_host) {
  // What a rank's clock showed at a moment is in the dump as recorded; what became of it, in the
  // aligned one, at the same event.
  std::vector<std::pair<double, double>> errors;  // of each rank: first and last event
  for (size_t i = 0; i < aligned.processes.size(); ++i) {
    const test::HostClock& clock = clocks[i / static_cast<size_t>(ranks_per_host)];
    const test::HostClock& first = clocks[0];
    const auto error = [&](size_t event) {
      const auto shown =
          static_cast<double>(recorded.processes[i].events.begin_of(event) - test::kEpochNs);
      const double truth = (shown - clock.offset) / (1 + clock.drift);
      const double wanted = truth + first.offset + first.drift * truth;
      return static_cast<double>(aligned.processes[i].events.begin_of(event) - test::kEpochNs) -
             wanted;
    };
    errors.push_back({error(0), error(aligned.processes[i].events.size() - 1)});
  }
  double out = 0;
  for (const auto& [begin, end] : errors) {
    out = std::max({out, std::abs(begin), std::abs(end)});
  }
  return out / 1000;
}

TEST(Clocks, AreAlignedWithinTheStatedError) {
  const char* const wanted = std::getenv("CLOCK_SEEDS");
  const int seeds = wanted ? std::atoi(wanted) : 6;
  for (const int ranks_per_host : {1, 2}) {
    int covered = 0;
    double most = 0, stated = 0;
    for (int seed = 1; seed <= seeds; ++seed) {
      const test::RankJob job = apart(static_cast<uint64_t>(seed), ranks_per_host);
      std::vector<test::HostClock> clocks;
      const Trace recorded = test::load_rank_job(job);
      Trace aligned = test::load_rank_job(job, &clocks);
      const auto said = align_clocks(aligned);
      ASSERT_EQ(said.size(), clocks.size());
      double error = 0;
      for (const HostClock& clock : said) error = std::max(error, clock.error_us);
      const double real = largest_error(aligned, recorded, clocks, ranks_per_host);
      covered += real <= error;
      most = std::max(most, real);
      stated = std::max(stated, error);
      EXPECT_LE(real, 5) << "seed " << seed;
    }
    RecordProperty("largest_error_us_" + std::to_string(ranks_per_host), std::to_string(most));
    RecordProperty("stated_us_" + std::to_string(ranks_per_host), std::to_string(stated));
    RecordProperty("covered_" + std::to_string(ranks_per_host), covered);
    std::printf(
        "%d ranks a host: largest error %.2f us, largest stated %.2f us, covered %d of %d\n",
        ranks_per_host, most, stated, covered, seeds);
    EXPECT_GE(covered * 100, seeds * 95);
  }
}

TEST(Clocks, OfOneHostStayAsTheyAre) {
  test::RankJob job = apart(1, 4);
  Trace trace = test::load_rank_job(job);
  const int64_t begin = trace.processes[0].events.begin_of(0);
  EXPECT_TRUE(align_clocks(trace).empty());
  EXPECT_EQ(trace.processes[0].events.begin_of(0), begin);
  EXPECT_TRUE(clocks_of(trace).empty());
}

TEST(Clocks, KeepWhatBelongsTogetherAndStateTheErrorInTheReport) {
  const test::RankJob job = apart(3, 1);
  const Trace before = test::load_rank_job(job);
  Trace trace = test::load_rank_job(job);
  for (Process& process : trace.processes) {
    process.budget.left_out = {{ShedKind::calls, process.steps[1].begin, 1}};
    process.budget.since = process.steps[1].begin, process.budget.until = process.steps[1].end;
  }
  align_clocks(trace);
  EXPECT_TRUE(align_clocks(trace).empty()) << "once";
  for (size_t i = 0; i < trace.processes.size(); ++i) {
    const Process &was = before.processes[i], &is = trace.processes[i];
    ASSERT_EQ(is.events.size(), was.events.size());
    for (size_t event = 0; event < is.events.size(); ++event) {
      ASSERT_EQ(is.events.partner_of(event), was.events.partner_of(event));
      ASSERT_EQ(is.events.shape_of(event), was.events.shape_of(event));
      ASSERT_EQ(is.events.correlation_of(event), was.events.correlation_of(event));
      ASSERT_EQ(is.events.extra_of(event), was.events.extra_of(event));
      ASSERT_NEAR(static_cast<double>(is.events.end_of(event) - is.events.begin_of(event)),
                  static_cast<double>(was.events.end_of(event) - was.events.begin_of(event)), 2e4);
    }
    EXPECT_EQ(is.steps.size(), was.steps.size());
    EXPECT_EQ(is.budget.left_out[0].since, is.steps[1].begin);
    EXPECT_EQ(is.budget.since, is.steps[1].begin);
    EXPECT_EQ(is.budget.until, is.steps[1].end);
    EXPECT_EQ(is.monotonic(is.window_begin), was.monotonic(was.window_begin));
  }
  const Report report = make_report(trace);
  const auto said = std::find_if(report.findings.begin(), report.findings.end(), [](auto& finding) {
    return finding.kind == FindingKind::host_clocks;
  });
  ASSERT_NE(said, report.findings.end());
  EXPECT_NE(said->text.find("the clocks of 4 hosts are aligned"), std::string::npos) << said->text;
}

TEST(Clocks, SayTheLargestCorrectionInItsUnit) {
  for (const auto& [us, text] :
       {std::pair(-0.00003, "+0.0 us"), std::pair(0.26, "+0.3 us"), std::pair(-812.0, "-812.0 us"),
        std::pair(49545.1, "+49.545 ms")}) {
    HostClock clock;
    clock.host = "b", clock.offset_us = us, clock.collectives = 60;
    const std::string said = describe_clocks({HostClock{.host = "a", .first = true}, clock});
    EXPECT_NE(said.find(std::string("(largest correction: b, ") + text + ")"), std::string::npos)
        << said;
  }
}

TEST(Clocks, SayWhereNothingIsInCommon) {
  test::RankJob job = apart(1, 2);
  job.ranks = 2, job.ranks_per_host = 1;
  job.layers = 0;  // no collective
  Trace trace = test::load_rank_job(job);
  const std::string text = describe_clocks(align_clocks(trace));
  EXPECT_NE(text.find("no collective in common"), std::string::npos) << text;
}

}  // namespace
}  // namespace gpuprof::analysis
