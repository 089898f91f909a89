// SPDX-License-Identifier: Apache-2.0
// What two runs differ in beside their program.
#include "tools/analysis/run_setup.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "tests/unit/support/job_model.h"
#include "tools/analysis/diff.h"
#include "tools/report/diff_output.h"

namespace gpuprof {
namespace {

using namespace analysis;

Trace run_of(int ranks = 1) {
  test::Job job;
  job.ranks = ranks;
  Trace out = test::JobModel(job).trace();
  for (Process& process : out.processes) {
    process.header.clear_device();
    process.header.add_device()->set_name("NVIDIA A100");
    process.header.set_driver_version(12040);
    process.header.set_runtime_version(12010);
    process.header.set_nccl_version(22809);
    process.step_source = "optimizer";
  }
  return out;
}

void set(Trace& trace, const char* name, const char* value) {
  for (Process& process : trace.processes) {
    dump::Setting& setting = *process.header.add_setting();
    setting.set_name(name);
    setting.set_value(value);
    setting.set_source("environment");
  }
}

std::string text(const Trace& base, const Trace& other) {
  RunSetup before, now;
  before.add_run(base);
  now.add_run(other);
  return describe(differences(before, now));
}

TEST(RunSetup, TheSameSaysNothing) { EXPECT_EQ(text(run_of(), run_of()), ""); }

TEST(RunSetup, EachPartIsNamed) {
  EXPECT_EQ(text(run_of(2), run_of(4)), "ranks 2 -> 4");
  Trace other = run_of();
  dump::Header& header = other.processes[0].header;
  header.mutable_device(0)->set_name("NVIDIA H100");
  header.set_driver_version(13000);
  header.set_runtime_version(12080);
  header.set_nccl_version(2804);
  other.processes[0].step_source = "nvtx:train";
  EXPECT_EQ(text(run_of(), other),
            "GPU NVIDIA A100 -> NVIDIA H100; driver 12.4 -> 13.0; CUDA 12.1 -> 12.8; "
            "NCCL 2.28.9 -> 2.8.4; steps by optimizer -> nvtx:train");
}

TEST(RunSetup, OfWhatIsRecordedOnlyWhatDiffers) {
  Trace base = run_of(), other = run_of();
  set(base, "GPUPROF_ACTIVITIES", "step,kernel,nvtx");
  set(other, "GPUPROF_ACTIVITIES", "step,kernel,alloc");
  set(other, "GPUPROF_STACKS", "launch");
  EXPECT_EQ(text(base, other),
            "recorded only in base: nvtx; recorded only in new: GPUPROF_STACKS=launch, alloc");
}

TEST(RunSetup, WhatIsNotKnownDoesNotDiffer) {
  Trace other = run_of();
  dump::Header& header = other.processes[0].header;
  header.clear_device();
  header.clear_driver_version();
  header.clear_nccl_version();
  other.processes[0].step_source = "auto";
  EXPECT_EQ(text(run_of(), other), "");
}

TEST(RunSetup, DiffSaysItInEachForm) {
  RunSample base, other;
  base.add_run(run_of(1));
  other.add_run(run_of(2));
  const Diff diff = compare(base, other);
  const DiffGate gate = gate_of(diff, 0);
  EXPECT_NE(diff_text(diff, gate, {200, false}).find("ranks 1 -> 2"), std::string::npos);
  EXPECT_NE(diff_markdown(diff, gate).find("ranks 1 -> 2"), std::string::npos);
  const Json json = diff_json(diff, gate);
  EXPECT_EQ(json["setup"], Json::parse(R"([{"name": "ranks", "base": ["1"], "new": ["2"]}])"));
  ASSERT_EQ(json["notes"].size(), 1u);
  EXPECT_NE(json["notes"][0].get<std::string>().find("ranks 1 -> 2"), std::string::npos);
}

}  // namespace
}  // namespace gpuprof
