// SPDX-License-Identifier: Apache-2.0
// Which line, or function, the idle time under a stack is counted for, and what it called.
#include "tools/analysis/host_samples.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/unit/support/job_model.h"
#include "tools/analysis/report.h"

namespace gpuprof::analysis {
namespace {

constexpr int64_t kPeriod = 5'000'000;
constexpr uint32_t kThread = 7;

// A process whose program is mapped at 0x1000 and zlib at 0x2000, all of whose time is idle.
class HostSamplesTest : public testing::Test {
 protected:
  HostSamplesTest() {
    process_.header.set_executable("/me/program");
    process_.stacks.add_module({0x1000, 0x2000, 0, "/me/program", "", 0, 0});
    process_.stacks.add_module({0x2000, 0x3000, 0, "/lib/libz.so.1", "", 0, 0});
    process_.sample_period = kPeriod;
  }

  uint64_t python(const char* function, const char* file, uint32_t line) {
    return process_.stacks.python_frame(function, file, line);
  }
  uint64_t native(uint64_t address, const char* function) {
    process_.stacks.set_frames(address, {{function, "", 0, false, false}});
    return address;
  }
  void sample(const std::vector<uint64_t>& frames, int times) {
    const StackIndex stack = process_.stacks.add(frames);
    for (int i = 0; i < times; ++i) process_.samples.push_back({time_ += kPeriod, kThread, stack});
  }
  HostSamples sums() {
    Timeline timeline{};
    timeline.process = &process_;
    IdleTimes idle;
    idle[0].push_back({0, time_ + kPeriod});
    HostSampleSums out;
    out.add(timeline, idle);
    return out.take();
  }

  Process process_;
  int64_t time_ = 0;
};

TEST_F(HostSamplesTest, ALineIsWithinTheInnermostFunctionThatHalfOfItsTimeIsIn) {
  const uint64_t line = python("squeeze", "/me/slow.py", 6),
                 main = python("main", "/me/slow.py", 13);
  const uint64_t deflate = native(0x2100, "deflate"), compress = native(0x2200, "zlib_compress");
  sample({native(0x2300, "adler32"), 0x2fff, deflate, compress, line, main}, 3);
  sample({0x2ffe, deflate, compress, line, main}, 4);  // libz's own functions have no names
  sample({compress, line, main}, 2);
  sample({line, main}, 1);
  const HostSamples found = sums();
  ASSERT_EQ(found.lines.size(), 1u);
  EXPECT_EQ(found.lines[0].place(), "slow.py:6 squeeze");
  EXPECT_EQ(found.lines[0].within, "deflate");
  ASSERT_EQ(found.stacks.size(), 4u);
  EXPECT_EQ(found.stacks[0].frames,
            (std::vector<std::string>{"main (/me/slow.py:13)", "squeeze (/me/slow.py:6)",
                                      "zlib_compress", "deflate", "libz.so.1+0x2ffe"}));
}

TEST_F(HostSamplesTest, ALibrarysLinesOfPythonAreWithinTheProgramsOwn) {
  const uint64_t own = python("main", "/me/train.py", 3);
  const uint64_t call = python("call", "/usr/lib/python3.11/json/decoder.py", 300);
  sample({python("scan", "/usr/lib/python3.11/json/scanner.py", 20), call, own}, 2);
  sample({python("text", "/usr/lib/python3.11/json/scanner.py", 40), call, own}, 2);
  sample({python("text", "/usr/lib/python3.11/json/scanner.py", 41), call, own}, 1);
  const HostSamples found = sums();
  ASSERT_EQ(found.lines.size(), 1u);
  EXPECT_EQ(found.lines[0].place(), "train.py:3 main");
  EXPECT_EQ(found.lines[0].within, "text");
}

TEST_F(HostSamplesTest, ALinesSamplesAreCounted) {
  sample({python("log", "/me/slow.py", 6)}, 9);
  sample({python("load", "/me/slow.py", 9)}, 3);
  const HostSamples found = sums();
  ASSERT_EQ(found.lines.size(), 2u);
  EXPECT_EQ(found.lines[0].samples, 9u);
  EXPECT_EQ(found.lines[1].samples, 3u);
  EXPECT_EQ(found.idle_samples, 12u);
}

TEST_F(HostSamplesTest, NothingMostlyCalledIsNotNamed) {
  const uint64_t line = python("main", "/me/train.py", 3);
  sample({native(0x2100, "one"), line}, 2);
  sample({native(0x2200, "two"), line}, 2);
  sample({line}, 3);
  EXPECT_EQ(sums().lines.at(0).within, "");
}

// A script whose only line of its own calls a framework: what that calls in turn says where it is.
TEST_F(HostSamplesTest, WhatTheFrameworkCallsStandsBesideTheLine) {
  constexpr const char* kTrainer = "/usr/lib/python3/site-packages/transformers/trainer.py";
  const uint64_t main = python("<module>", "/me/hf.py", 11),
                 train = python("Trainer.train", kTrainer, 2000),
                 step = python("Trainer.training_step", kTrainer, 3000),
                 forward = python("Trainer.compute_loss", kTrainer, 3100),
                 backward = python("Accelerator.backward", kTrainer, 3200);
  sample({forward, step, train, main}, 6);
  sample({backward, step, train, main}, 5);
  sample({train, main}, 1);
  const HostLine line = sums().lines.at(0);
  EXPECT_EQ(line.place(), "hf.py:11 <module>");
  EXPECT_EQ(line.within, "Trainer.compute_loss");
  sample({train, main}, 1);
  EXPECT_EQ(sums().lines.at(0).calls(),
            "in Trainer.training_step (Trainer.compute_loss 46 %, Accelerator.backward 38 %)");
}

// dataclasses make the methods of a class from a text: nobody wrote that line.
TEST_F(HostSamplesTest, CodeThatALibraryMadeIsNotTheProgramsOwn) {
  const uint64_t made = python("__create_fn__.<locals>.__init__", "<string>", 9);
  sample({made, python("main", "/me/train.py", 3)}, 2);
  EXPECT_EQ(sums().lines.at(0).place(), "train.py:3 main");
  process_.samples.clear();
  sample({made, python("work", "<string>", 4), python("<module>", "<string>", 7)}, 2);
  EXPECT_EQ(sums().lines.at(0).place(), "<string>:4 work");  // python -c
}

TEST_F(HostSamplesTest, AFunctionThatCallsItselfCountsOnce) {
  const uint64_t line = python("main", "/me/train.py", 3), sort = native(0x2100, "sort");
  sample({sort, sort, sort, line}, 2);
  sample({line}, 4);
  EXPECT_EQ(sums().lines.at(0).within, "");
}

// A line that sleeps in gaps shorter than the time between two samples, beside one that waits for a
// GPU that works: none of the gaps is the second one's.
TEST_F(HostSamplesTest, GapsShorterThanAPeriodAreNotTheLineBeside) {
  constexpr int64_t kStep = 5'400'000, kGap = 1'200'000;
  const uint64_t sleep = python("load", "/me/train.py", 9),
                 wait = python("call", "/me/train.py", 4);
  uint32_t in_gaps = 0;
  while (time_ < 100 * kStep) {
    const bool gap = (time_ + kPeriod) % kStep < kGap;
    sample({gap ? sleep : wait}, 1);
    in_gaps += gap;
  }
  Timeline timeline{};
  timeline.process = &process_;
  IdleTimes idle;
  for (int64_t at = 0; at <= time_; at += kStep) idle[kParts - 1].push_back({at, at + kGap});
  HostSampleSums sums;
  sums.add(timeline, idle);
  const HostSamples found = sums.take();
  ASSERT_EQ(found.lines.size(), 1u);
  EXPECT_EQ(found.lines[0].place(), "train.py:9 load");
  EXPECT_EQ(found.lines[0].samples, in_gaps);
  EXPECT_NEAR(found.idle_us, 100 * kGap / 1000.0, 2 * kGap / 1000.0);
  EXPECT_DOUBLE_EQ(found.lines[0].part_us[kParts - 1], found.idle_us);
}

TEST(FewSamples, AreSaid) {
  EXPECT_EQ(few_samples(1), " (by 1 sample)");
  EXPECT_EQ(few_samples(9), " (by 9 samples)");
  EXPECT_EQ(few_samples(10), "");
}

// A sample in a call that waits counts for the line that makes it, one in any other call does not.
TEST(WaitingLines, AreThoseOfSamplesInCallsThatWait) {
  Trace trace = test::JobModel({}).trace();
  Process& process = trace.processes.at(0);
  process.sample_period = kPeriod;
  const auto stack = [&](uint32_t line) {
    const uint64_t frame = process.stacks.python_frame("train", "/me/train.py", line);
    return process.stacks.add({&frame, 1});
  };
  const StackIndex wait = stack(4), launch = stack(9);
  uint32_t waits = 0;
  for (const Lane& lane : process.lanes) {
    if (lane.type != LaneType::thread) continue;
    for (uint32_t i = lane.first_event; i < lane.first_event + lane.event_count; ++i) {
      const Event event = process.events[i];
      const Kind kind = trace.shape(event).kind;
      if (kind != Kind::sync && kind != Kind::launch) continue;
      process.samples.push_back(
          {(event.begin + event.end) / 2, lane.thread_id, kind == Kind::sync ? wait : launch});
      waits += kind == Kind::sync;
    }
  }
  ASSERT_EQ(waits, 12u);
  const std::vector<Timeline> timelines = make_timelines(trace);
  HostSampleSums sums;
  sums.add(timelines.at(0), {});
  const HostSamples found = sums.take();
  ASSERT_EQ(found.waiting.size(), 1u);
  EXPECT_EQ(found.waiting[0].place(), "train.py:4 train");
  EXPECT_EQ(found.waiting[0].samples, waits);
  EXPECT_DOUBLE_EQ(found.waiting[0].wait_us, found.wait_us);
  EXPECT_TRUE(found.lines.empty());  // the GPU was not idle
}

// The finding is for where no verdict can say it: of one step there is none.
TEST(PythonLine, IsSaidWhereNoVerdictSaysIt) {
  const auto found = [](int steps) {
    test::Job job;
    job.steps = steps;
    job.logging = 40'000'000;
    Trace trace = test::JobModel(job).trace();
    Process& process = trace.processes.at(0);
    process.sample_period = kPeriod;
    const uint64_t frame = process.stacks.python_frame("log", "/me/train.py", 4);
    const StackIndex stack = process.stacks.add({&frame, 1});
    const Lane& thread = process.lanes.at(0);
    for (int64_t at = process.window_begin; at < process.window_end; at += kPeriod) {
      process.samples.push_back({at, thread.thread_id, stack});
    }
    return make_report(trace);
  };
  const auto text_of = [](const Report& report) {
    for (const Finding& each : report.findings) {
      if (each.kind == FindingKind::python_line) return each.text;
    }
    return std::string();
  };
  const Report one = found(1), many = found(12);
  EXPECT_TRUE(one.verdict.empty());
  EXPECT_NE(text_of(one).find("the Python line train.py:4 log ran in 100 % of "), std::string::npos)
      << text_of(one);
  ASSERT_FALSE(many.verdict.empty());
  EXPECT_EQ(many.verdict[0].cause, Cause::host_work);
  EXPECT_EQ(text_of(many), "");
}

TEST_F(HostSamplesTest, WithoutPythonTheProgramsOwnFunctionCounts) {
  const uint64_t own = native(0x1100, "load_batch"), main = native(0x1200, "main");
  sample({0x2fff, native(0x2100, "inflate"), own, main}, 3);
  sample({own, main}, 1);
  sample({0x2ffe}, 2);  // only where it waits
  const HostSamples found = sums();
  ASSERT_EQ(found.lines.size(), 2u);
  EXPECT_EQ(found.lines[0].place(), "load_batch (program)");
  EXPECT_EQ(found.lines[0].within, "inflate");
  EXPECT_EQ(found.lines[1].place(), "libz.so.1+0x2ffe");
  EXPECT_DOUBLE_EQ(found.idle_us, 6 * 5000);
}

}  // namespace
}  // namespace gpuprof::analysis
