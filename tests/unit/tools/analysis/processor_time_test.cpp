// SPDX-License-Identifier: Apache-2.0
// What a thread waited for a processor is told from what the program did.
#include "tools/analysis/processor_time.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/unit/support/job_model.h"
#include "tools/analysis/report.h"
#include "tools/analysis/verdict.h"
#include "tools/report/report_json.h"
#include "tools/report/report_text.h"

namespace gpuprof::analysis {
namespace {

constexpr int64_t kMs = 1'000'000;

TEST(ProcessorTime, WaitsLieBetweenReadings) {
  Process process;
  process.processor_waits.push_back({7, {{1000, 50}, {2000, 50}, {3000, 850}, {5000, 850}}});
  const ProcessorTime time(process, 7);
  ASSERT_TRUE(time.known());
  EXPECT_EQ(time.waited(0, 6000), 800);
  EXPECT_EQ(time.waited(1000, 2000), 0);
  EXPECT_EQ(time.waited(2500, 3000), 400);
  EXPECT_EQ(time.waited(2990, 3000), 8);
  EXPECT_EQ(time.reading_before(2500), 2000);
  EXPECT_EQ(time.reading_before(500), 500);
  EXPECT_FALSE(ProcessorTime(process, 8).known());
  EXPECT_EQ(ProcessorTime(process, 8).waited(0, 6000), 0);
}

// In each step the host does something of its own, for `logging`, while the GPU, which takes 5 ms,
// is idle. For `waited` of that time it has no processor.
Trace job(int64_t waited, int64_t logging = 6 * kMs) {
  test::Job job;
  job.logging = logging;
  Trace trace = test::JobModel(job).trace();
  for (Process& process : trace.processes) {
    std::vector<CounterSeries::Point> points;
    uint64_t sum = 0;
    const Lane& lane = process.lanes.front();
    int64_t last = process.window_begin;
    points.push_back({last, sum});
    for (const Event event : process.lane_events(lane)) {
      if (event.begin - last > kMs) {
        points.push_back({last, sum});
        points.push_back({event.begin, sum += static_cast<uint64_t>(waited)});
      }
      last = std::max(last, event.end);
    }
    process.processor_waits.push_back({lane.thread_id, std::move(points)});
  }
  return trace;
}

double share(const Report& report, Cause cause) {
  for (const Verdict& verdict : report.verdict) {
    if (verdict.cause == cause) return verdict.share_pct;
  }
  return 0;
}

TEST(MachineBusy, IsNotBlamedOnTheProgram) {
  const Report alone = make_report(job(0));
  ASSERT_FALSE(alone.verdict.empty()) << alone.reason;
  EXPECT_EQ(alone.verdict[0].cause, Cause::host_work);
  EXPECT_EQ(share(alone, Cause::machine_busy), 0);

  const Report busy = make_report(job(5'700'000));
  ASSERT_FALSE(busy.verdict.empty()) << busy.reason;
  EXPECT_EQ(busy.verdict[0].cause, Cause::machine_busy);
  EXPECT_EQ(share(busy, Cause::host_work), 0);
  const double expected = 100 * 5.7 / (busy.step_time.mean_us / 1000);
  EXPECT_NEAR(busy.verdict[0].share_pct, expected * 11 / 12, 1);  // no call ends the last one
  EXPECT_NEAR(busy.verdict[0].saves_pct, expected, 4);
  EXPECT_NE(busy.verdict[0].evidence.at(0).find("the machine was busy: "), std::string::npos);
}

// One batch that is late, in one of twelve steps.
TEST(MachineBusy, APauseIsThenNoCause) {
  for (const bool busy : {false, true}) {
    test::Job job;
    job.data = 8 * kMs;
    job.late_batch = 6;
    Trace trace = test::JobModel(job).trace();
    Process& process = trace.processes.front();
    const uint32_t thread = process.lanes.front().thread_id;
    const auto length = static_cast<uint64_t>(process.window_end - process.window_begin);
    if (busy) {
      process.processor_waits.push_back(
          {thread, {{process.window_begin, 0}, {process.window_end, length / 12}}});
    }
    const Report report = make_report(trace);
    EXPECT_EQ(share(report, Cause::data_loading) > 0, !busy);
    ASSERT_EQ(report.pauses.size(), size_t{busy});
    if (!busy) continue;
    EXPECT_NE(report_text(report, {}).find("data_loading"), std::string::npos);
    EXPECT_EQ(report.pauses[0].find("data_loading "), 0u);
    EXPECT_NE(report.pauses[0].find(" in 1 of 12 steps"), std::string::npos) << report.pauses[0];
  }
}

// The GPU has work until the host waits for it: each third step it is idle for a batch.
TEST(MachineBusy, ALoaderThatIsLateAgainAndAgainIsStillNamed) {
  test::Job job;
  job.data = 4 * kMs;
  job.sync_every = 3;
  Trace trace = test::JobModel(job).trace();
  Process& process = trace.processes.front();
  const uint32_t thread = process.lanes.front().thread_id;
  const auto length = static_cast<uint64_t>(process.window_end - process.window_begin);
  process.processor_waits.push_back(
      {thread, {{process.window_begin, 0}, {process.window_end, length / 6}}});
  const Report report = make_report(trace);
  ASSERT_EQ(report.verdict.size(), 2u) << report.reason;
  EXPECT_EQ(report.verdict[0].cause, Cause::data_loading);
  EXPECT_GT(report.verdict[0].few_steps, 0u) << "it is steady: this tests nothing";
  EXPECT_EQ(report.verdict[1].cause, Cause::machine_busy);
  EXPECT_TRUE(report.pauses.empty());
}

TEST(MachineBusy, WhatTheProgramDoesBesideItIsStillNamed) {
  const Report report = make_report(job(2 * kMs));
  ASSERT_GE(report.verdict.size(), 2u) << report.reason;
  EXPECT_EQ(report.verdict[0].cause, Cause::host_work);
  EXPECT_EQ(report.verdict[1].cause, Cause::machine_busy);
  EXPECT_NEAR(report.verdict[0].share_pct / report.verdict[1].share_pct, 2, 0.4);
  EXPECT_NEAR(report.verdict[0].saves_pct, report.verdict[0].share_pct, 3) << "waits are not its";
}

// 1.6 ms of a step of 35 ms are 4.6 %, but a fifth of the time in which it had a processor.
TEST(MachineBusy, WhatTheProgramDoesIsMeasuredByTheTimeItHadAProcessor) {
  constexpr int64_t kWaited = 28'800'000;
  Trace trace = job(kWaited, 30 * kMs);
  for (Process& process : trace.processes) {  // no call ends the last step
    std::vector<CounterSeries::Point>& points = process.processor_waits.front().points;
    points.push_back({process.window_end, points.back().value + kWaited});
  }
  const Report report = make_report(trace);
  ASSERT_EQ(report.verdict.size(), 2u) << report.reason;
  EXPECT_EQ(report.verdict[0].cause, Cause::machine_busy);
  EXPECT_EQ(report.verdict[1].cause, Cause::host_work);
  EXPECT_LT(report.verdict[1].share_pct, kHostWorkWorthNamingPct);
}

// No sentence contradicts a number: the text's notes are the shares of the JSON.
TEST(MachineBusy, IsInTheTables) {
  const Report report = make_report(job(3 * kMs));
  const Json json = report_json(report);
  double sum = 0;
  for (const auto& [part, percent] : json["without_processor"]["idle_pct"].items()) {
    EXPECT_LE(percent, json["breakdown_pct"][part]) << part;
    sum += percent.get<double>();
  }
  EXPECT_NEAR(sum, share(report, Cause::machine_busy), 0.1);
  EXPECT_NEAR(json["without_processor"]["us_per_step"].get<double>(), 3000, 300);
  EXPECT_NE(report_text(report, {}).find("% without a processor"), std::string::npos);
}

// What a saving beyond the share is of: calls take their waits for a processor with them, and the
// host does no more beside the GPU than that works.
TEST(MachineBusy, WaitsInsideCallsAreNotTakenForWorkBesideTheGpu) {
  test::Job job;
  job.kernels = 6, job.kernel = 30'000;
  job.allocations = 40, job.allocation = 15'000;
  job.slice = 500'000, job.queue = 1 * kMs;
  const Report report = make_report(test::JobModel(job).trace());
  const auto found =
      std::find_if(report.verdict.begin(), report.verdict.end(),
                   [](const Verdict& verdict) { return verdict.cause == Cause::allocation; });
  ASSERT_NE(found, report.verdict.end()) << report.reason;
  ASSERT_GT(found->saves_pct, found->share_pct + 2 * report.gpu_utilization_pct);
  const double inside = report.no_processor_pct[static_cast<size_t>(Part::allocation)];
  double waits = 0, beside = 0;
  for (const std::string& line : found->evidence) {
    if (line.find("waits for a processor inside these calls") != std::string::npos) {
      waits = std::stod(line);
    }
    if (line.find("while the GPU works") != std::string::npos) beside = std::stod(line);
  }
  EXPECT_GT(waits, found->saves_pct / 4);
  EXPECT_LE(waits, inside + 0.1);
  EXPECT_LE(beside, std::min(report.gpu_utilization_pct, 100 - found->saves_pct) + 0.1);
}

TEST(MachineBusy, IsNotGuessed) {
  test::Job plain;
  plain.logging = 6 * kMs;
  const Report report = make_report(test::JobModel(plain).trace());
  EXPECT_FALSE(report.processor_wait_us);
  EXPECT_FALSE(report_json(report).contains("without_processor"));
  EXPECT_EQ(report.verdict.at(0).cause, Cause::host_work);
}

}  // namespace
}  // namespace gpuprof::analysis
