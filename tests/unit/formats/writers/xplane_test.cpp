// SPDX-License-Identifier: Apache-2.0
// XProf's planes, decoded with the format's own schema and held to what XProf relies on.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>

#include "formats/io/file_bytes.h"
#include "formats/views/step_subset.h"
#include "formats/writers/exporter.h"
#include "tests/unit/support/hostile_trace.h"
#include "tests/unit/support/trace_maker.h"
#include "xplane_test.pb.h"

namespace gpuprof::test {
namespace {

namespace fs = std::filesystem;
using namespace xplane_test;

class Xplane : public testing::Test {
 protected:
  Xplane() : folder_(fs::temp_directory_path() / ("gpuprof_xplane_" + std::to_string(::getpid()))) {
    fs::remove_all(folder_);
  }
  ~Xplane() override { fs::remove_all(folder_); }

  std::map<std::string, XSpace> exported(const Trace& trace) {
    std::string error;
    EXPECT_TRUE(find_exporter("xplane")->write(trace, folder_, {}, error)) << error;
    std::map<std::string, XSpace> found;
    for (const fs::directory_entry& entry : fs::directory_iterator(folder_)) {
      std::string bytes;
      EXPECT_TRUE(read_file(entry.path(), bytes, error)) << error;
      EXPECT_TRUE(found[entry.path().filename()].ParseFromString(bytes));
    }
    return found;
  }

  static const XPlane& plane(const XSpace& space, const std::string& name) {
    for (const XPlane& candidate : space.planes()) {
      if (candidate.name() == name) return candidate;
    }
    throw std::out_of_range("no plane " + name);
  }
  // Of an event: its stats, references resolved.
  static std::map<std::string, std::string> stats(const XPlane& plane, const XEvent& event) {
    std::map<std::string, std::string> out;
    for (const XStat& stat : event.stats()) {
      const std::string& key = plane.stat_metadata().at(stat.metadata_id()).name();
      out[key] = stat.has_ref_value()
                     ? plane.stat_metadata().at(static_cast<int64_t>(stat.ref_value())).name()
                     : std::to_string(stat.int64_value());
    }
    return out;
  }

  const fs::path folder_;
};

TEST_F(Xplane, IdsOfMetadataAreTheirKeysAndAllAreKnown) {
  for (const auto& [name, space] : exported(busy_trace(2))) {
    EXPECT_EQ(space.planes_size(), 2);
    for (const XPlane& plane : space.planes()) {
      for (const auto& [key, value] : plane.event_metadata()) EXPECT_EQ(key, value.id());
      for (const auto& [key, value] : plane.stat_metadata()) EXPECT_EQ(key, value.id());
      for (const XLine& line : plane.lines()) {
        for (const XEvent& event : line.events()) {
          EXPECT_TRUE(plane.event_metadata().contains(event.metadata_id()));
          stats(plane, event);
        }
      }
    }
  }
}

TEST_F(Xplane, EventsOfALineAreInOrderAndNest) {
  auto spaces = exported(busy_trace(1));
  spaces.merge(exported(hostile_trace()));
  EXPECT_EQ(spaces.size(), 2u);
  for (const auto& [name, space] : spaces) {
    for (const XPlane& plane : space.planes()) {
      std::set<int64_t> ids;
      for (const XLine& line : plane.lines()) {
        EXPECT_TRUE(ids.insert(line.id()).second) << "two lines " << line.id();
        std::vector<int64_t> open;
        int64_t last = 0;
        for (const XEvent& event : line.events()) {
          EXPECT_GE(event.offset_ps(), last);
          last = event.offset_ps();
          const int64_t end = last + event.duration_ps();
          while (!open.empty() && open.back() <= last) open.pop_back();
          EXPECT_TRUE(open.empty() || end <= open.back()) << line.name();
          open.push_back(end);
        }
      }
    }
  }
}

TEST_F(Xplane, ARangeThatWasCutSaysSo) {
  const auto found = exported(busy_trace(1));
  const XPlane& host = plane(found.at("node1_r0.xplane.pb"), "/host:CPU");
  std::set<std::string> cut;
  for (const XLine& line : host.lines()) {
    for (const XEvent& event : line.events()) {
      if (stats(host, event).contains("open at window end")) {
        cut.insert(host.event_metadata().at(event.metadata_id()).name());
      }
    }
  }
  EXPECT_EQ(cut, std::set<std::string>{"validate"});
}

TEST_F(Xplane, StepsAreRootsAndKernelsHaveTheirCalls) {
  const auto found = exported(busy_trace(1));
  const XSpace& space = found.at("node1_r0.xplane.pb");
  EXPECT_EQ(space.hostnames(0), "node1_r0");
  const XPlane& host = plane(space, "/host:CPU");
  const XPlane& gpu = plane(space, "/device:GPU:0");
  std::set<std::string> calls, steps;
  for (const XLine& line : host.lines()) {
    for (const XEvent& event : line.events()) {
      const auto found_stats = stats(host, event);
      if (found_stats.contains("correlation_id")) calls.insert(found_stats.at("correlation_id"));
      if (!found_stats.contains("_r")) continue;
      EXPECT_EQ(host.event_metadata().at(event.metadata_id()).name(), "train");
      EXPECT_EQ(event.duration_ps(), 500'000'000);
      steps.insert(found_stats.at("step_num"));
    }
  }
  EXPECT_EQ(steps, (std::set<std::string>{"12", "13"}));
  size_t kernels = 0;
  for (const XLine& line : gpu.lines()) {
    EXPECT_TRUE(line.name().starts_with("Stream #"));
    for (const XEvent& event : line.events()) {
      const auto of_event = stats(gpu, event);
      EXPECT_TRUE(calls.contains(of_event.at("correlation_id")));
      EXPECT_FALSE(of_event.contains("group_id")) << "XProf would take steps for grouped";
      if (!of_event.contains("kernel_details")) continue;
      ++kernels;
      EXPECT_TRUE(of_event.at("kernel_details")
                      .starts_with("regs:40 static_shared:0 dynamic_shared:1024 grid:64,1,1 "
                                   "block:128,1,1 occ_pct:"));
    }
  }
  EXPECT_EQ(kernels, 5u);
}

TEST_F(Xplane, WhatABudgetLeftOutIsALineOfTheHost) {
  Trace trace = busy_trace(1);
  Process& process = trace.processes.front();
  process.budget.left_out = {{ShedKind::stacks, process.window_begin, 0},
                             {ShedKind::calls, process.window_begin + 600'000, 3}};
  const auto found = exported(trace);
  const XPlane& host = plane(found.begin()->second, "/host:CPU");
  std::map<std::string, int64_t> lengths;
  for (const XLine& line : host.lines()) {
    if (line.name() != "not recorded (GPUPROF_BUDGET)") continue;
    for (const XEvent& event : line.events()) {
      lengths[host.event_metadata().at(event.metadata_id()).name()] = event.duration_ps() / 1000;
    }
  }
  const int64_t length = process.window_end - process.window_begin;
  EXPECT_EQ(lengths,
            (std::map<std::string, int64_t>{
                {"call stacks", length}, {"API calls that start no GPU work", length - 600'000}}));
  bool said = false;
  for (const auto& [key, value] : host.stat_metadata()) said |= value.name() == "not_recorded";
  EXPECT_TRUE(said);
}

TEST_F(Xplane, SomeStepsAreAWholeTrace) {
  Trace trace = busy_trace(1);
  EXPECT_EQ(keep_steps(trace, [](uint64_t step) { return step == 12; }), 0u);
  const auto found = exported(trace);
  const XSpace& space = found.at("node1_r0.xplane.pb");
  std::set<std::string> calls, work, steps;
  for (const XPlane& each : space.planes()) {
    for (const XLine& line : each.lines()) {
      for (const XEvent& event : line.events()) {
        EXPECT_GE(event.offset_ps(), 0);
        const auto of_event = stats(each, event);
        if (of_event.contains("_r")) steps.insert(of_event.at("step_num"));
        if (!of_event.contains("correlation_id")) continue;
        (each.name() == "/host:CPU" ? calls : work).insert(of_event.at("correlation_id"));
      }
    }
  }
  EXPECT_EQ(steps, std::set<std::string>{"12"});
  EXPECT_EQ(work.size(), 6u);
  EXPECT_TRUE(std::includes(calls.begin(), calls.end(), work.begin(), work.end()));
}

TEST_F(Xplane, TensorBoardsDirectoryHasBothPluginsFiles) {
  std::string error;
  ASSERT_TRUE(find_exporter("tensorboard")->write(busy_trace(2), folder_, {}, error)) << error;
  std::map<std::string, int> found;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(folder_)) {
    if (!entry.is_regular_file()) continue;
    const fs::path within = fs::relative(entry.path(), folder_);
    ++found[within.parent_path().parent_path().string() + within.extension().string()];
  }
  EXPECT_EQ(found, (std::map<std::string, int>{{".gz", 2}, {"plugins/profile.pb", 2}}));
}

}  // namespace
}  // namespace gpuprof::test
