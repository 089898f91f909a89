// SPDX-License-Identifier: Apache-2.0
// The report against jobs whose truth is computed: each cause strong, middling and weak, in pairs,
// on one rank and four.
#include "tools/analysis/report.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <ostream>
#include <string>
#include <vector>

#include "tests/unit/job_model.h"
#include "tools/report/report_json.h"

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
  for (const int ranks : {1, 4}) {
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
        one.slow_rank = 2;
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
  for (const int ranks : {1, 4}) {
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
    one.sync_every = 4;
    one.data = 8'000'000;
    set(out, "loader_bound_without_syncs" + end, one, Cause::data_loading,
        [](Job& j) { j.data = 0; });
  }
  return out;
}

std::vector<Scenario> healthy() {
  std::vector<Scenario> out;
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
  for (const int ranks : {1, 4}) {
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

bool has_finding(const Report& report, const std::string& kind) {
  return std::any_of(report.findings.begin(), report.findings.end(),
                     [&](const Finding& finding) { return finding.kind == kind; });
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
  EXPECT_NEAR(report.verdict[0].saves_pct, 100 * (truth.step_ns - without) / truth.step_ns, 5);
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
  EXPECT_TRUE(std::any_of(report.findings.begin(), report.findings.end(),
                          [](const Finding& finding) { return finding.kind == "whole_windows"; }));
}

std::string name_of(const testing::TestParamInfo<Scenario>& info) { return info.param.name; }

INSTANTIATE_TEST_SUITE_P(Single, KnownCauses, testing::ValuesIn(scenarios()), name_of);
INSTANTIATE_TEST_SUITE_P(Pairs, KnownCauses, testing::ValuesIn(pairs()), name_of);
INSTANTIATE_TEST_SUITE_P(Healthy, KnownCauses, testing::ValuesIn(healthy()), name_of);

TEST(ReportTest, TablesAloneAreThoseOfTheWholeReport) {
  Job job;
  job.ranks = 2;
  job.data = 500'000;
  job.copy = 40'000;
  job.collective = 100'000;
  job.allocations = 2;
  JobModel model(job);
  const Trace trace = model.trace();
  const Json all = report_json(make_report(trace));
  const Json tables = report_json(make_report(trace, Depth::tables));
  EXPECT_FALSE(all["tables_only"].get<bool>());
  EXPECT_TRUE(tables["tables_only"].get<bool>());
  for (const char* table :
       {"program", "ranks", "step_time_us", "kernels", "kernel_families", "operators", "modules",
        "places", "memory_owners", "collectives", "copies", "synchronizations", "allocations",
        "launches", "memory", "curves", "losses", "overhead"}) {
    EXPECT_EQ(tables[table], all[table]) << table;
  }
  EXPECT_FALSE(tables["kernels"].empty() || tables["copies"].empty());
  EXPECT_EQ(tables["gpu"]["tensor_core_pct"], all["gpu"]["tensor_core_pct"]);
  ASSERT_EQ(tables["steps"].size(), all["steps"].size());
  for (size_t i = 0; i < all["steps"].size(); ++i) {
    EXPECT_EQ(tables["steps"][i]["duration_us"], all["steps"][i]["duration_us"]);
    EXPECT_FALSE(tables["steps"][i].contains("parts_us"));
  }
  // What was not computed is not there, rather than 0.
  for (const char* absent : {"breakdown_pct", "overlapped_pct", "device_idle_pct", "verdict",
                             "reason", "stragglers", "host_samples", "replay_error_pct"}) {
    EXPECT_TRUE(all.contains(absent)) << absent;
    EXPECT_FALSE(tables.contains(absent)) << absent;
  }
  EXPECT_FALSE(tables["gpu"].contains("utilization_pct"));
}

// Steps that nobody marked.
TEST(ReportTest, FoundStepsMustBeTheSameOnAllRanks) {
  Job job;
  job.ranks = 4;
  job.steps = 40;
  job.collective = 300'000;
  const Report marked = make_report(JobModel(job).trace());
  job.marked = false;
  const Report found = make_report(JobModel(job).trace());
  ASSERT_FALSE(found.verdict.empty()) << found.reason;
  EXPECT_EQ(found.verdict[0].cause, marked.verdict[0].cause);
  EXPECT_EQ(found.findings.back().kind, "steps_found");
  EXPECT_NEAR(found.verdict[0].confidence,
              marked.verdict[0].confidence * found.findings.back().value, 0.05);
  job.late_rank = 2;
  const Report differs = make_report(JobModel(job).trace());
  // What has no steps that can be compared is looked at as a whole.
  ASSERT_TRUE(differs.whole_windows);
  EXPECT_EQ(differs.steps.size(), 4u);
  EXPECT_EQ(differs.verdict.at(0).cause, marked.verdict[0].cause);
  EXPECT_NEAR(differs.verdict[0].saves_pct, marked.verdict[0].saves_pct, 3);
  EXPECT_LT(differs.replay_error_pct, 0.5);  // that rank's first collective is the others' second
  ASSERT_EQ(differs.findings.back().kind, "whole_windows");
  EXPECT_NE(differs.findings.back().text.find("on some ranks than on others"), std::string::npos);
}

// Windows without steps begin with other collectives on each rank, and are of other lengths.
TEST(ReportTest, RanksAreComparedByTimeWhereThereAreNoSteps) {
  Job job;
  job.ranks = 4;
  job.steps = 60;
  job.collective = 20'000;
  job.slow_rank = 2;
  job.slow = 3;
  job.marked = false;
  job.one_off = true;
  job.late_by = 30;  // 120 collectives
  for (const int late : {0, 1, 3}) {
    job.late_rank = late;
    const Report report = make_report(JobModel(job).trace());
    ASSERT_TRUE(report.whole_windows);
    ASSERT_EQ(report.speeds.size(), 4u);
    for (const RankSpeed& speed : report.speeds) {
      EXPECT_EQ(speed.collectives, speed.rank == late ? 120u : 240u) << speed.rank;
      EXPECT_NEAR(speed.compute, speed.rank == 2 ? 3 : 1, 0.05) << speed.rank;
    }
    ASSERT_FALSE(report.verdict.empty()) << report.reason;
    EXPECT_EQ(cause_name(report.verdict[0].cause), "straggler");
    EXPECT_EQ(report.verdict[0].evidence.at(0).substr(0, 6), "rank 2");
  }
}

// 60 % compute, 25 % in the DataLoader, 15 % exposed NCCL.
TEST(ReportTest, WorkedExample) {
  Job job;
  job.kernels = 30;
  job.kernel = 200'000;
  job.data = 2'541'000;
  job.collective = 305'000;
  job.after_sync = 1'000;
  const Report report = make_report(JobModel(job).trace());
  EXPECT_NEAR(report.breakdown_pct[static_cast<size_t>(Part::compute)], 60, 2);
  EXPECT_NEAR(report.breakdown_pct[static_cast<size_t>(Part::data_loading)], 25, 2);
  EXPECT_NEAR(report.breakdown_pct[static_cast<size_t>(Part::communication)], 15, 2);
  ASSERT_GE(report.verdict.size(), 2u);
  EXPECT_EQ(report.verdict[0].cause, Cause::data_loading);
  EXPECT_EQ(report.verdict[1].cause, Cause::communication);
}

TEST(ReportTest, PartsSumUpToEachStep) {
  Job job;
  job.data = 700'000;
  job.collective = 100'000;
  job.overlap = true;
  job.ranks = 2;
  const Report report = make_report(JobModel(job).trace());
  ASSERT_EQ(report.steps.size(), 24u);
  for (const StepRow& row : report.steps) {
    int64_t sum = 0;
    for (const int64_t part : row.anatomy.parts) sum += part;
    EXPECT_EQ(sum, row.anatomy.end - row.anatomy.begin) << "step " << row.anatomy.step;
  }
}

TEST(ReportTest, NoGuessFromTooLittle) {
  Job job;
  job.steps = 1;
  Report report = make_report(JobModel(job).trace());
  EXPECT_TRUE(report.verdict.empty());
  EXPECT_NE(report.reason.find("one step"), std::string::npos) << report.reason;
  report = make_report(Trace());
  EXPECT_TRUE(report.verdict.empty());
  EXPECT_NE(report.reason.find("no step"), std::string::npos) << report.reason;
  job.steps = 5;
  job.kernels = 0;
  job.kernel = 0;
  Trace trace = JobModel(job).trace();
  for (Process& process : trace.processes) {
    for (size_t i = 0; i < process.events.size(); ++i) {
      process.events.set_partner(i, EventIndex::none);
    }
    process.losses[static_cast<size_t>(Loss::cupti_dropped)] = 1000;
  }
  report = make_report(trace);
  EXPECT_TRUE(report.verdict.empty());
  EXPECT_NE(report.reason.find("1000 records were lost"), std::string::npos) << report.reason;
  job = Job();
  trace = JobModel(job).trace();
  trace.processes[0].losses[static_cast<size_t>(Loss::graph_untimed)] = 12;  // one a step
  report = make_report(trace);
  EXPECT_TRUE(report.verdict.empty());
  EXPECT_NE(report.reason.find("graph_untimed"), std::string::npos) << report.reason;
  job.data = 1'000'000;
  job.calls = false;
  report = make_report(JobModel(job).trace());
  EXPECT_TRUE(report.verdict.empty());
  EXPECT_NE(report.reason.find("calls were not recorded"), std::string::npos) << report.reason;
}

TEST(ReportTest, TheSlowRankIsNamed) {
  Job job;
  job.ranks = 4;
  job.collective = 20'000;
  job.slow_rank = 2;
  job.slow = 1.5;
  const Report report = make_report(JobModel(job).trace());
  ASSERT_FALSE(report.verdict.empty());
  ASSERT_EQ(report.verdict[0].cause, Cause::straggler);
  EXPECT_NE(report.verdict[0].evidence[0].find("rank 2"), std::string::npos)
      << report.verdict[0].evidence[0];
  ASSERT_EQ(report.speeds.size(), 4u);
  EXPECT_NEAR(report.speeds[2].compute, 1.5, 0.02);
}

TEST(ReportTest, RanksThatWaitForADifferentOneEachTime) {
  Job job;
  job.ranks = 4;
  job.steps = 40;
  job.collective = 20'000;
  EXPECT_FALSE(has_finding(make_report(JobModel(job).trace()), "rank_jitter"));
  job.jitter = 0.5;
  const Report report = make_report(JobModel(job).trace());
  ASSERT_TRUE(has_finding(report, "rank_jitter"));
  EXPECT_NE(report.verdict[0].cause, Cause::straggler);
  double last_pct = 0;
  for (const RankSpeed& speed : report.speeds) {
    EXPECT_GT(speed.last_pct, 10);
    last_pct += speed.last_pct;
  }
  EXPECT_NEAR(last_pct, 100, 5);  // two may come at once
  job.jitter = 0;
  job.slow_rank = 1;
  job.slow = 1.5;
  EXPECT_FALSE(has_finding(make_report(JobModel(job).trace()), "rank_jitter"));
}

TEST(ReportTest, ACauseOfOneStepIsSaidToBe) {
  Job job;
  job.steps = 20;
  job.data = 3'000'000;
  const auto evidence = [](const Job& of) {
    const Report report = make_report(JobModel(of).trace());
    for (const Verdict& verdict : report.verdict) {
      if (verdict.cause == Cause::data_loading) return verdict.evidence[0];
    }
    return std::string();
  };
  EXPECT_NE(evidence(job).find("; most in step"), std::string::npos) << evidence(job);
  job.late_batch = 11;
  EXPECT_NE(evidence(job).find("in one of 20 steps, step 16: 3.000 ms of"), std::string::npos)
      << evidence(job);
}

// Also of the window's first step, whose work otherwise only says when the second one's began.
TEST(ReportTest, ACauseOfTheFirstStepAlone) {
  for (const int ranks : {1, 2}) {
    Job job;
    job.ranks = ranks;
    if (ranks > 1) job.collective = 20'000;
    job.data = 40'000'000;
    job.late_batch = 0;
    const Report report = make_report(JobModel(job).trace());
    ASSERT_FALSE(report.verdict.empty()) << report.reason;
    const Verdict& first = report.verdict[0];
    EXPECT_EQ(cause_name(first.cause), "data_loading");
    EXPECT_GT(first.share_pct, 30);
    EXPECT_NEAR(first.saves_pct, first.share_pct, 1);
    EXPECT_LT(report.replay_error_pct, 0.5);
  }
}

TEST(ReportTest, ASavingBeyondTheShareIsExplained) {
  Job job;
  job.kernels = 150;
  job.kernel = 10'000;
  job.pause = 20'000;
  job.data = 1'500'000;
  job.sync_every = 1'000'000;
  const Report report = make_report(JobModel(job).trace());
  for (const Verdict& verdict : report.verdict) {
    const bool beyond = verdict.saves_pct >= verdict.share_pct + 2;
    EXPECT_EQ(beyond, verdict.cause == Cause::kernel_launch) << cause_name(verdict.cause);
    const bool said = verdict.evidence.back().find("time of other causes") != std::string::npos;
    EXPECT_EQ(said, beyond) << verdict.evidence.back();
  }
  EXPECT_EQ(report.verdict.size(), 2u);
}

// Work counts for the step that issued it, however far the GPU is behind the host.
TEST(ReportTest, WorkIsThatOfTheStepsThatIssuedIt) {
  for (const bool late_work : {false, true}) {
    Job job;
    job.ranks = 2;
    job.collective = 50'000;
    job.sync_every = 1'000'000;
    job.syncing_rank = 1;
    job.unrecorded = 4;
    job.late_work = late_work;
    const Report report = make_report(JobModel(job).trace());
    std::map<std::string, uint64_t> counts;
    for (const KernelRow& row : report.tables.kernels) counts[row.name] = row.count;
    EXPECT_EQ(counts["norm(float*)"], 2u * 8);
    EXPECT_EQ(counts["softmax(float*)"], 2u * 8 * 6);
    EXPECT_EQ(counts["ncclDevKernel_AllReduce"], 2u * 8 * 4);
    ASSERT_EQ(report.speeds.size(), 2u);
    for (const RankSpeed& rank : report.speeds) EXPECT_NEAR(rank.compute, 1, 0.001);
  }
}

// The GPU is so far behind that all it does in the window was issued before: nothing, or the end of
// it, was recorded.
TEST(ReportTest, AGpuThatRunsWorkOfBeforeIsBusy) {
  for (const int unrecorded : {4, 30}) {
    for (const bool late_work : {false, true}) {
      Job job;
      job.sync_every = 1'000'000;
      job.unrecorded = unrecorded;
      job.steps = unrecorded + 8;
      job.late_work = late_work;
      Trace trace = JobModel(job).trace();
      const Report report = make_report(trace);
      ASSERT_EQ(report.verdict.size(), 1u);
      EXPECT_EQ(report.verdict[0].cause, Cause::compute);
      EXPECT_GT(report.breakdown_pct[0], 98) << unrecorded << late_work;
      EXPECT_EQ(has_finding(report, "work_of_before"), !late_work);
    }
  }
}

// Of work from before the window only what ends in it may be recorded, and it may begin late.
TEST(ReportTest, WorkOfBeforeThatWasIssuedInTheWarmup) {
  Job job;
  job.sync_every = 1'000'000;
  job.unrecorded = 6;
  job.late_work = true;
  job.late_work_from = 5;
  const Report report = make_report(JobModel(job).trace());
  EXPECT_GT(report.breakdown_pct[0], 98);
  EXPECT_TRUE(has_finding(report, "work_of_before"));
}

TEST(ReportTest, StepsOfAFileThatWasCutOffAreLeftOut) {
  Job job;
  job.killed_at = 8;
  Trace trace = JobModel(job).trace();
  trace.processes[0].completeness = Completeness::truncated;
  const Report report = make_report(trace);
  EXPECT_EQ(report.steps.size(), 8u);
  ASSERT_TRUE(has_finding(report, "untimed_steps"));
  EXPECT_NE(report.findings[0].text.find("a file was cut off: up to 4 steps"), std::string::npos);
}

TEST(ReportTest, StepsWithoutAllTheirGpuTimesAreLeftOut) {
  for (const bool recovered : {false, true}) {
    Job job;
    job.overlap = true;  // the communication stream has its times to the end
    job.collective = 50'000;
    job.killed_at = 8;
    Trace trace = JobModel(job).trace();
    trace.processes[0].recovered = recovered;
    const Report report = make_report(trace);
    EXPECT_EQ(report.steps.size(), recovered ? 8u : 12u);
    for (const KernelRow& row : report.tables.kernels) {
      if (row.name == "ncclDevKernel_AllReduce" && recovered) {
        EXPECT_EQ(row.count, 8u * 4);
      }
    }
    const auto found = std::find_if(report.findings.begin(), report.findings.end(),
                                    [](const Finding& f) { return f.kind == "untimed_steps"; });
    ASSERT_EQ(found != report.findings.end(), recovered);
    if (recovered) {
      EXPECT_EQ(found->value, 4);
    }
  }
}

TEST(ReportTest, KilledBeforeAnyTimesIsNotCalledIdle) {
  for (const bool recovered : {false, true}) {
    Job job;
    job.killed_at = 0;
    Trace trace = JobModel(job).trace();
    trace.processes[0].recovered = recovered;
    const Report report = make_report(trace);
    EXPECT_TRUE(report.verdict.empty());
    EXPECT_EQ(report.reason,
              recovered ? "CUPTI gave no GPU times yet: the process was killed or is still running"
                        : "no work on a GPU was recorded");
  }
}

// Killed, but with all times: its last step ends after its last work, as each does.
TEST(ReportTest, StepsOfAKilledProcessWithAllTimesAreKept) {
  Job job;
  job.after_sync = 2'000'000;
  Trace trace = JobModel(job).trace();
  trace.processes[0].recovered = true;
  trace.processes[0].completeness = Completeness::truncated;
  const Report report = make_report(trace);
  EXPECT_EQ(report.steps.size(), 12u);
  EXPECT_FALSE(has_finding(report, "untimed_steps"));
}

TEST(ReportTest, KernelsAreCountedWhole) {
  Job job;
  job.collective = 50'000;
  const Report report = make_report(JobModel(job).trace());
  std::map<std::string, uint64_t> counts;
  for (const KernelRow& row : report.tables.kernels) counts[row.name] = row.count;
  EXPECT_EQ(counts["gemm(float*)"], 12u * 18);  // 24 less 1 norm and 6 softmax, and the optimizer's
  EXPECT_EQ(counts["norm(float*)"], 12u);
  EXPECT_EQ(counts["softmax(float*)"], 12u * 6);
  EXPECT_EQ(counts["ncclDevKernel_AllReduce"], 12u * 4);
}

}  // namespace
}  // namespace gpuprof
