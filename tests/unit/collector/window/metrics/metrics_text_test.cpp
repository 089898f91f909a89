// SPDX-License-Identifier: Apache-2.0
#include "collector/window/metrics/metrics_text.h"

#include <gtest/gtest.h>

#include <clocale>
#include <string>

namespace gpuprof {
namespace {

std::string text_of(const Metrics& metrics) {
  ByteBuffer out;
  EXPECT_TRUE(format_metrics(metrics, out));
  return {reinterpret_cast<const char*>(out.data()), out.size()};
}

Metrics armed() {
  Metrics metrics{};
  metrics.run = "job \"7\"\\a\nb";
  metrics.version = "1.2";
  metrics.mode = "armed";
  metrics.step_source = "nvtx:step";
  metrics.rank = 3;
  metrics.pid = 42;
  metrics.started_at = 1700000000.25;
  metrics.written_at = 1700000015.5;
  return metrics;
}

bool has(const std::string& text, const std::string& line) {
  return text.find("\n" + line + "\n") != std::string::npos;
}

TEST(MetricsText, LabelsAreEscaped) {
  const std::string text = text_of(armed());
  EXPECT_TRUE(has(
      text,
      R"(gpuprof_written_timestamp_seconds{run="job \"7\"\\a\nb",rank="3",pid="42"} 1700000015.5)"))
      << text;
}

TEST(MetricsText, WhatIsNotKnownIsLeftOut) {
  Metrics metrics = armed();
  metrics.run = "r";
  metrics.rank = -1;
  const std::string text = text_of(metrics);
  EXPECT_EQ(text.find("rank="), std::string::npos);
  for (const char* name : {"quantile=", "last_step", "last_window", "losses_by_cause"}) {
    EXPECT_EQ(text.find(name), std::string::npos) << name;
  }
  EXPECT_TRUE(has(text, R"(gpuprof_step_seconds_count{run="r",pid="42"} 0)"));
  EXPECT_TRUE(has(text, R"(gpuprof_losses_total{run="r",pid="42"} 0)"));
}

TEST(MetricsText, WhatABudgetLeftOutIsAShareOfTheWindowByKind) {
  Metrics metrics = armed();
  metrics.run = "r";
  metrics.has_window = true;
  EXPECT_EQ(text_of(metrics).find("left_out"), std::string::npos);
  metrics.left_out[static_cast<size_t>(ShedKind::operators)] = 0.25;
  metrics.left_out[static_cast<size_t>(ShedKind::waits)] = 1;
  const std::string text = text_of(metrics);
  EXPECT_TRUE(
      has(text,
          R"(gpuprof_last_window_left_out_ratio{run="r",rank="3",pid="42",kind="operators"} 0.25)"))
      << text;
  EXPECT_TRUE(
      has(text, R"(gpuprof_last_window_left_out_ratio{run="r",rank="3",pid="42",kind="waits"} 1)"));
  EXPECT_EQ(text.find("kind=\"calls\""), std::string::npos);
}

TEST(MetricsText, AWindowWithSharesOfEachGpu) {
  Metrics metrics = armed();
  metrics.run = "r";
  metrics.has_window = true;
  metrics.window_seconds = 1.5;
  metrics.gpu_count = 2;
  metrics.gpus[0] = {0, 0.25, true, 0.125};
  metrics.gpus[1] = {4, 0, false, 0};
  metrics.losses[static_cast<size_t>(Loss::cupti_dropped)] = 5;
  const std::string text = text_of(metrics);
  const std::string own = R"(run="r",rank="3",pid="42")";
  EXPECT_TRUE(has(text, "gpuprof_last_window_gpu_idle_ratio{" + own + R"(,gpu="0"} 0.25)")) << text;
  EXPECT_TRUE(has(text, "gpuprof_last_window_gpu_idle_ratio{" + own + R"(,gpu="4"} 0)"));
  EXPECT_TRUE(
      has(text, "gpuprof_last_window_exposed_communication_ratio{" + own + R"(,gpu="0"} 0.125)"));
  EXPECT_EQ(text.find(R"(communication_ratio{)" + own + R"(,gpu="4"})"), std::string::npos);
  EXPECT_EQ(text.find("data_wait"), std::string::npos);
  EXPECT_TRUE(has(text, "gpuprof_losses_by_cause_total{" + own + R"(,cause="cupti_dropped"} 5)"));
}

TEST(MetricsText, AProgramsLocaleChangesNoNumber) {
  const std::string before = text_of(armed());
  const std::string old = std::setlocale(LC_ALL, nullptr);
  for (const char* name : {"de_DE.UTF-8", "fr_FR.UTF-8", "C.UTF-8"}) std::setlocale(LC_ALL, name);
  EXPECT_EQ(text_of(armed()), before);
  std::setlocale(LC_ALL, old.c_str());
}

}  // namespace
}  // namespace gpuprof
