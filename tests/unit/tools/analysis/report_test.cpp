// SPDX-License-Identifier: Apache-2.0
// The report against jobs whose truth is computed: steps, ranks, evidence, and files that lack
// something. Each cause by itself: known_causes_test.cpp.
#include "tools/analysis/report.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "tests/unit/support/job_model.h"
#include "tests/unit/support/report_findings.h"
#include "tests/unit/support/run_maker.h"
#include "tools/report/report_json.h"

namespace gpuprof {
namespace {

using namespace analysis;
using test::has_finding;
using test::Job;
using test::JobModel;

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
  EXPECT_EQ(found.findings.back().kind, FindingKind::steps_found);
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
  ASSERT_EQ(differs.findings.back().kind, FindingKind::whole_windows);
  EXPECT_NE(differs.findings.back().text.find("on some ranks than on others"), std::string::npos);
}

// As of a server, which waits for requests in between.
TEST(ReportTest, FoundStepsSayHowMuchOfTheWindowTheyAre) {
  const auto text = [](double longer) {
    Job job;
    job.steps = 40;
    job.marked = false;
    Trace trace = JobModel(job).trace();
    Process& process = trace.processes[0];
    const auto length = static_cast<double>(process.window_end - process.window_begin);
    process.window_end = process.window_begin + static_cast<int64_t>(longer * length);
    const Report report = make_report(trace);
    for (const Finding& each : report.findings) {
      if (each.kind == FindingKind::steps_found) return each.text.substr(each.text.find(';'));
    }
    return std::string("no steps");
  };
  EXPECT_EQ(text(1), "; they hold 100 % of it");
  EXPECT_EQ(text(1.1), text(1));
  EXPECT_EQ(text(4), text(1) +
                         ", and 25 % of the window's time: GPU busy, causes and tables "
                         "are of the steps alone");
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

// A server that loads its model, or waits: nothing follows from it for its steps.
TEST(ReportTest, HardlyAnyWorkInWallTimeHasNoCause) {
  Job job;
  job.kernels = 6;
  job.logging = 20'000'000;
  const auto reported = [&](const char* source) {
    Trace trace = JobModel(job).trace();
    for (Process& process : trace.processes) process.step_source = source;
    return make_report(trace);
  };
  for (const bool one_off : {true, false}) {
    job.one_off = one_off;
    const Report clock = reported("time:1000");
    EXPECT_TRUE(clock.verdict.empty());
    EXPECT_EQ(clock.reason.find(one_off ? "steps are stretches of wall time, and the GPU works"
                                        : "steps are not marked, and the GPU works"),
              0u)
        << clock.reason;
    ASSERT_FALSE(clock.whole_windows);
    EXPECT_FALSE(reported("nvtx:step").verdict.empty());
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

// Work without times may be anywhere. What is no work of the GPU's, or is timed as a whole, says
// nothing against a verdict.
TEST(ReportTest, LostGpuWorkLeavesNoVerdict) {
  const auto report = [](Loss loss, uint64_t count) {
    Trace trace = test::load(test::RunMaker(std::vector<uint64_t>(20, 5000), 0, 30).dump());
    trace.processes[0].losses[static_cast<size_t>(loss)] = count;
    return make_report(trace);
  };
  const std::string untimed = report(Loss::event_untimed, 400).reason;
  EXPECT_EQ(untimed.substr(0, untimed.find(",")), "400 records were lost or have no times");
  EXPECT_TRUE(report(Loss::event_untimed, 400).work_lost);
  EXPECT_FALSE(report(Loss::event_captured, 400).work_lost);
  EXPECT_EQ(report(Loss::write_error, 1).reason,
            "parts of the dump could not be written (1, write_error), and what they held is not "
            "known");
  for (const Loss loss : {Loss::event_captured, Loss::cupti_unknown, Loss::sample_torn}) {
    EXPECT_EQ(report(loss, 400).reason, "") << static_cast<int>(loss);
  }
}

// Launches of the window that lack their record are counted, whatever the reason. Other records
// that CUPTI dropped are of no use to it, or of no work of it.
TEST(ReportTest, RecordsThatWereDroppedCountOnceByTheirLaunches) {
  const auto reason = [](uint64_t dropped, uint64_t unfinished, bool graphs, bool killed) {
    test::RunMaker run(std::vector<uint64_t>(20, 5000), 0, 30);
    for (size_t step = 0; graphs && step < run.steps(); ++step) run.add_graph(step, 40, 4000);
    Trace trace = test::load(run.dump());
    Process& process = trace.processes[0];
    process.recovered = killed;
    process.losses[static_cast<size_t>(Loss::cupti_dropped)] = dropped;
    process.losses[static_cast<size_t>(Loss::unfinished_gpu)] = unfinished;
    const std::string text = make_report(trace).reason;
    return text.substr(0, text.find(" or "));
  };
  EXPECT_EQ(reason(1000, 0, false, false), "");
  EXPECT_EQ(reason(1000, 900, false, false), "900 records were lost");
  EXPECT_EQ(reason(1000, 2, true, false), "1002 records were lost") << "a graph's nodes have one";
  EXPECT_EQ(reason(1000, 0, false, true), "1000 records were lost") << "nobody counted launches";
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

// Another rank's pause is longer than all that the slow one costs.
TEST(ReportTest, TheSlowRankIsNamedBesideAPauseOfAnother) {
  constexpr int kJobs = 200;
  int named = 0;
  std::string missed;
  for (int i = 0; i < kJobs; ++i) {
    Job job;
    job.seed = static_cast<uint64_t>(i) + 1;
    job.ranks = 2 + i % 15;
    job.steps = 8 + i % 5;
    job.kernels = 12;
    job.collective = 20'000;
    job.slow_rank = (i * 7) % job.ranks;
    job.slow = 1.05 + 1.45 * (i % 30) / 29;
    job.pausing_rank = (job.slow_rank + 1 + i % (job.ranks - 1)) % job.ranks;
    job.pausing_step = 1 + i % (job.steps - 1);
    job.pause_once = 10'000'000 + 1'000'000 * (i % 40);
    ASSERT_NE(job.pausing_rank, job.slow_rank);
    const Report report = make_report(JobModel(job).trace());
    const std::string wanted = "rank " + std::to_string(job.slow_rank) + " ";
    const bool first = !report.verdict.empty() && report.verdict[0].cause == Cause::straggler &&
                       report.verdict[0].evidence[0].starts_with(wanted);
    named += first;
    if (!first) {
      missed += "\n" + std::to_string(i) + ": " + std::to_string(job.ranks) + " ranks, " +
                std::to_string(job.slow) + (report.verdict.empty() ? report.reason : "");
      for (const Verdict& v : report.verdict) {
        missed += " " + std::string(cause_name(v.cause)) + " " + std::to_string(v.share_pct) + "/" +
                  std::to_string(v.saves_pct);
      }
    }
  }
  EXPECT_GE(named, kJobs * 98 / 100) << missed;
}

// It does not come before a cause of each step, and is said to be of one.
TEST(ReportTest, APauseComesAfterASteadyCause) {
  Job job;
  job.steps = 10;
  job.data = 1'500'000;
  job.pausing_rank = 0;
  job.pausing_step = 4;
  job.pause_once = 60'000'000;
  const Report report = make_report(JobModel(job).trace());
  ASSERT_EQ(report.verdict.size(), 2u);
  EXPECT_EQ(cause_name(report.verdict[0].cause), "data_loading");
  EXPECT_EQ(report.verdict[0].few_steps, 0u);
  const Verdict& pause = report.verdict[1];
  EXPECT_EQ(cause_name(pause.cause), "host_work");
  EXPECT_GT(pause.share_pct, report.verdict[0].share_pct);
  EXPECT_EQ(pause.few_steps, 1u);
  EXPECT_NE(pause.evidence.at(1).find("in 1 of 10 steps: "), std::string::npos)
      << pause.evidence[1];
  EXPECT_LT(pause.confidence, 0.5);
}

TEST(ReportTest, PausesStandByAllThatTheyCost) {
  Job job;
  job.steps = 10;
  job.data = 8'000'000, job.late_batch = 5;
  job.pausing_rank = 0, job.pausing_step = 6, job.pause_once = 40'000'000;
  const Report report = make_report(JobModel(job).trace());
  ASSERT_EQ(report.verdict.size(), 2u) << report.reason;
  EXPECT_EQ(cause_name(report.verdict[0].cause), "host_work");
  EXPECT_GT(report.verdict[0].share_pct, 3 * report.verdict[1].share_pct);
}

TEST(ReportTest, RanksThatWaitForADifferentOneEachTime) {
  Job job;
  job.ranks = 4;
  job.steps = 40;
  job.collective = 20'000;
  EXPECT_FALSE(has_finding(make_report(JobModel(job).trace()), FindingKind::rank_jitter));
  job.jitter = 0.5;
  const Report report = make_report(JobModel(job).trace());
  ASSERT_TRUE(has_finding(report, FindingKind::rank_jitter));
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
  EXPECT_FALSE(has_finding(make_report(JobModel(job).trace()), FindingKind::rank_jitter));
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

// The GPU is so far behind that all it does in the window was issued before. Where nothing of it
// was recorded, nothing is claimed.
TEST(ReportTest, WhatAGpuDidBeforeItsFirstRecordedWorkIsUnknown) {
  for (const int unrecorded : {4, 30}) {
    for (const bool late_work : {false, true}) {
      Job job;
      job.sync_every = 1'000'000;
      job.unrecorded = unrecorded;
      job.steps = unrecorded + 8;
      job.late_work = late_work;
      Trace trace = JobModel(job).trace();
      const Report report = make_report(trace);
      EXPECT_EQ(has_finding(report, FindingKind::work_of_before), !late_work);
      if (late_work) {
        ASSERT_EQ(report.verdict.size(), 1u);
        EXPECT_EQ(report.verdict[0].cause, Cause::compute);
        EXPECT_GT(report.breakdown_pct[0], 98) << unrecorded;
      } else {
        EXPECT_GT(report.unknown_pct(), 98) << unrecorded;
        EXPECT_LT(report.gpu_utilization_pct, 2) << unrecorded;
        EXPECT_TRUE(report.verdict.empty());
        EXPECT_NE(report.reason.find("not known what the GPU did"), std::string::npos)
            << report.reason;
      }
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
  EXPECT_GT(report.breakdown_pct[0] + report.unknown_pct(), 98);
  EXPECT_GT(report.unknown_pct(), 10);
  EXPECT_TRUE(has_finding(report, FindingKind::work_of_before));
}

TEST(ReportTest, StepsOfAFileThatWasCutOffAreLeftOut) {
  Job job;
  job.killed_at = 8;
  Trace trace = JobModel(job).trace();
  trace.processes[0].completeness = Completeness::truncated;
  const Report report = make_report(trace);
  EXPECT_EQ(report.steps.size(), 8u);
  ASSERT_TRUE(has_finding(report, FindingKind::untimed_steps));
  EXPECT_NE(report.findings[0].text.find("a file was cut off: the report leaves out up to 4 steps"),
            std::string::npos);
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
    const auto found =
        std::find_if(report.findings.begin(), report.findings.end(),
                     [](const Finding& f) { return f.kind == FindingKind::untimed_steps; });
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
  EXPECT_FALSE(has_finding(report, FindingKind::untimed_steps));
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
