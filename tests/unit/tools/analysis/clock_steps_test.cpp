// SPDX-License-Identifier: Apache-2.0
// Windows of wall time: iterations that the order of work tells, or stretches that are said to be
// such.
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <utility>

#include "tests/unit/support/job_model.h"
#include "tests/unit/support/report_findings.h"
#include "tools/analysis/found_steps.h"
#include "tools/analysis/report.h"
#include "tools/report/report_html.h"
#include "tools/report/report_json.h"
#include "tools/report/report_text.h"

namespace gpuprof {
namespace {

using namespace analysis;
using test::has_finding;
using test::Job;
using test::JobModel;

// In place of a job's steps: so many stretches of its windows.
Trace by_clock(Trace trace, size_t stretches) {
  for (Process& process : trace.processes) {
    const int64_t begin = process.window_begin, length = process.window_end - begin;
    process.step_source = "time:1000";
    process.steps.clear();
    for (size_t i = 0; i < stretches; ++i) {
      const auto at = [&](size_t n) {
        return begin + length * static_cast<int64_t>(n) / static_cast<int64_t>(stretches);
      };
      process.steps.push_back({i, at(i), at(i + 1)});
    }
    process.summary.set_first_step(0);
    process.summary.set_last_step(stretches - 1);
  }
  return trace;
}

TEST(ClockSteps, StepsThatTheOrderOfWorkTellsReplaceStretchesOfWallTime) {
  Job job;
  job.steps = 40;
  job.data = 1'000'000;
  const Report own = make_report(JobModel(job).trace());
  const Report found = make_report(by_clock(JobModel(job).trace(), 5));
  EXPECT_EQ(found.step_source, "period");
  EXPECT_TRUE(has_finding(found, FindingKind::steps_found));
  EXPECT_FALSE(has_finding(found, FindingKind::clock_steps));
  EXPECT_NEAR(found.step_time.median_us, own.step_time.median_us, own.step_time.median_us / 50);
  ASSERT_FALSE(found.verdict.empty()) << found.reason;
  EXPECT_EQ(found.verdict[0].cause, own.verdict[0].cause);
  EXPECT_NEAR(found.verdict[0].saves_pct, own.verdict[0].saves_pct, 2);
}

TEST(ClockSteps, StretchesOfWallTimeAreSaidToBe) {
  Job job;
  job.steps = 40;
  job.data = 1'000'000;
  job.one_off = true;  // no order tells steps
  const Report report = make_report(by_clock(JobModel(job).trace(), 5));
  EXPECT_EQ(report.step_source, "time:1000");
  EXPECT_EQ(report_json(report)["step_source"], "time:1000");
  ASSERT_TRUE(has_finding(report, FindingKind::clock_steps));
  EXPECT_FALSE(has_finding(make_report(JobModel(job).trace()), FindingKind::clock_steps));
  EXPECT_NE(report_text(report, {}).find("Steps 0 to 4 (stretches of wall time, not iterations)"),
            std::string::npos);
  EXPECT_NE(report_html(report_json(report)).find("(stretches of wall time, not iterations)"),
            std::string::npos);
}

// Two windows of one process: iterations of the one and stretches of the other are not comparable.
TEST(ClockSteps, IterationsAndStretchesOfWallTimeAreNotMixed) {
  Job job;
  job.steps = 40;
  Trace trace = by_clock(JobModel(job).trace(), 5);
  EXPECT_EQ(make_report(trace).step_source, "period");
  const Process& busy = trace.processes.front();
  Process quiet;
  quiet.header = busy.header, quiet.summary = busy.summary;
  quiet.has_header = quiet.has_summary = true;
  quiet.completeness = busy.completeness;
  quiet.header.set_window(1);
  quiet.step_source = busy.step_source, quiet.steps = busy.steps;
  quiet.window_begin = busy.window_begin, quiet.window_end = busy.window_end;
  trace.processes.push_back(std::move(quiet));
  const Report report = make_report(trace);
  EXPECT_EQ(report.step_source, "time:1000");
  EXPECT_EQ(report.steps.size(), 10u);
}

}  // namespace
}  // namespace gpuprof
