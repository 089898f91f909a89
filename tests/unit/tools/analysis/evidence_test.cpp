// SPDX-License-Identifier: Apache-2.0
// What causes and findings of waits say beside their figures.
#include "tools/analysis/evidence.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>

#include "tests/unit/support/job_model.h"
#include "tools/analysis/no_verdict.h"
#include "tools/analysis/report.h"

namespace gpuprof {
namespace {

using namespace analysis;
using test::Job;
using test::JobModel;

// The heading has no waits for other ranks, and the evidence says how much of its time they are.
TEST(Evidence, CommunicationSaysWhatItDoesNotCount) {
  const auto evidence = [](const Job& job, double& share, double& exposed) {
    const Report report = make_report(JobModel(job).trace());
    exposed = report.breakdown_pct[static_cast<size_t>(Part::communication)];
    for (const Verdict& verdict : report.verdict) {
      if (verdict.cause != Cause::communication) continue;
      share = verdict.share_pct;
      for (const std::string& line : verdict.evidence) {
        if (line.find("overlaps compute") != std::string::npos) return line;
      }
    }
    return std::string();
  };
  Job job;
  job.ranks = 4;
  job.collective = 900'000;
  job.jitter = 0.5;
  double share = 0, exposed = 0;
  const std::string text = evidence(job, share, exposed);
  const std::string of_which = " % does not, of which ";
  const size_t at = text.find(of_which);
  ASSERT_NE(at, std::string::npos) << text;
  EXPECT_NEAR(std::stod(text.substr(at + of_which.size())), exposed - share, 0.06) << text;
  EXPECT_TRUE(text.ends_with(" % are waits for other ranks, not counted here")) << text;
  job.ranks = 1;
  EXPECT_TRUE(evidence(job, share, exposed).ends_with(" % does not"));
}

// Next to nothing beside the copy that takes most is no evidence, and few bytes are no "0.00 MB".
TEST(Evidence, CopiesThatTakeNextToNothingAreNoEvidence) {
  Report report;
  report.steps.resize(1);
  const auto copy = [](const char* name, uint64_t bytes, double us) {
    CopyRow row{};
    row.name = name, row.count = 1, row.bytes = bytes;
    row.total_us = row.exposed_us = us;
    return row;
  };
  report.tables.copies = {copy("Memcpy DtoH", 8, 4.5), copy("Memcpy HtoD", 1 << 20, 41.5),
                          copy("Memset", 4, 0.5)};
  Verdict verdict{};
  verdict.cause = Cause::transfer;
  add_evidence(report, verdict);
  std::string all;
  for (const std::string& line : verdict.evidence) all += line + "\n";
  EXPECT_NE(all.find("Memcpy HtoD: 1.0 a step, 1.0 MiB each, "), std::string::npos) << all;
  EXPECT_NE(all.find("Memcpy DtoH: 1.0 a step, 8 B each\n"), std::string::npos) << all;
  EXPECT_EQ(all.find("Memset"), std::string::npos) << all;
}

// One second of one rank: work does not differ from step to step, and the rest is not waiting.
TEST(Evidence, RanksThatWaitForAPauseOfOne) {
  Job job;
  job.ranks = 4;
  job.steps = 10;
  job.kernels = 12;
  job.collective = 20'000;
  job.pausing_rank = 1, job.pausing_step = 5, job.pause_once = 300'000'000;
  const Report report = make_report(JobModel(job).trace());
  const auto jitter =
      std::find_if(report.findings.begin(), report.findings.end(),
                   [](const Finding& each) { return each.kind == FindingKind::rank_jitter; });
  ASSERT_NE(jitter, report.findings.end());
  EXPECT_NE(jitter->text.find("they wait for rank 1, 100 % in 1 of 10 steps (step "),
            std::string::npos)
      << jitter->text;
  EXPECT_EQ(jitter->text.find("differs between ranks"), std::string::npos) << jitter->text;
  ASSERT_EQ(report.slow_ranks.size(), 1u);
  std::string all;
  for (const Verdict& verdict : report.verdict) {
    for (const std::string& line : verdict.evidence) all += line + "\n";
  }
  EXPECT_NE(all.find("in 1 of 40 steps (10 on each of 4 ranks)"), std::string::npos) << all;
}

// What ranks wait is in the GPU's time, and not in the rest.
TEST(Evidence, WithoutACauseTheReasonNamesTheRankThatIsWaitedFor) {
  Report report;
  report.gpu_utilization_pct = 76.6;
  report.breakdown_pct[static_cast<size_t>(Part::communication)] = 69.5;
  report.breakdown_pct[static_cast<size_t>(Part::other)] = 22.9;
  SlowRank slow{1, SlowPattern::one_off, SlowPart::host, 15, 1, 0};
  slow.excess_us = 1'000'000, slow.factor = 19358.7;
  report.slow_ranks = {slow};
  const std::string text = nothing_explains(report, 69.1);
  EXPECT_NE(text.find("in 69.1 of these it waits for other ranks in collectives (rank 1: the "
                      "host's own work 1.000 s more than the median rank's, once, in step 15): "),
            std::string::npos)
      << text;
  EXPECT_TRUE(text.ends_with("Most of it is other, what the host does between its calls (22.9 %)"))
      << text;
}

// The kernel counts waits for a processor, whatever records are missing.
TEST(Evidence, WhatIsKnownWithoutAllRecordsIsSaidFirst) {
  Report report;
  report.gpu_utilization_pct = 50.1;
  report.unknown_causes = {Cause::allocation, Cause::host_work};
  report.left_out.unset[static_cast<size_t>(ShedKind::calls)] = true;
  EXPECT_EQ(records_are_missing(report).find(
                "the GPU works for 50.1 % of step time, and what takes the rest is not known: "),
            0u)
      << records_are_missing(report);
  report.no_processor_pct[static_cast<size_t>(Part::synchronization)] = 35.1;
  EXPECT_EQ(records_are_missing(report).find(
                "the GPU works for 50.1 % of step time; for 35.1 % it is idle while a thread that "
                "issues its work has no processor (other programs, or a CPU limit), and what takes "
                "the rest is not known: "),
            0u)
      << records_are_missing(report);
}

}  // namespace
}  // namespace gpuprof
