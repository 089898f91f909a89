// SPDX-License-Identifier: Apache-2.0
// What the report makes of the dumps of a DataLoader's workers.
#include "tools/analysis/worker_lines.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "formats/trace/process_key.h"
#include "formats/views/slices.h"
#include "tests/unit/support/job_model.h"
#include "tools/analysis/report.h"
#include "tools/report/report_json.h"

namespace gpuprof::analysis {
namespace {

struct Line {
  const char* function;
  const char* file;
  uint32_t line;
};
constexpr Line kSlow{"Data.slow", "/me/data.py", 7}, kGet{"Data.__getitem__", "/me/data.py", 3},
    kScript{"<module>", "/me/train.py", 90},
    kDecode{"decode", "/usr/lib/python3/dist-packages/pictures/decode.py", 11},
    kPoll{"select", "/usr/lib/python3.11/selectors.py", 415},
    kFetch{"fetch", "/venv/lib/python3.11/site-packages/torch/utils/data/_utils/fetch.py", 54},
    kLoop{"_worker_loop", "/venv/lib/python3.11/site-packages/torch/utils/data/_utils/worker.py",
          349},
    kStart{"_bootstrap", "/usr/lib/python3.11/multiprocessing/process.py", 314};

// Of rank 0; with a sample each 5 ms, of each stack as often as it says.
Process worker(uint32_t pid, const std::vector<std::pair<std::vector<Line>, int>>& stacks) {
  Process out;
  out.header.set_host("node1");
  out.header.set_pid(pid);
  out.header.set_parent_pid(4242);
  out.header.set_worker(pid % 10 + 1);
  out.sample_period = 5'000'000;
  int64_t time = 0;
  for (const auto& [lines, count] : stacks) {
    std::vector<uint64_t> frames;
    for (const Line& line : lines) {
      frames.push_back(out.stacks.python_frame(line.function, line.file, line.line));
    }
    const StackIndex stack = out.stacks.add(frames);
    for (int i = 0; i < count; ++i) out.samples.push_back({time += out.sample_period, pid, stack});
  }
  out.window_end = time + out.sample_period;
  out.summary.set_process_cpu_ns(static_cast<uint64_t>(time) / 2);
  return out;
}

Trace two_workers() {
  Trace trace;
  trace.processes.push_back(worker(11, {{{kSlow, kGet, kFetch, kLoop, kStart, kScript}, 60},
                                        {{kGet, kFetch, kLoop, kStart, kScript}, 10},
                                        {{kPoll, kLoop, kStart, kScript}, 30}}));
  trace.processes.push_back(worker(12, {{{kDecode, kGet, kFetch, kLoop, kStart, kScript}, 20},
                                        {{kDecode, kFetch, kLoop}, 10},
                                        {{kPoll, kStart, kScript}, 70}}));
  return trace;
}

TEST(WorkerLines, AreTheProgramsOwnWithinTheLoopOfAWorker) {
  const WorkerLines found = worker_lines_of(two_workers());
  EXPECT_EQ(found.workers, 2u);
  EXPECT_EQ(found.samples, 200u);
  EXPECT_DOUBLE_EQ(found.busy_pct, 50) << "it waits where the script's line is the starter's";
  EXPECT_NEAR(found.cpu_pct, 50, 1);
  ASSERT_EQ(found.lines.size(), 3u);
  EXPECT_EQ(found.lines[0].place(), "data.py:7 Data.slow");
  EXPECT_DOUBLE_EQ(found.lines[0].busy_pct, 60);
  EXPECT_DOUBLE_EQ(found.lines[0].busy_us, 300'000);
  EXPECT_EQ(found.lines[0].within, "");
  EXPECT_EQ(found.lines[1].place(), "data.py:3 Data.__getitem__");
  EXPECT_DOUBLE_EQ(found.lines[1].busy_pct, 30);
  EXPECT_EQ(found.lines[1].within, "decode");
  EXPECT_EQ(found.lines[2].place(), "decode.py:11 decode") << "a dataset of a package";
}

TEST(WorkerLines, WindowsOfOneWorkerAreOneWorker) {
  Trace trace = two_workers();
  trace.processes.push_back(worker(11, {{{kGet, kFetch, kLoop}, 5}}));
  EXPECT_EQ(worker_lines_of(trace).workers, 2u);
}

TEST(WorkerLines, StandInTheEvidenceAndChangeNothingElse) {
  test::Job job;
  job.data = 3'000'000;
  const Trace alone = test::JobModel(job).trace();
  Trace both = test::JobModel(job).trace();
  for (Process& process : two_workers().processes) both.processes.push_back(std::move(process));
  const Report report = make_report(both);
  ASSERT_FALSE(report.verdict.empty());
  EXPECT_EQ(report.verdict[0].cause, Cause::data_loading);
  const auto& evidence = report.verdict[0].evidence;
  EXPECT_TRUE(std::any_of(evidence.begin(), evidence.end(), [](const std::string& each) {
    return each.find("in the workers Python line data.py:7 Data.slow ran in 60 %") == 0;
  }));
  Json with = report_json(report), without = report_json(make_report(alone));
  EXPECT_EQ(with["worker_lines"][0]["line"], 7);
  EXPECT_EQ(with["data_workers"]["workers"], 2);
  EXPECT_FALSE(without.contains("data_workers") || without.contains("worker_lines"));
  for (const char* key : {"data_workers", "worker_lines"}) with.erase(key);
  for (Json* each : {&with, &without}) (*each)["verdict"][0].erase("evidence");
  EXPECT_EQ(with, without) << "ranks, steps, curves, losses";
}

TEST(WorkerLines, WorkersAreNamedAndHaveNoFileOfTheirOwn) {
  Trace trace = two_workers();
  EXPECT_EQ(data_worker_title(trace.processes[1]), "DataLoader worker 2 of rank 0");
  EXPECT_EQ(process_title(trace.processes[1]), "DataLoader worker 2 of rank 0 (node1)");
  trace.processes[1].header.set_rank(-1);
  EXPECT_EQ(data_worker_title(trace.processes[1]), "DataLoader worker 2 of process 4242");
  EXPECT_TRUE(by_process(trace).empty());
}

}  // namespace
}  // namespace gpuprof::analysis
