// SPDX-License-Identifier: Apache-2.0
// The report against jobs whose truth is computed: each cause strong, middling and weak, in pairs,
// on one rank and four.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <ostream>
#include <string>
#include <vector>

#include "tests/unit/support/job_model.h"
#include "tools/analysis/report.h"

namespace gpuprof {
namespace {

using namespace analysis;
using test::Job;
using test::JobModel;

struct Scenario {
  std::string name;
  Job job;
  Cause cause;  // what must come first
  Job without;  // the same job, that cause taken away
};

void PrintTo(const Scenario& scenario, std::ostream* out) { *out << scenario.name; }

void set(std::vector<Scenario>& out, const std::string& name, Job job, Cause cause,
         const std::function<void(Job&)>& fix) {
  Job without = job;
  fix(without);
  out.push_back({name, job, cause, without});
}

// Strengths in per cent of the step that the cause is about to take.
std::vector<Scenario> scenarios() {
  std::vector<Scenario> out;
  uint64_t seed = 0;
  for (const int ranks : {1, 2, 4}) {
    for (const int pct : {8, 20, 50}) {
      Job job;
      job.ranks = ranks;
      job.seed = ++seed;
      if (ranks > 1) job.collective = 20'000;
      const int64_t base = job.kernels * job.kernel;
      const int64_t extra = base * pct / (100 - pct);
      const auto name = [&](const char* what) {
        return std::string(what) + "_" + std::to_string(pct) + "_ranks_" + std::to_string(ranks);
      };
      Job one = job;
      one.data = extra;
      set(out, name("data_loading"), one, Cause::data_loading, [](Job& j) { j.data = 0; });
      one = job;
      one.collective = extra / 4;
      set(out, name("communication"), one, Cause::communication, [](Job& j) { j.collective = 0; });
      one = job;
      one.logging = extra;
      if (extra > 1'000'000) {  // shorter stretches are the issuing of work
        set(out, name("host_work"), one, Cause::host_work, [](Job& j) { j.logging = 0; });
      }
      one = job;
      one.copy = extra;
      set(out, name("transfer_pinned"), one, Cause::transfer, [](Job& j) { j.copy = 0; });
      one.blocking_copy = true;
      set(out, name("transfer_pageable"), one, Cause::transfer, [](Job& j) { j.copy = 0; });
      one = job;
      one.allocations = 40;
      one.allocation = extra / 80;
      set(out, name("allocation"), one, Cause::allocation, [](Job& j) { j.allocations = 0; });
      one = job;
      one.after_sync = std::min<int64_t>(extra, 900'000);
      one.kernels = static_cast<int>(24 * one.after_sync / extra) / 6 * 6 + 6;
      set(out, name("synchronization"), one, Cause::synchronization,
          [](Job& j) { j.sync_every = 1'000'000; });
      one = job;
      one.kernel = 10'000;
      one.kernels = 150;
      if (ranks > 1) one.collective = 1'000;
      one.pause = 100 * one.kernel / (100 - pct) - one.issue;
      set(out, name("kernel_launch"), one, Cause::kernel_launch, [](Job& j) {
        j.pause = 0;
        j.issue = 10;
      });
      // A module that is loaded at its first use, or a lock of the driver's, while the GPU still
      // has work for some time.
      one = job;
      one.stalled_kernel = 6;
      one.stall = extra + one.stalled_kernel * one.kernel;
      set(out, name("stalled_launch"), one, Cause::kernel_launch, [](Job& j) { j.stall = 0; });
      if (ranks > 1) {
        one = job;
        one.slow_rank = ranks / 2;
        one.slow = 100.0 / (100 - pct);
        set(out, name("straggler"), one, Cause::straggler, [](Job& j) { j.slow = 1; });
      }
    }
  }
  return out;
}

// Pairs of causes, the stronger one named.
std::vector<Scenario> pairs() {
  std::vector<Scenario> out;
  uint64_t seed = 100;
  for (const int ranks : {1, 2, 4}) {
    Job job;
    job.ranks = ranks;
    job.seed = ++seed;
    if (ranks > 1) job.collective = 20'000;
    const std::string end = "_ranks_" + std::to_string(ranks);
    Job one = job;
    one.data = 3'000'000;
    one.collective = 300'000;
    set(out, "data_over_communication" + end, one, Cause::data_loading, [](Job& j) { j.data = 0; });
    one.data = 600'000;
    one.collective = 800'000;
    set(out, "communication_over_data" + end, one, Cause::communication,
        [](Job& j) { j.collective = 0; });
    one = job;
    one.copy = 2'000'000;
    one.data = 700'000;
    set(out, "transfer_over_data" + end, one, Cause::transfer, [](Job& j) { j.copy = 0; });
    one = job;
    one.data = 2'500'000;
    one.copy = 600'000;
    one.blocking_copy = true;
    set(out, "data_over_pageable" + end, one, Cause::data_loading, [](Job& j) { j.data = 0; });
    one = job;
    one.allocations = 40;
    one.allocation = 40'000;
    one.data = 500'000;
    set(out, "allocation_over_data" + end, one, Cause::allocation,
        [](Job& j) { j.allocations = 0; });
    one = job;
    one.overlap = true;
    one.collective = 900'000;
    one.data = 2'500'000;
    set(out, "data_over_overlapped" + end, one, Cause::data_loading, [](Job& j) { j.data = 0; });
    one = job;
    one.logging = 1'500'000;
    one.data = 3'000'000;
    set(out, "data_over_logging" + end, one, Cause::data_loading, [](Job& j) { j.data = 0; });
    one = job;
    one.overlap = true;
    one.collective = 600'000;
    one.stalled_kernel = 6;  // returns as the first collective is over, by chance
    one.stall = one.stalled_kernel * one.kernel + one.collective - 43'000;
    set(out, "overlapped_beside_stalled" + end, one, Cause::communication,
        [](Job& j) { j.collective = 0; });
    one = job;
    one.kernel = 10'000;
    one.kernels = 96;
    one.pause = 12'000;
    one.stacks = 20'000;
    if (ranks > 1) one.collective = 1'000;
    set(out, "launches_with_stacks" + end, one, Cause::kernel_launch, [](Job& j) {
      j.pause = 0;
      j.issue = 10;
    });
    one = job;
    one.sync_every = 4;
    one.data = 8'000'000;
    set(out, "loader_bound_without_syncs" + end, one, Cause::data_loading,
        [](Job& j) { j.data = 0; });
  }
  return out;
}

std::vector<Scenario> healthy() {
  std::vector<Scenario> out;
  Job profiled;  // what takes time is the profiler's
  profiled.profiling = 1'000'000;
  out.push_back({"profiled", profiled, Cause::compute, profiled});
  Job ahead;  // the host is far ahead of the GPU when the window begins
  ahead.steps = 16;
  ahead.sync_every = 7;
  ahead.unrecorded = 4;
  out.push_back({"host_far_ahead", ahead, Cause::compute, ahead});
  // Work issued before the window, by calls that are not in it, ends in its first step.
  Job orphans = ahead;
  orphans.sync_every = 3;
  orphans.late_work = true;
  orphans.data = 8'000'000;
  Job without = orphans;
  without.data = 0;
  out.push_back({"loader_bound_with_work_of_before", orphans, Cause::data_loading, without});
  for (const int ranks : {1, 2, 4}) {
    for (const int sync_every : {1, 3}) {
      for (uint64_t seed = 1; seed <= 2; ++seed) {
        Job job;
        job.ranks = ranks;
        job.sync_every = sync_every;
        job.seed = seed;
        if (ranks > 1) job.collective = 10'000;
        if (seed == 2) job.copy = 20'000;
        const std::string name = "healthy_ranks_" + std::to_string(ranks) + "_sync_" +
                                 std::to_string(sync_every) + "_seed_" + std::to_string(seed);
        out.push_back({name, job, Cause::compute, job});
      }
    }
  }
  return out;
}

void expect_breakdown(const Report& report, const test::JobTruth& truth) {
  for (size_t i = 0; i < kParts; ++i) {
    EXPECT_NEAR(report.breakdown_pct[i], truth.pct[i], 2)
        << part_name(static_cast<Part>(i)) << " of the " << report.unit();
  }
}

class KnownCauses : public testing::TestWithParam<Scenario> {};

TEST_P(KnownCauses, FirstCauseShareAndSaving) {
  const Scenario& scenario = GetParam();
  JobModel model(scenario.job);
  const Report report = make_report(model.trace());
  const test::JobTruth truth = model.truth();
  expect_breakdown(report, truth);
  ASSERT_FALSE(report.verdict.empty()) << report.reason;
  EXPECT_EQ(cause_name(report.verdict[0].cause), cause_name(scenario.cause));
  EXPECT_FALSE(report.verdict[0].evidence.empty());
  const double without = JobModel(scenario.without).truth().step_ns;
  const double saved = 100 * (truth.step_ns - without) / truth.step_ns;
  EXPECT_NEAR(report.verdict[0].saves_pct, saved, 5);
  RecordProperty("saving_is_off", std::to_string(report.verdict[0].saves_pct - saved));
  EXPECT_LT(report.replay_error_pct, 1);
}

// Without steps: the same of the window as a whole.
TEST_P(KnownCauses, AsAWhole) {
  Scenario scenario = GetParam();
  for (Job* const job : {&scenario.job, &scenario.without}) {
    job->marked = false;
    job->one_off = true;
    job->tail = 0;
  }
  JobModel model(scenario.job);
  const Report report = make_report(model.trace());
  ASSERT_TRUE(report.whole_windows);
  ASSERT_EQ(report.steps.size(), static_cast<size_t>(scenario.job.ranks));
  const test::JobTruth truth = model.truth();
  expect_breakdown(report, truth);
  ASSERT_FALSE(report.verdict.empty()) << report.reason;
  EXPECT_EQ(cause_name(report.verdict[0].cause), cause_name(scenario.cause));
  const double without = JobModel(scenario.without).truth().step_ns;
  EXPECT_NEAR(report.verdict[0].saves_pct, 100 * (truth.step_ns - without) / truth.step_ns, 5);
  EXPECT_LT(report.verdict[0].confidence, 0.7);
  EXPECT_TRUE(std::any_of(
      report.findings.begin(), report.findings.end(),
      [](const Finding& finding) { return finding.kind == FindingKind::whole_windows; }));
}

// Four programs as busy as the rank on each rank's processor: the first cause is the same, or that
// the machine was busy, and then the next one is the same. A healthy job has no other; a weak cause
// may be too little beside what the machine costs.
TEST_P(KnownCauses, OnABusyMachine) {
  Job job = GetParam().job;
  job.steps = 40;
  job.queue = 4 * job.slice;
  const Report report = make_report(JobModel(job).trace());
  ASSERT_FALSE(report.verdict.empty()) << report.reason;
  const bool busy = report.verdict[0].cause == Cause::machine_busy;
  const bool healthy = GetParam().cause == Cause::compute;
  const bool weak = GetParam().name.find("_8_ranks") != std::string::npos;
  if (busy && (healthy || weak) && report.verdict.size() == 1) return;
  ASSERT_GT(report.verdict.size(), size_t{busy});
  EXPECT_EQ(cause_name(report.verdict[busy].cause), cause_name(GetParam().cause));
}

// The profiler's part of a stretch would be the larger one.
TEST(KnownCauses, OwnWorkBesideTheProfilers) {
  for (const int ranks : {1, 2, 4}) {
    Job job;
    job.ranks = ranks;
    if (ranks > 1) job.collective = 20'000;
    job.logging = 3'000'000;
    job.profiling = 4'000'000;
    job.stacks = 15'000;
    JobModel model(job);
    const Report report = make_report(model.trace());
    const test::JobTruth truth = model.truth();
    expect_breakdown(report, truth);
    ASSERT_FALSE(report.verdict.empty()) << report.reason;
    EXPECT_EQ(cause_name(report.verdict[0].cause), cause_name(Cause::host_work));
    job.logging = 0;
    const double without = JobModel(job).truth().step_ns;
    EXPECT_NEAR(report.verdict[0].saves_pct, 100 * (truth.step_ns - without) / truth.step_ns, 5);
  }
}

// What the profiler took is in no cause; from 2 % on it is said.
TEST(KnownCauses, TheProfilersTimeIsSaid) {
  for (const int64_t profiling : {0, 60'000, 3'000'000}) {
    Job job;
    job.profiling = profiling;
    job.stacks = profiling / 100;
    const Report report = make_report(JobModel(job).trace());
    const double share = report.breakdown_pct[static_cast<size_t>(Part::profiler)];
    const auto found =
        std::find_if(report.findings.begin(), report.findings.end(),
                     [](const Finding& each) { return each.kind == FindingKind::profiler_time; });
    ASSERT_EQ(found != report.findings.end(), share >= 2) << profiling;
    if (share < 2) continue;
    EXPECT_DOUBLE_EQ(found->value, share);
    EXPECT_NE(found->text.find("Step Mark"), std::string::npos) << found->text;
    ASSERT_EQ(report.verdict.size(), 1u);
    EXPECT_EQ(report.verdict[0].cause, Cause::compute);
  }
}

// That its thread had no processor is the machine's time, and not the profiler's.
TEST(KnownCauses, TheProfilersTimeIsWithoutWaitsForAProcessor) {
  Job job;
  job.steps = 40;
  job.profiling = 3'000'000;
  job.queue = 4 * job.slice;
  const Report report = make_report(JobModel(job).trace());
  constexpr auto kPart = static_cast<size_t>(Part::profiler);
  ASSERT_GT(report.no_processor_pct[kPart], 2);
  const double own = report.breakdown_pct[kPart] - report.no_processor_pct[kPart];
  for (const Finding& each : report.findings) {
    if (each.kind == FindingKind::profiler_time) {
      EXPECT_DOUBLE_EQ(each.value, own);
    }
  }
}

// Kernels of one stream run beside no other work, and are not made shorter by the host.
TEST(KnownCauses, OneStreamsWorkIsNotHiddenBesideOther) {
  for (const int64_t queue : {0, 12'000'000}) {
    Job job;
    job.steps = 40;
    job.kernels = 150;
    job.kernel = 3'000;
    job.pause = 20'000;
    job.queue = queue;
    const Report report = make_report(JobModel(job).trace());
    ASSERT_FALSE(report.verdict.empty()) << report.reason;
    for (const Verdict& verdict : report.verdict) {
      EXPECT_LE(verdict.saves_pct, 100 - report.breakdown_pct[0] + 1) << cause_name(verdict.cause);
      for (const std::string& line : verdict.evidence) {
        EXPECT_EQ(line.find("beside other work"), std::string::npos) << line;
      }
    }
  }
}

TEST(KnownCauses, SmallKernelsAreOnlyToBeFusedWhereThereAreAny) {
  for (const int kernel : {5'000, 30'000}) {
    Job job;
    job.kernel = kernel;
    job.kernels = 150;
    job.pause = 2 * job.kernel;
    const Report report = make_report(JobModel(job).trace());
    ASSERT_FALSE(report.verdict.empty());
    EXPECT_EQ(report.verdict[0].cause, Cause::kernel_launch);
    const bool fuse = report.verdict[0].advice.find("small kernels") != std::string::npos;
    EXPECT_EQ(fuse, kernel < 10'000) << report.tables.tiny_kernels_pct;
  }
}

TEST(KnownCauses, PinnedMemoryIsOnlyAdvisedWhereCopiesHaveNone) {
  for (const bool blocking : {false, true}) {
    Job job;
    job.copy = 3'000'000;
    job.blocking_copy = blocking;
    const Report report = make_report(JobModel(job).trace());
    const auto found =
        std::find_if(report.verdict.begin(), report.verdict.end(),
                     [](const Verdict& each) { return each.cause == Cause::transfer; });
    ASSERT_NE(found, report.verdict.end()) << blocking;
    EXPECT_EQ(found->advice.starts_with("Copy from pinned memory with non_blocking=True on"),
              blocking)
        << found->advice;
    EXPECT_EQ(found->advice.starts_with("These copies are of pinned memory and do not block: "),
              !blocking)
        << found->advice;
    EXPECT_NE(found->advice.find("one batch ahead; keep on the GPU what is"), std::string::npos);
  }
}

// A small cause beside a GPU that is busy does not pass for what a step is long for.
TEST(KnownCauses, WhatLimitsBeyondASmallCauseIsSaid) {
  for (const int idle_pct : {4, 40}) {
    Job job;
    job.kernel = 10'000;
    job.kernels = 150;
    job.pause = 100 * job.kernel / (100 - idle_pct) - job.issue;
    const Report report = make_report(JobModel(job).trace());
    ASSERT_EQ(report.verdict.size(), 1u) << idle_pct;
    EXPECT_EQ(report.verdict[0].cause, Cause::kernel_launch);
    const std::string said =
        fmt::format("beyond this the GPU's own work is the limit: compute is {:.1f} % of step time",
                    report.breakdown_pct[0]);
    EXPECT_EQ(report.verdict[0].evidence.back() == said, idle_pct < 20) << idle_pct;
  }
}

std::string name_of(const testing::TestParamInfo<Scenario>& info) { return info.param.name; }

INSTANTIATE_TEST_SUITE_P(Single, KnownCauses, testing::ValuesIn(scenarios()), name_of);
INSTANTIATE_TEST_SUITE_P(Pairs, KnownCauses, testing::ValuesIn(pairs()), name_of);
INSTANTIATE_TEST_SUITE_P(Healthy, KnownCauses, testing::ValuesIn(healthy()), name_of);

}  // namespace
}  // namespace gpuprof
