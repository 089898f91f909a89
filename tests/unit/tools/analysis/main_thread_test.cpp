// SPDX-License-Identifier: Apache-2.0
// The thread that steps run on, of a program's first thread, one that trains, and autograd's.
#include "tools/analysis/main_thread.h"

#include <gtest/gtest.h>

#include <new>
#include <string>
#include <vector>

#include "formats/core/own_time.h"
#include "tests/unit/support/trace_maker.h"

namespace gpuprof::analysis {
namespace {

using namespace test;

constexpr uint32_t kFirst = 4242, kTrains = 4300, kAutograd = 4301;
constexpr int kSteps = 10;

// What each thread does in ten steps.
struct Threads {
  int first_calls = 0, train_calls = 30, autograd_calls = 300;
  const char* range = nullptr;  // on the thread that trains, once a step
  uint32_t marks = 0;           // the thread with gpuprof's step marks; 0: none
  const char* source = "nvtx:step";
  std::vector<uint32_t> python;  // threads with Python's frames in their samples
};

uint32_t main_of(const Threads& threads) {
  MemoryNames names;
  BatchEncoder encoder(names);
  encoder.begin(0, 1);
  const auto add = [&](const Record& record, uint32_t thread) {
    if (!encoder.add(record, thread, "python")) throw std::bad_alloc();
  };
  const auto launch = [&](int calls, uint32_t thread) {
    for (int i = 0; i < calls; ++i) {
      const auto at = static_cast<uint64_t>(i) * 1000 / static_cast<uint64_t>(calls);
      add(make_record(Kind::launch, ticks_at(at), ticks_at(at) + 10, names.api("cudaLaunchKernel")),
          thread);
    }
  };
  launch(threads.first_calls, kFirst);
  launch(threads.train_calls, kTrains);
  launch(threads.autograd_calls, kAutograd);
  for (uint64_t step = 0; step < kSteps; ++step) {
    const uint64_t begin = ticks_at(100 * step + 90), end = begin + 100;
    if (threads.range) {
      Record range = make_record(Kind::annotation, begin, end);
      range.framework.name = names.intern(threads.range);
      add(range, kTrains);
    }
    if (threads.marks)
      add(own_time_record(OwnTime::step, threads.marks, begin, end), threads.marks);
  }
  ByteBuffer bytes;
  dump::Header header = make_header(1);
  header.set_step_source(threads.source);
  append(bytes, ChunkKind::header, header);
  append_events(bytes, encoder);
  std::vector<uint64_t> boundaries;
  for (uint64_t step = 0; step <= kSteps; ++step) boundaries.push_back(ticks_at(100 * step));
  append_steps(bytes, boundaries, 0, 0, threads.source);
  append(bytes, ChunkKind::summary, make_summary(ticks_at(1000), 0, kSteps - 1));
  Trace trace = load(view(bytes));
  Process& process = trace.processes.front();
  const StackIndex stack = process.stacks.add(
      std::vector<uint64_t>{process.stacks.python_frame("train", "/me/train.py", 3)});
  for (const uint32_t thread : threads.python) process.samples.push_back({0, thread, stack});
  const std::vector<Timeline> timelines = make_timelines(trace);
  const Timeline& timeline = timelines.front();
  return timeline.main_thread == kNone ? 0 : timeline.threads[timeline.main_thread].id;
}

TEST(MainThread, AnOptimizerStepsOnIt) {
  Threads threads;
  threads.range = "Optimizer.step#AdamW.step";
  EXPECT_EQ(main_of(threads), kTrains);
  threads.first_calls = 1;
  EXPECT_EQ(main_of(threads), kTrains);
  threads.first_calls = 200;
  EXPECT_EQ(main_of(threads), kTrains) << "the first thread computes something else";
}

TEST(MainThread, StepMarksOfTheLoopTell) {
  Threads threads;
  threads.first_calls = 1;
  threads.marks = kTrains;
  for (const char* const source : {"optimizer", "manual", "forward", "nvtx:step"}) {
    threads.source = source;
    EXPECT_EQ(main_of(threads), kTrains) << source;
  }
  threads.marks = kAutograd;
  for (const char* const source : {"nccl", "kernel", "graph:1", "period"}) {
    threads.source = source;
    EXPECT_EQ(main_of(threads), kFirst) << source << ": autograd launches, and calls NCCL";
  }
}

TEST(MainThread, ADataLoaderIsWaitedForOnIt) {
  Threads threads;
  threads.range = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__";
  threads.first_calls = 1;
  EXPECT_EQ(main_of(threads), kTrains);
  threads.first_calls = 100;
  EXPECT_EQ(main_of(threads), kFirst) << "another thread fetches ahead";
}

TEST(MainThread, TheFirstThreadUnlessItStandsAside) {
  Threads threads;
  threads.first_calls = 12;
  EXPECT_EQ(main_of(threads), kFirst);
  threads.python = {kFirst, kTrains};
  EXPECT_EQ(main_of(threads), kFirst) << "it launches graphs, say";
  threads.first_calls = 1;
  EXPECT_EQ(main_of(threads), kTrains) << "it has asked for the number of GPUs";
  threads.python = {};
  EXPECT_EQ(main_of(threads), kFirst) << "nothing tells another";
}

TEST(MainThread, WithoutCallsOnTheFirstTheBusiestThatRunsPython) {
  Threads threads;
  EXPECT_EQ(main_of(threads), kAutograd);
  threads.python = {kFirst, kTrains};
  EXPECT_EQ(main_of(threads), kTrains);
}

}  // namespace
}  // namespace gpuprof::analysis
