// SPDX-License-Identifier: Apache-2.0
// A bracket of cudaProfilerStart and Stop with iterations inside: the verdict is the one that the
// same events get by steps of their own.
#include "tools/analysis/nested_steps.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <string>

#include "tests/unit/support/job_model.h"
#include "tools/analysis/report.h"

namespace gpuprof {
namespace {

using namespace analysis;
using test::Job;
using test::JobModel;
using Bracket = Job::Bracket;

const Finding* finding(const Report& report, FindingKind kind) {
  const auto found = std::find_if(report.findings.begin(), report.findings.end(),
                                  [kind](const Finding& each) { return each.kind == kind; });
  return found == report.findings.end() ? nullptr : &*found;
}

std::map<std::string, Job> jobs() {
  std::map<std::string, Job> out;
  for (const int ranks : {1, 4}) {
    Job job;
    job.ranks = ranks;
    job.steps = 14;
    job.kernels = 30;
    if (ranks > 1) job.collective = 20'000;
    const std::string on = "_" + std::to_string(ranks);
    Job one = job;
    one.data = 2'000'000;
    out["data_loading" + on] = one;
    one = job;
    one.allocations = 6;
    one.allocation = 200'000;
    out["allocation" + on] = one;
    one = job;
    one.copy = 2'000'000;
    out["transfer" + on] = one;
    one = job;
    one.issue = 150'000;
    one.kernel = 50'000;
    out["kernel_launch" + on] = one;
    one = job;
    one.logging = 3'000'000;
    out["host" + on] = one;
    out["compute" + on] = job;
    if (ranks == 1) continue;
    one = job;
    one.collective = 900'000;
    out["communication" + on] = one;
    one = job;
    one.slow_rank = 1;
    one.slow = 1.5;
    out["straggler" + on] = one;
  }
  return out;
}

class NestedSteps : public testing::TestWithParam<Bracket> {};

TEST_P(NestedSteps, VerdictIsThatOfOwnSteps) {
  for (auto [name, job] : jobs()) {
    SCOPED_TRACE(name);
    const Report own = make_report(JobModel(job).trace());
    job.bracket = GetParam();
    const Report inside = make_report(JobModel(job).trace());
    ASSERT_FALSE(own.verdict.empty()) << own.reason;
    ASSERT_FALSE(inside.verdict.empty()) << inside.reason;
    EXPECT_EQ(inside.verdict[0].cause, own.verdict[0].cause);
    EXPECT_NEAR(inside.verdict[0].saves_pct, own.verdict[0].saves_pct, 2);
    EXPECT_NEAR(inside.step_time.median_us, own.step_time.median_us, own.step_time.median_us / 50);
    for (size_t i = 0; i < kParts; ++i) {
      EXPECT_NEAR(inside.breakdown_pct[i], own.breakdown_pct[i], 4) << i;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(By, NestedSteps,
                         testing::Values(Bracket::ranges, Bracket::optimizers, Bracket::engine,
                                         Bracket::nothing));

TEST(NestedSteps, SaysWhatMarksThem) {
  Job job;
  job.kernels = 30;
  job.bracket = Bracket::ranges;
  const Report ranges = make_report(JobModel(job).trace());
  ASSERT_TRUE(finding(ranges, FindingKind::nested_steps));
  EXPECT_NE(finding(ranges, FindingKind::nested_steps)->text.find("nvtx:iteration"),
            std::string::npos);
  EXPECT_EQ(ranges.steps.front().anatomy.step, 100u) << "as the ranges are numbered";
  EXPECT_EQ(ranges.steps.size(), 12u);
  job.bracket = Bracket::optimizers;
  const Report optimizers = make_report(JobModel(job).trace());
  ASSERT_TRUE(finding(optimizers, FindingKind::nested_steps));
  EXPECT_NE(finding(optimizers, FindingKind::nested_steps)->text.find("optimizer"),
            std::string::npos);
  job.bracket = Bracket::engine;
  const Report engine = make_report(JobModel(job).trace());
  ASSERT_TRUE(finding(engine, FindingKind::nested_steps));
  EXPECT_NE(finding(engine, FindingKind::nested_steps)->text.find("[Executor] _forward_step*"),
            std::string::npos);
  job.bracket = Bracket::nothing;
  const Report found = make_report(JobModel(job).trace());
  EXPECT_FALSE(finding(found, FindingKind::nested_steps));
  ASSERT_TRUE(finding(found, FindingKind::steps_found));
  EXPECT_NE(finding(found, FindingKind::steps_found)->text.find("cudaProfilerStart"),
            std::string::npos);
  job.bracket = Bracket::no;
  const Report own = make_report(JobModel(job).trace());
  EXPECT_FALSE(finding(own, FindingKind::nested_steps) || finding(own, FindingKind::steps_found));
}

// Of two optimizers the one that steps more rarely ends the steps, as while the program runs.
TEST(NestedSteps, TheRarerOptimizerLeads) {
  Job job;
  job.steps = 18;
  job.bracket = Bracket::two_optimizers;
  const Report report = make_report(JobModel(job).trace());
  EXPECT_EQ(report.steps.size(), 6u);
}

// As DeepSpeed's, Megatron's and those of a model's parts do; and one for each parameter.
TEST(NestedSteps, OptimizersWithoutABackwardPassBetweenEndOneStep) {
  for (const Bracket bracket : {Bracket::optimizer_groups, Bracket::in_backward}) {
    Job job;
    job.steps = 14;
    job.bracket = Bracket::optimizers;
    const Report alone = make_report(JobModel(job).trace());
    job.bracket = bracket;
    const Report report = make_report(JobModel(job).trace());
    EXPECT_EQ(report.steps.size(), alone.steps.size()) << static_cast<int>(bracket);
    EXPECT_NEAR(report.step_time.median_us, alone.step_time.median_us,
                alone.step_time.median_us / 50);
  }
}

// A bracket of one iteration stays one step.
TEST(NestedSteps, OneIterationStaysTheBracket) {
  Job job;
  job.steps = 1;
  for (const Bracket bracket : {Bracket::ranges, Bracket::optimizers, Bracket::nothing}) {
    job.bracket = bracket;
    const Report report = make_report(JobModel(job).trace());
    EXPECT_EQ(report.steps.size(), 1u);
    EXPECT_FALSE(finding(report, FindingKind::nested_steps) ||
                 finding(report, FindingKind::steps_found));
  }
}

}  // namespace
}  // namespace gpuprof
