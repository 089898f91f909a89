// SPDX-License-Identifier: Apache-2.0
// The verdict that ends a run: at most so many lines, cut at whole sentences.
#include "tools/report/report_text.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>
#include <string>

#include "tools/analysis/report.h"

namespace gpuprof {
namespace {

constexpr char kMore[] = "gpuprof report DIR";

analysis::Report report_with(size_t causes) {
  analysis::Report report;
  for (size_t i = 0; i < causes; ++i) {
    analysis::Verdict verdict{};
    verdict.cause = analysis::Cause::data_loading;
    verdict.confidence = 1;
    verdict.evidence = {"the GPU is idle for it"};
    verdict.advice =
        "Load batches in more workers, or in threads. Give the container more CPUs, e.g. eight of "
        "them. What is left is decoding, which the GPU can do.";
    report.verdict.push_back(verdict);
  }
  return report;
}

std::string verdict(size_t causes, size_t most) {
  TextOptions options;
  options.width = 60;
  return verdict_text(report_with(causes), options, most, kMore);
}

size_t lines_of(const std::string& text) {
  return static_cast<size_t>(std::count(text.begin(), text.end(), '\n'));
}

TEST(VerdictText, WhatFitsIsWhole) {
  const std::string whole = verdict(1, 100);
  EXPECT_TRUE(whole.ends_with("is\n    decoding, which the GPU can do.\n")) << whole;
  EXPECT_EQ(verdict(1, lines_of(whole)), whole);
}

TEST(VerdictText, EachLengthEndsWithASentenceAndTheRest) {
  const size_t whole = lines_of(verdict(3, 100));
  for (size_t most = 4; most < whole; ++most) {
    const std::string text = verdict(3, most);
    EXPECT_LE(lines_of(text), most) << text;
    const size_t last = text.rfind("\n  ", text.size() - 2);
    ASSERT_NE(last, std::string::npos) << text;
    EXPECT_TRUE(text.ends_with(std::string(kMore) + "\n")) << text;
    const std::string shown = text.substr(0, last);
    const bool at_sentence = shown.ends_with("Verdict") || shown.ends_with("0.0 % shorter") ||
                             shown.ends_with("idle for it") || shown.ends_with("in threads.") ||
                             shown.ends_with("eight of them.") || shown.ends_with("can do.");
    EXPECT_TRUE(at_sentence) << text;
  }
}

TEST(VerdictText, SentencesOfAnAdviceAreKept) {
  const std::string whole = verdict(1, 100);
  const std::string text = verdict(1, lines_of(whole) - 1);
  EXPECT_NE(text.find("in threads."), std::string::npos) << text;
  EXPECT_EQ(text.find("What is left"), std::string::npos) << text;
  EXPECT_TRUE(text.ends_with("\n  more: gpuprof report DIR\n")) << text;
}

TEST(VerdictText, CausesThatAreLeftAreCounted) {
  EXPECT_NE(verdict(3, 8).find("\n  2 more causes: gpuprof report DIR\n"), std::string::npos);
  EXPECT_NE(verdict(2, 8).find("\n  1 more cause: gpuprof report DIR\n"), std::string::npos);
}

// Bars and notes are as wide as the terminal leaves them.
TEST(ReportText, WhereTimeGoesFitsTheColumns) {
  analysis::Report report;
  report.steps.emplace_back();
  report.gpu_timed = true;
  report.breakdown_pct[0] = 40;
  report.breakdown_pct[static_cast<size_t>(analysis::Part::communication)] = 20;
  report.breakdown_pct[static_cast<size_t>(analysis::Part::other)] = 40;
  report.overlapped_pct[0] = 12.3;
  report.no_processor_pct[static_cast<size_t>(analysis::Part::other)] = 20;
  report.device_idle_pct = 5;
  for (const size_t width : {40, 55, 60, 76, 80, 120}) {
    TextOptions options;
    options.width = width;
    const std::string text = report_text(report, options);
    const size_t begin = text.find("Where a step's time goes");
    ASSERT_NE(begin, std::string::npos);
    std::istringstream lines(text.substr(begin, text.find("\n\n", begin) - begin));
    std::string together;
    for (std::string line; std::getline(lines, line);) {
      EXPECT_LE(line.size(), width) << line;
      together += line.substr(std::min(line.size(), line.find_first_not_of(' '))) + " ";
    }
    EXPECT_NE(together.find("and 12.3 % under compute"), std::string::npos) << text;
    EXPECT_NE(together.find("50 % without a processor"), std::string::npos) << text;
    EXPECT_NE(together.find("issued work did not begin, why is not recorded"), std::string::npos)
        << text;
  }
}

analysis::Report report_of_steps() {
  analysis::Report report;
  for (uint64_t step = 0; step < 2; ++step) {
    report.steps.emplace_back();
    report.steps.back().anatomy.step = step;
  }
  return report;
}

// Figures are as wide as they must be; all else goes on in the next line.
TEST(ReportText, EachLineFitsTheColumns) {
  analysis::Report report = report_of_steps();
  report.findings.push_back({analysis::FindingKind::steps_found, "steps were found", 1});
  report.findings.push_back({analysis::FindingKind::profiler_time, "it worked", 3});
  report.tables.kernels.resize(1);
  report.tables.kernels[0].name = report.tables.kernels[0].short_name =
      "a_kernel_of_a_long_name_that_needs_a_line<float, 128, 64>";
  report.tables.kernels[0].total_us = 3;
  report.tables.kernels[0].count = 2;
  report.speeds.resize(2);
  report.tables.memory.resize(1);
  report.tables.memory[0].peak_bytes = 1004123;
  report.tables.memory[0].peak_us = 165273;
  report.operators.memory_owners.resize(1);
  report.operators.memory_owners[0].name = "an_owner";
  report.operators.memory_owners[0].bytes = 1000000;
  report.collective_times.matched = 3;
  report.collective_times.different = 3;
  for (size_t width = 40; width <= 120; ++width) {
    TextOptions options;
    options.width = width;
    std::istringstream lines(report_text(report, options));
    for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), width) << line;
  }
}

TEST(ReportText, StepsThatNobodyMarkedAreSaidToBeFound) {
  analysis::Report report = report_of_steps();
  const auto begins = [&] { return report_text(report, TextOptions{}).substr(0, 60); };
  EXPECT_EQ(begins().find("found from"), std::string::npos) << begins();
  report.findings.push_back({analysis::FindingKind::steps_found, "steps were found", 1});
  EXPECT_TRUE(begins().starts_with("Steps 0 to 1 (found from the order of GPU work): "))
      << begins();
  EXPECT_TRUE(verdict_text(report, TextOptions{}, 10, kMore).starts_with("Steps 0 to 1 (found"));
}

// The GPU may wait for what is no record, as for a step mark.
TEST(ReportText, WhatTheProfilerTookIsMoreThanItsRecords) {
  analysis::Report report = report_of_steps();
  report.own_cost_pct = 0.1;
  EXPECT_EQ(report_text(report, TextOptions{}).find("more in all"), std::string::npos);
  report.findings.push_back({analysis::FindingKind::profiler_time, "it worked", 15.1});
  EXPECT_NE(report_text(report, TextOptions{})
                .find("Profiler's own cost: 0.1 % for records and within CUPTI, more in all"),
            std::string::npos);
}

TEST(ReportText, AGroupingThatNothingHasIsSaid) {
  analysis::Report report = report_of_steps();
  TextOptions options;
  options.tables_alone = true;
  report.grouping = analysis::Grouping::shape;
  report.operators.grouped.resize(1);
  report.operators.grouped[0].name = "step";
  EXPECT_NE(report_text(report, options).find("--by shape: no shapes"), std::string::npos);
  EXPECT_NE(report_text(report, options).find("+op:shapes"), std::string::npos);
  report.operators.grouped[0].by = "[[64,32]]";
  EXPECT_EQ(report_text(report, options).find("--by shape"), std::string::npos);
  report.grouping = analysis::Grouping::name;
  report.operators.grouped.clear();
  EXPECT_EQ(report_text(report, options).find("--by"), std::string::npos);
}

// As of a trace in whole microseconds.
TEST(ReportText, KernelsWithoutLengthHaveNoShare) {
  analysis::Report report;
  report.steps.emplace_back();
  report.tables.kernels.resize(2);
  for (analysis::KernelRow& row : report.tables.kernels) row.name = row.short_name = "fill";
  for (analysis::KernelRow& row : report.tables.kernels) row.count = 4;
  const auto text = [&] { return report_text(report, TextOptions{}); };
  EXPECT_EQ(text().find("nan"), std::string::npos) << text();
  EXPECT_EQ(text().find('%'), std::string::npos) << text();
  report.tables.kernels[0].total_us = 3;
  EXPECT_NE(text().find("100.0%"), std::string::npos) << text();
  EXPECT_NE(text().find("  0.0%"), std::string::npos) << text();
}

}  // namespace
}  // namespace gpuprof
