// SPDX-License-Identifier: Apache-2.0
// The settings of steps: their source, and the schedule.
#include <gtest/gtest.h>

#include <cstring>
#include <string>

#include "formats/core/settings.h"
#include "tests/unit/support/settings_of.h"

namespace gpuprof::test {
namespace {

TEST(Settings, step_sources_and_back) {
  for (const char* text :
       {"auto", "manual", "optimizer", "profiler", "nvtx:ProfilerStep#", "nvtx:a:b",
        "nvtx:step@trainer", "nvtx:step@12345", "nvtx:a@b@", "nvtx:a@b@trainer",
        "nccl:ncclAllReduce:8", "kernel:at::native::(adam|sgd)<float>:2", "graph:3", "sync:4",
        "time:1000", "time:16.667"}) {
    StepSpec spec;
    SettingError error;
    char out[256];
    ASSERT_TRUE(parse_step(text, spec, error)) << error.text;
    EXPECT_EQ(format_step(spec, out, sizeof(out)), std::strlen(text));
    EXPECT_STREQ(out, text);
  }
  StepSpec spec;
  SettingError error;
  EXPECT_TRUE(parse_step("nvtx:" + std::string(127, 'n'), spec, error));
  EXPECT_FALSE(parse_step("nvtx:" + std::string(128, 'n'), spec, error));
}

TEST(Settings, the_thread_of_an_nvtx_range) {
  StepSpec spec;
  SettingError error;
  ASSERT_TRUE(parse_step("nvtx:a step@data loader", spec, error));
  EXPECT_STREQ(spec.name, "a step");
  EXPECT_STREQ(spec.thread, "data loader");
  ASSERT_TRUE(parse_step("nvtx:a@b@", spec, error));
  EXPECT_STREQ(spec.name, "a@b");
  EXPECT_STREQ(spec.thread, "");
  EXPECT_FALSE(parse_step("nvtx:@trainer", spec, error));
  EXPECT_TRUE(parse_step("nvtx:step@" + std::string(63, 't'), spec, error));
  EXPECT_FALSE(parse_step("nvtx:step@" + std::string(64, 't'), spec, error));
}

TEST(Settings, schedule_of_the_whole_program) {
  ScheduleSpec spec;
  SettingError error;
  char out[256];
  const char* const rows[][2] = {{"all", "all,max_s=0,max_mb=256"},
                                 {"all,max_mb=5", "all,max_s=0,max_mb=5"},
                                 {"max_s=3,all", "all,max_s=3,max_mb=256"}};
  for (const auto& [text, expected] : rows) {
    ASSERT_TRUE(parse_schedule(text, spec, error)) << text;
    EXPECT_TRUE(spec.all && !is_default_schedule(spec));
    format_schedule(spec, out, sizeof out);
    EXPECT_STREQ(out, expected);
    ScheduleSpec again;
    EXPECT_TRUE(parse_schedule(out, again, error)) << error.text;
  }
  EXPECT_FALSE(parse_schedule("all,active=3", spec, error));
  EXPECT_NE(std::string(error.text).find("max_s and max_mb alone"), std::string::npos);
  ASSERT_TRUE(parse_schedule("max_s=5,max_mb=1,active=10", spec, error));
  EXPECT_TRUE(is_default_schedule(spec)) << "its limits alone are others";
  ASSERT_TRUE(parse_schedule("active=11", spec, error));
  EXPECT_FALSE(is_default_schedule(spec));
}

TEST(Settings, schedule_in_full) {
  ScheduleSpec spec;
  SettingError error;
  ASSERT_TRUE(parse_schedule("active=5,max_s=2.25,skip_first_wait=1", spec, error));
  char out[256];
  const std::string expected =
      "skip_first=10,skip_first_wait=1,wait=0,warmup=2,active=5,repeat=1,max_s=2.25,max_mb=256";
  EXPECT_EQ(format_schedule(spec, out, sizeof(out)), expected.size());
  EXPECT_EQ(out, expected);
  ScheduleSpec again;
  EXPECT_TRUE(parse_schedule(out, again, error)) << error.text;
  char small[8];
  EXPECT_EQ(format_schedule(spec, small, sizeof(small)), 7u);
  EXPECT_STREQ(small, "skip_fi");
}

TEST(Settings, a_failed_parse_leaves_the_spec_alone) {
  ScheduleSpec spec;
  spec.active = 77;
  SettingError error;
  EXPECT_FALSE(parse_schedule("active=3,wait=x", spec, error));
  EXPECT_EQ(spec.active, 77u);
}

}  // namespace
}  // namespace gpuprof::test
