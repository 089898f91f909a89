// SPDX-License-Identifier: Apache-2.0
// Folders with traces of other tools that name no rank: of one run, or of several.
#include "formats/trace_choice.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <vector>

#include "formats/input.h"

namespace gpuprof::test {
namespace {

struct File {
  std::string name;
  int pid;
  int64_t at_us = 0;  // of its first step; each of its three takes 1 ms
  int first_step = 5;
  bool cut = false;
};

std::string text_of(const File& file) {
  std::string events;
  for (int step = 0; step < 3; ++step) {
    const int64_t at = 1'000'000 + file.at_us + 1000 * step;
    events += fmt::format(
        R"({{"ph":"X","cat":"user_annotation","name":"ProfilerStep#{}","ts":{},"dur":990,"pid":{},"tid":9,"args":{{}}}},)"
        R"({{"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","ts":{},"dur":5,"pid":{},"tid":9,"args":{{"correlation":{}}}}},)"
        R"({{"ph":"X","cat":"kernel","name":"gemm","ts":{},"dur":500,"pid":0,"tid":7,"args":{{"stream":7,"device":0,"correlation":{}}}}},)",
        file.first_step + step, at, file.pid, at + 10, file.pid, step + 1, at + 20, step + 1);
  }
  events.pop_back();
  return R"({"schemaVersion":1,"traceEvents":[)" + events + (file.cut ? "" : "]}");
}

class TraceChoiceTest : public ::testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/gpuprof_trace_choice_XXXXXX";
    folder_ = ::mkdtemp(name);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  // From a directory of their own, or by their names.
  Input read(const std::vector<File>& files, bool named = false, const char* attempt = "") {
    const std::string folder = folder_ + "/" + std::to_string(++reads_);
    std::filesystem::create_directories(folder);
    std::vector<std::string> paths;
    for (const File& file : files) {
      paths.push_back(folder + "/" + file.name + ".pt.trace.json");
      std::ofstream(paths.back(), std::ios::binary) << text_of(file);
    }
    InputOptions options;
    options.choice.attempt = attempt;
    return load_input(named ? paths : std::vector{folder}, options);
  }
  static std::multiset<uint32_t> pids(const Input& input) {
    std::multiset<uint32_t> out;
    for (const Process& process : input.trace.processes) out.insert(process.header.pid());
    return out;
  }
  static std::string notes(const Input& input) {
    return fmt::format("{}", fmt::join(input.trace.notes, "\n"));
  }

  std::string folder_;
  int reads_ = 0;
};

using Pids = std::multiset<uint32_t>;
const std::string kTwo =
    "these traces are of 2 runs of the same steps, one after the other, by processes without a "
    "rank (pid 111, 222)";

TEST_F(TraceChoiceTest, TheNewestOfSeveralRunsIsTaken) {
  const std::vector<File> files = {{"vm_111.1", 111}, {"vm_222.2", 222, 900'000}};
  const Input chosen = read(files);
  EXPECT_EQ(pids(chosen), Pids{222});
  EXPECT_EQ(notes(chosen), kTwo + "; taking the newest, pid 222; name files to take others");
  const Input both = read(files, true);
  EXPECT_EQ(pids(both), (Pids{111, 222}));
  EXPECT_EQ(notes(both), kTwo + "; taken as one run; compare runs with gpuprof diff");
}

TEST_F(TraceChoiceTest, AllAttemptsAreAllRuns) {
  const Input input = read({{"vm_111.1", 111}, {"vm_222.2", 222, 900'000}}, false, "all");
  EXPECT_EQ(pids(input), (Pids{111, 222}));
  EXPECT_EQ(notes(input), kTwo + "; taken as one run; compare runs with gpuprof diff");
}

TEST_F(TraceChoiceTest, ARunThatIsWholeGoesFirst) {
  const Input input = read({{"vm_111.1", 111}, {"vm_222.2", 222, 900'000, 5, true}});
  EXPECT_EQ(pids(input), Pids{111});
}

TEST_F(TraceChoiceTest, RanksThatNobodyNumberedStayTogether) {
  const Input one = read({{"vm_111.1", 111}, {"vm_222.2", 222, 700}});
  EXPECT_EQ(pids(one), (Pids{111, 222}));
  EXPECT_EQ(notes(one), "");
  const Input two =
      read({{"vm_1.1", 1}, {"vm_2.1", 2, 700}, {"vm_3.1", 3, 9000}, {"vm_4.1", 4, 9900}});
  EXPECT_EQ(pids(two), (Pids{3, 4}));
  // Each begins before another has ended.
  EXPECT_EQ(pids(read({{"vm_1.1", 1}, {"vm_2.1", 2, 2000}, {"vm_3.1", 3, 4000}})), (Pids{1, 2, 3}));
}

TEST_F(TraceChoiceTest, WindowsOfAProcessStayTogether) {
  const Input input = read({{"vm_111.1", 111}, {"vm_111.2", 111, 900'000}});
  EXPECT_EQ(pids(input), (Pids{111, 111}));
  EXPECT_EQ(notes(input), "");
  // The windows of two ranks, in turn.
  const std::vector<File> ranks = {
      {"vm_1.1", 1}, {"vm_2.1", 2, 700}, {"vm_1.2", 1, 900'000}, {"vm_2.2", 2, 900'700}};
  EXPECT_EQ(pids(read(ranks)), (Pids{1, 1, 2, 2}));
}

TEST_F(TraceChoiceTest, OtherStepsAndOtherHostsAreOfOneRun) {
  EXPECT_EQ(pids(read({{"vm_111.1", 111}, {"vm_222.2", 222, 900'000, 8}})), (Pids{111, 222}));
  EXPECT_EQ(pids(read({{"a_111.1", 111}, {"b_222.2", 222, 900'000}})), (Pids{111, 222}));
}

}  // namespace
}  // namespace gpuprof::test
