// SPDX-License-Identifier: Apache-2.0
// The report's page: no text of the program can end its script, become markup, or break its JSON.
#include "tools/report/report_html.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "tests/unit/support/job_model.h"
#include "tools/analysis/report.h"
#include "tools/report/report_json.h"
#include "tools/report/report_text.h"

namespace gpuprof {
namespace {

size_t count_of(const std::string& text, const std::string& part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

Json data_of(const std::string& page) {
  const std::string begin = "<script type=\"application/json\" id=\"report\">";
  const size_t from = page.find(begin) + begin.size();
  return Json::parse(page.substr(from, page.find("</script>", from) - from));
}

TEST(ReportHtml, HoldsTheReportAndItsVerdict) {
  test::Job job;
  job.data = 2'000'000;
  const Json report = report_json(analysis::make_report(test::JobModel(job).trace()));
  const std::string page = report_html(report);
  EXPECT_EQ(data_of(page), report);
  EXPECT_NE(page.find("data-cause=\"data_loading\""), std::string::npos);
  EXPECT_EQ(page.find("{{"), std::string::npos);
  EXPECT_NE(page.find("The MIT License"), std::string::npos);
}

TEST(ReportHtml, TextsOfTheProgramAreOnlyText) {
  const std::string hostile = "</script><script>x()</script><!-- & \"'{{chart}}\xff\n";
  Json report = report_json(analysis::make_report(test::JobModel(test::Job()).trace()));
  const std::string plain = report_html(report);
  report["program"]["command"] = hostile;
  report["program"]["hosts"] = {hostile};
  report["findings"] = {{{"kind", hostile}, {"text", hostile}, {"value", 1}}};
  report["kernels"][0]["name"] = hostile;
  report["verdict"] = Json::array();
  report["reason"] = hostile;
  const std::string page = report_html(report);
  for (const char* markup : {"<script", "</script", "<!--"}) {
    EXPECT_EQ(count_of(page, markup), count_of(plain, markup)) << markup;
  }
  EXPECT_EQ(data_of(page)["kernels"][0]["name"],
            "</script><script>x()</script><!-- & \"'{{chart}}\xef\xbf\xbd\n");
  EXPECT_EQ(page.find('\xff'), std::string::npos);
}

// One step of a GPU that always works.
analysis::Report healthy_report() {
  analysis::Report report;
  report.ranks = 1;
  report.steps.emplace_back();
  report.gpu_timed = true;
  report.gpu_utilization_pct = report.breakdown_pct[0] = 90;
  analysis::Verdict verdict{};
  verdict.cause = analysis::Cause::compute;
  verdict.share_pct = 90;
  verdict.confidence = 1;
  report.verdict.push_back(verdict);
  return report;
}

std::string page_of(const analysis::Report& report) { return report_html(report_json(report)); }

TEST(ReportHtml, NamesCausesThatAreNotKnownAboveTheVerdict) {
  analysis::Report report = healthy_report();
  EXPECT_EQ(page_of(report).find("it is not known whether"), std::string::npos);
  report.left_out.windows = 1;
  report.left_out.kinds.push_back({ShedKind::calls, 1, "since step 2 <10 ms>"});
  report.unknown_causes = {analysis::Cause::allocation, analysis::Cause::host_work};
  for (const analysis::Cause cause : {analysis::Cause::compute, analysis::Cause::transfer}) {
    report.verdict[0].cause = cause;
    const std::string page = page_of(report);
    const size_t at =
        page.find("<section id=\"verdict\"><h2>Verdict</h2>\n<p id=\"unknown-causes\">");
    ASSERT_NE(at, std::string::npos);
    const std::string text = page.substr(at, page.find("</p>", at) - at);
    EXPECT_NE(text.find("Of these causes it is not known whether they are there, since "
                        "GPUPROF_BUDGET left out "),
              std::string::npos)
        << text;
    EXPECT_NE(text.find("since step 2 &lt;10 ms&gt;"), std::string::npos) << text;
    EXPECT_TRUE(text.ends_with(": allocation, host_work")) << text;
  }
}

TEST(ReportHtml, TheGpuIsBusyForAtLeastWhatWasRecorded) {
  analysis::Report report = healthy_report();
  const std::string known = page_of(report);
  EXPECT_NE(known.find("<b>90.0 %</b><small>of step time, kernels"), std::string::npos);
  EXPECT_EQ(data_of(known)["gpu"]["utilization_is_least"], false);
  const auto expect_least = [&] {
    const std::string page = page_of(report);
    EXPECT_NE(page.find("<b>at least 90.0 %</b><small>of step time, kernels"), std::string::npos);
    EXPECT_EQ(data_of(page)["gpu"]["utilization_is_least"], true);
    EXPECT_NE(report_text(report, TextOptions{}).find("GPU busy at least 90.0 %"),
              std::string::npos);
  };
  report.work_lost = true;
  expect_least();
  report.work_lost = false;
  report.unrecorded = "memcpy";
  expect_least();
}

// The page says of a step's parts, and of the profiler's cost, what the text does.
TEST(ReportHtml, PartsHaveTheNotesOfTheText) {
  analysis::Report report = healthy_report();
  report.tables.launches = 10;
  report.processor_wait_us = 5;
  const auto other = static_cast<size_t>(analysis::Part::other);
  report.breakdown_pct[other] = 10;
  report.no_processor_pct[other] = 4;
  report.device_idle_pct = 2;
  report.own_cost_pct = 0.5;
  std::string page = page_of(report);
  EXPECT_NE(page.find("Other <b>10.0 %</b> <small>40 % without a processor</small></li>"),
            std::string::npos);
  EXPECT_NE(page.find("data-part=\"host_work\">of it host work <b>4.0 %</b>"), std::string::npos);
  EXPECT_NE(page.find("data-part=\"stalled_work\">of it stalled work <b>2.0 %</b>"),
            std::string::npos);
  EXPECT_NE(page.find("0.5 % of the recorded time.</p>"), std::string::npos);
  report.findings.push_back({analysis::FindingKind::slower_recorded, "slower", 8});
  page = page_of(report);
  EXPECT_NE(page.find("0.5 % of the recorded time for records and within CUPTI, more in all"),
            std::string::npos);
}

TEST(ReportHtml, WhatIsNotKnownOfKernelsIsNoFigure) {
  analysis::Report report = healthy_report();
  const std::string without = page_of(report);
  EXPECT_NE(without.find("id=\"step-time\""), std::string::npos);
  for (const char* const id : {"id=\"tensor-cores\"", "id=\"tiny-kernels\""}) {
    EXPECT_EQ(without.find(id), std::string::npos) << id;
  }
  report.tables.kernels.resize(2);
  for (analysis::KernelRow& row : report.tables.kernels) row.count = 1;
  report.tables.kernels[1].occupancy_pct = 50;
  const std::string page = page_of(report);
  for (const char* const id : {"id=\"tensor-cores\"", "id=\"tiny-kernels\""}) {
    EXPECT_NE(page.find(id), std::string::npos) << id;
  }
  EXPECT_TRUE(data_of(page)["kernels"][0]["occupancy_pct"].is_null());
  EXPECT_EQ(data_of(page)["kernels"][1]["occupancy_pct"], 50);
}

TEST(ReportHtml, OfAPipelineItSaysWhatTheTextSays) {
  analysis::Report report = healthy_report();
  report.whole_windows = true;
  report.gpu_timed = false;
  report.verdict[0].cause = analysis::Cause::straggler;
  report.verdict[0].share_pct = report.verdict[0].saves_pct = 49.3;
  analysis::Pipeline& in = report.pipeline.emplace();
  in.steps = 44;
  in.data_ranks = 3;
  in.stages = 4;
  in.recorded_us = 46'581'000;
  in.simulated_us = 46'203'000;
  in.ideal_us = 23'421'000;
  in.slowdown = 1.973;
  const std::string page = page_of(report);
  for (const char* const part :
       {"<p class=\"place\">44 steps of a pipeline, 3 data-parallel ranks, 4 stages</p>",
        "<b>46.581 s</b><small>mean of 44 steps</small>",
        "<b>1.97 \u00d7</b><small>46.203 s by simulation, 23.421 s with every operation",
        "<span>step time when fixed</span>", "<b>49.3 %</b> of step time."}) {
    EXPECT_NE(page.find(part), std::string::npos) << part;
  }
  const std::string text = report_text(report, TextOptions{});
  EXPECT_NE(text.find("44 steps of a pipeline: 46.581 s each, 3 data-parallel ranks, 4 stages"),
            std::string::npos)
      << text;
}

TEST(ReportHtml, NamesItsStepsAsTheTextDoes) {
  analysis::Report report = healthy_report();
  report.ranks = 2;
  const auto expect = [&](const std::vector<uint64_t>& numbers, std::string which) {
    report.steps.clear();
    for (const int32_t rank : {0, 1}) {
      for (const uint64_t number : numbers) report.steps.push_back({rank, 0, {number, 0, 1000}});
    }
    EXPECT_NE(page_of(report).find("<p class=\"place\">2 ranks, " + which + "</p>"),
              std::string::npos)
        << which;
    if (which[0] == 's') which[0] = 'S';
    const std::string text = report_text(report, TextOptions{});
    EXPECT_TRUE(text.starts_with(which + " on 2 ranks: ")) << text;
  };
  expect({7}, "step 7");
  expect({0, 1, 2}, "steps 0 to 2");
  expect({2, 4, 5}, "3 of the steps 2 to 5");
}

TEST(ReportHtml, ProcessesWithoutARankAreApart) {
  Trace trace = test::JobModel(test::Job{.ranks = 2}).trace();
  const Json ranks = report_json(analysis::make_report(trace));
  EXPECT_NE(report_html(ranks).find("<p class=\"place\">2 ranks, steps "), std::string::npos);
  for (size_t i = 0; i < trace.processes.size(); ++i) {
    trace.processes[i].header.set_rank(-1);
    trace.processes[i].header.set_pid(100 + static_cast<uint32_t>(i));
  }
  for (const analysis::Depth depth : {analysis::Depth::tables, analysis::Depth::all}) {
    const analysis::Report report = analysis::make_report(trace, depth);
    const Json json = report_json(report);
    ASSERT_EQ(json["processes"].size(), 2u);
    EXPECT_EQ(json["processes"][0]["pid"], 100);
    EXPECT_EQ(json["processes"][1]["pid"], 101);
    EXPECT_EQ(json["processes"][1]["rank"], -1);
    std::set<size_t> of_steps, of_curves;
    for (const Json& each : json["steps"]) of_steps.insert(each["process"].get<size_t>());
    for (const Json& each : json["curves"]) of_curves.insert(each["process"].get<size_t>());
    EXPECT_EQ(of_steps, (std::set<size_t>{0, 1}));
    EXPECT_EQ(of_curves, of_steps);
    EXPECT_NE(report_html(json).find("<p class=\"place\">2 processes, steps "), std::string::npos);
    const std::string text = report_text(report, TextOptions{});
    EXPECT_NE(text.find(" in 2 processes: "), std::string::npos) << text;
  }
}

TEST(ReportHtml, SaysWhyThereIsNoVerdict) {
  test::Job job;
  job.steps = 1;
  const Json report = report_json(analysis::make_report(test::JobModel(job).trace()));
  EXPECT_NE(report_html(report).find("No verdict: one step is too few"), std::string::npos);
}

}  // namespace
}  // namespace gpuprof
