// SPDX-License-Identifier: Apache-2.0
// Memory of GPUs that are not NVIDIA's, as torch.profiler's traces tell it.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "formats/kineto_reader/reader.h"
#include "formats/writers/memory_viz_changes.h"
#include "formats/writers/memory_viz_export.h"
#include "tools/analysis/live_owners.h"
#include "tools/analysis/report.h"
#include "tools/report/report_text.h"

namespace gpuprof::analysis {
namespace {

// Four steps, each of which keeps 1 GiB more. `device_type`: c10::DeviceType.
Trace growing(int device_type) {
  constexpr int64_t kGiB = 1 << 30;
  std::string events;
  const auto event = [&](const std::string& text) {
    events += (events.empty() ? "" : ",\n") + text;
  };
  int64_t total = 0;
  for (int step = 0; step < 4; ++step) {
    const double at = 1000 + 10'000.0 * step;
    const auto range = [&](const char* category, const std::string& name, double begin,
                           double length, int pid, int tid, const std::string& args) {
      event(fmt::format(
          R"({{"ph":"X","cat":"{}","name":"{}","pid":{},"tid":{},"ts":{},"dur":{},"args":{{{}}}}})",
          category, name, pid, tid, begin, length, args));
    };
    range("user_annotation", fmt::format("ProfilerStep#{}", step), at, 9999, 40, 40, "");
    range("cpu_op", "aten::empty", at + 50, 40, 40, 40, R"("External id":1)");
    for (int i = 0; i < 3; ++i) {
      const int64_t bytes = i < 2 ? kGiB : -kGiB;
      total += bytes;
      event(fmt::format(
          R"({{"ph":"i","cat":"cpu_instant_event","s":"t","name":"[memory]","pid":40,"tid":40,)"
          R"("ts":{},"args":{{"Total Reserved":{},"Total Allocated":{},"Bytes":{},"Addr":{},)"
          R"("Device Id":0,"Device Type":{}}}}})",
          at + 60 + i, 16 * kGiB, total, bytes, (100 + step * 2 + std::min(i, 1)) * kGiB,
          device_type));
    }
    const std::string id = fmt::format(R"("correlation":{})", 7 + step);
    range("cuda_runtime", "hipLaunchKernel", at + 100, 5, 40, 40, id);
    range("kernel", "gemm", at + 200, 5000, 0, 7, R"("device":0,"stream":7,)" + id);
  }
  const std::string path = fmt::format("{}gpu_memory_{}", testing::TempDir(), ::getpid());
  std::ofstream(path) << R"({"schemaVersion":1,"traceEvents":[)" << events << "]}";
  Trace trace;
  read_kineto(path, trace);
  std::filesystem::remove(path);
  return trace;
}

TEST(GpuMemory, IsThatOfEveryKindOfGpu) {
  constexpr int kCuda = 1, kHip = 6, kXpu = 12;
  const std::string expected = report_text(make_report(growing(kCuda)), {});
  EXPECT_NE(expected.find("Device memory"), std::string::npos) << expected;
  for (const int type : {kHip, kXpu}) {
    const Trace trace = growing(type);
    EXPECT_EQ(report_text(make_report(trace), {}), expected) << type;
    EXPECT_TRUE(has_gpu_allocations(trace)) << type;
    EXPECT_EQ(memory_viz_changes(trace)[0].size(), 12u) << type;
  }
}

// A pid that the system gave again, as to a rank that was started anew.
TEST(GpuMemory, OfAnotherProcessWithItsPidWasNotGivenToIt) {
  for (const bool same : {true, false}) {
    Trace trace = growing(1);
    Process failed;
    failed.header.set_pid(trace.processes[0].header.pid());
    failed.header.set_host(trace.processes[0].header.host());
    failed.header.set_rank(trace.processes[0].header.rank());
    trace.processes[0].header.set_os_start_time(7);
    failed.header.set_os_start_time(same ? 7 : 6);
    EXPECT_EQ(got_later(trace, failed, {0, 1 << 30, false, true}), same);
  }
}

TEST(GpuMemory, IsNotThatOfTheHost) {
  constexpr int kCpu = 0, kMeta = 14;
  for (const int type : {kCpu, kMeta}) {
    EXPECT_FALSE(has_gpu_allocations(growing(type))) << type;
    EXPECT_TRUE(memory_viz_changes(growing(type)).empty()) << type;
  }
}

}  // namespace
}  // namespace gpuprof::analysis
