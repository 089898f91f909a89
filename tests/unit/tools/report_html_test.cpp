// SPDX-License-Identifier: Apache-2.0
// The report's page: no text of the program can end its script, become markup, or break its JSON.
#include "tools/report/report_html.h"

#include <gtest/gtest.h>

#include <string>

#include "tests/unit/support/job_model.h"
#include "tools/analysis/report.h"
#include "tools/report/report_json.h"

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

TEST(ReportHtml, SaysWhyThereIsNoVerdict) {
  test::Job job;
  job.steps = 1;
  const Json report = report_json(analysis::make_report(test::JobModel(job).trace()));
  EXPECT_NE(report_html(report).find("No verdict: one step is too few"), std::string::npos);
}

}  // namespace
}  // namespace gpuprof
