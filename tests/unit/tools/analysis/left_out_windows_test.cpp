// SPDX-License-Identifier: Apache-2.0
#include "tools/analysis/left_out_windows.h"

#include <gtest/gtest.h>

#include <new>
#include <string>
#include <utility>
#include <vector>

#include "formats/core/early_window.h"
#include "tests/unit/support/trace_maker.h"

namespace gpuprof {
namespace {

struct Window {
  uint32_t pid;
  const char* source;
};

// The sources of what is left.
std::vector<std::string> left_of(const std::vector<Window>& windows) {
  Trace trace;
  for (const Window& window : windows) {
    Process& process = trace.processes.emplace_back();
    process.header.set_pid(window.pid);
    process.step_source = window.source;
  }
  const size_t out = analysis::leave_out_clock_windows(trace);
  std::vector<std::string> left;
  for (const Process& process : trace.processes) left.push_back(process.step_source);
  EXPECT_EQ(left.size() + out, windows.size());
  return left;
}

using Sources = std::vector<std::string>;

TEST(ClockWindows, AreLeftOutBesideTheProcessesOwnSteps) {
  EXPECT_EQ(left_of({{1, "time:1000"}, {1, "optimizer"}}), Sources{"optimizer"});
  EXPECT_EQ(left_of({{1, "nvtx:step"}, {1, "time:1000"}, {2, "time:1000"}}),
            (Sources{"nvtx:step", "time:1000"}));
}

// A process, its rank, what marks its steps, and whether it launches anything.
std::string dump_of(uint32_t pid, int rank, const char* source, bool works) {
  test::MemoryNames names;
  BatchEncoder encoder(names);
  encoder.begin(0, 1);
  const ApiId api = names.api(works ? "cudaLaunchKernel" : "cudaGetDeviceCount");
  const Record record = test::make_record(works ? Kind::launch : Kind::call, test::ticks_at(10),
                                          test::ticks_at(20), api);
  if (!encoder.add(record, pid, "python")) throw std::bad_alloc();
  ByteBuffer bytes;
  dump::Header header = test::make_header(1);
  header.set_pid(pid);
  header.set_rank(rank);
  header.set_step_source(source);
  test::append(bytes, ChunkKind::header, header);
  test::append_events(bytes, encoder);
  test::append_steps(bytes, {test::ticks_at(0), test::ticks_at(500)}, 0, 1, source);
  test::append(bytes, ChunkKind::summary, test::make_summary(test::ticks_at(1000)));
  return std::string(test::view(bytes));
}

TEST(IdleWindows, AreLeftOutBesideAnotherProcesssSteps) {
  const auto left = [](const std::string& dumps) {
    Trace trace = test::load(dumps);
    std::vector<uint32_t> pids;
    analysis::leave_out_idle_windows(trace);
    for (const Process& process : trace.processes) pids.push_back(process.header.pid());
    return pids;
  };
  using Pids = std::vector<uint32_t>;
  const std::string trains = dump_of(1, 0, "optimizer", true);
  EXPECT_EQ(left(trains + dump_of(2, -1, "time:1000", false)), Pids{1});
  EXPECT_EQ(left(trains + dump_of(2, -1, "time:1000", true)), (Pids{1, 2})) << "it works, too";
  EXPECT_EQ(left(trains + dump_of(2, 1, "time:1000", false)), (Pids{1, 2})) << "a rank that stands";
  EXPECT_EQ(left(trains + dump_of(2, -1, "optimizer", false)), (Pids{1, 2}));
  EXPECT_EQ(left(dump_of(1, -1, "time:1000", false) + dump_of(2, -1, "time:1000", true)),
            (Pids{1, 2}))
      << "nobody has steps";
}

TEST(InferredWindows, AreLeftOutBesideTheProgramsOwnMarks) {
  const auto left = [](const std::vector<Window>& windows) {
    Trace trace;
    for (const Window& window : windows) {
      Process& process = trace.processes.emplace_back();
      process.header.set_pid(window.pid);
      process.step_source = window.source;
    }
    Sources out;
    analysis::leave_out_inferred_windows(trace);
    for (const Process& process : trace.processes) out.push_back(process.step_source);
    return out;
  };
  EXPECT_EQ(left({{1, "forward"}, {1, "optimizer"}}), Sources{"optimizer"});
  EXPECT_EQ(left({{1, "sync:1"}, {1, "graph:2"}, {1, "nccl:ncclAllReduce:8"}, {1, "nvtx:step"}}),
            Sources{"nvtx:step"});
  EXPECT_EQ(left({{1, "forward"}, {2, "optimizer"}, {1, "profiler"}, {1, "auto"}}).size(), 4u);
  EXPECT_EQ(left({{1, "forward"}, {1, "graph:1"}}).size(), 2u) << "neither is the program's own";
  EXPECT_EQ(left({{1, "sync:1"}, {1, "graph:1"}, {2, "sync:1"}}), (Sources{"graph:1", "sync:1"}));
}

TEST(ClockWindows, AreLeftOutOfDataWorkers) {
  Trace trace;
  for (const uint32_t parent : {0, 1, 3}) {
    for (const uint32_t window : {0, 1}) {
      Process& process = trace.processes.emplace_back();
      process.header.set_pid(1 + parent);
      process.header.set_parent_pid(parent);
      process.header.set_window(window);
      if (parent == 0) process.step_source = window == 0 ? "time:1000" : "optimizer";
    }
  }
  EXPECT_EQ(analysis::leave_out_clock_windows(trace), 1u);
  std::vector<std::pair<uint32_t, uint32_t>> left;
  for (const Process& process : trace.processes) {
    left.emplace_back(process.header.pid(), process.header.window());
  }
  EXPECT_EQ(left, (std::vector<std::pair<uint32_t, uint32_t>>{{1, 1}, {2, 1}, {4, 0}, {4, 1}}));
}

// The steps of a process's early window and of the schedule's: which of the two is left.
std::vector<uint32_t> left_of_early(size_t early, size_t scheduled) {
  Trace trace;
  const auto add = [&](uint32_t window, size_t steps) {
    Process& process = trace.processes.emplace_back();
    process.header.set_pid(1);
    process.header.set_window(window);
    process.steps.resize(steps);
  };
  add(kFirstEarlyWindow, early);
  add(0, scheduled);
  analysis::leave_out_early_windows(trace);
  std::vector<uint32_t> left;
  for (const Process& process : trace.processes) left.push_back(process.header.window());
  return left;
}

TEST(EarlyWindows, AreLeftOutBesideAWindowThatSaysMore) {
  using Windows = std::vector<uint32_t>;
  EXPECT_EQ(left_of_early(10, 10), Windows{0});
  EXPECT_EQ(left_of_early(10, 3), Windows{0}) << "later steps say more than the first ones";
  EXPECT_EQ(left_of_early(1, 1), Windows{0});
  EXPECT_EQ(left_of_early(10, 1), Windows{kFirstEarlyWindow}) << "cut short";
  EXPECT_EQ(left_of_early(10, 0), (Windows{kFirstEarlyWindow, 0}));
  EXPECT_EQ(left_of_early(0, 0), (Windows{kFirstEarlyWindow, 0}));
}

TEST(ClockWindows, AreKeptWhereThereIsNothingElse) {
  EXPECT_EQ(left_of({{1, "time:1000"}, {1, "time:1000"}}).size(), 2u);
  EXPECT_EQ(left_of({{1, "time:1000"}, {2, "optimizer"}}).size(), 2u);
  EXPECT_EQ(left_of({{1, "time:1000"}, {1, "auto"}, {1, ""}}).size(), 3u) << "killed early";
}

}  // namespace
}  // namespace gpuprof
