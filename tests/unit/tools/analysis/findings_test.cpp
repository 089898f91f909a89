// SPDX-License-Identifier: Apache-2.0
// What the report finds beside the verdict, and a GPU that lowers its clock, in runs made for it:
// steps of 1 ms with a launch and its kernel, and what each test adds.
#include "tools/analysis/findings.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "tests/unit/support/trace_maker.h"
#include "tools/analysis/report.h"
#include "tools/describe.h"
#include "tools/report/report_text.h"

namespace gpuprof::test {
namespace {

constexpr uint64_t kStepUs = 1000;

class RunMaker {
 public:
  // Step lengths; those before `window_from` are in the step log alone.
  explicit RunMaker(std::vector<uint64_t> lengths_us, size_t window_from = 0,
                    uint64_t kernel_pct = 90)
      : window_from_(window_from), lengths_(std::move(lengths_us)) {
    encoder_.begin(0, 1);
    uint64_t at = 0;
    for (size_t i = 0; i < lengths_.size(); ++i) {
      boundaries_.push_back(ticks_at(at));
      if (i >= window_from) starts_.push_back(at);
      at += lengths_[i];
    }
    boundaries_.push_back(ticks_at(at));
    for (size_t i = 0; i < starts_.size(); ++i) {
      add_kernel(i, lengths_[window_from + i] * kernel_pct / 100);
    }
  }
  explicit RunMaker(size_t steps) : RunMaker(std::vector<uint64_t>(steps, kStepUs)) {}

  MemoryNames names;
  dump::Header header = make_header(1);
  dump::Counters counters;
  uint32_t window = 0;
  std::string gpu_times_from, step_source;
  uint64_t gpu_time_error_ns = 0;
  uint32_t blocks = 4096;  // of each kernel launched from now on
  uint32_t threads = 256;  // of each of them
  std::string kernel_name = "_Z4gemmPf";

  size_t steps() const { return starts_.size(); }
  uint64_t start_us(size_t step) const { return starts_.at(step); }

  void add(Record record, uint32_t correlation = 0) {
    record.correlation = correlation;
    if (!encoder_.add(record, 4242, "python")) throw std::bad_alloc();
  }

  // Launched 10 us into the step.
  void add_kernel(size_t step, uint64_t us, uint64_t begin_us = 20) {
    Record launch =
        make_record(Kind::launch, at(step, 10), at(step, 15), names.api("cudaLaunchKernel"));
    launch.launch.function = names.intern(kernel_name);
    launch.flags = kFlagNamed;
    add(launch, ++correlation_);
    Record kernel = make_record(Kind::gpu_kernel, at(step, begin_us), at(step, begin_us + us));
    kernel.gpu_kernel.name = names.intern(kernel_name);
    kernel.gpu_kernel.shape =
        names.shape({{blocks, 1, 1}, {threads, 1, 1}, 0, 0, 32, 1, 1, 1, 0, 0});
    kernel.gpu_kernel.stream = 7, kernel.gpu_kernel.context = 1;
    add(kernel, correlation_);
  }

  void add_wait(size_t step, uint64_t begin_us, uint64_t end_us) {
    add(make_record(Kind::sync, at(step, begin_us), at(step, end_us),
                    names.api("cudaDeviceSynchronize")));
  }

  void add_copy(size_t step, bool to_gpu, uint64_t bytes) {
    Record call =
        make_record(Kind::copy, at(step, 940), at(step, 945), names.api("cudaMemcpyAsync"));
    call.copy.bytes = bytes, call.copy.direction = to_gpu ? 1 : 2;
    add(call, ++correlation_);
    Record copy = make_record(Kind::gpu_copy, at(step, 950), at(step, 955));
    copy.gpu_copy.bytes = bytes, copy.gpu_copy.stream = 7, copy.gpu_copy.context = 1;
    copy.gpu_copy.direction = to_gpu ? 1 : 2;
    copy.gpu_copy.source_kind = to_gpu ? 2 : 3, copy.gpu_copy.destination_kind = to_gpu ? 3 : 2;
    copy.gpu_copy.peer_source = copy.gpu_copy.peer_destination = 0xffff;
    add(copy, correlation_);
  }

  // One after the other in each step.
  void give(size_t step, uint64_t address, uint64_t bytes, std::string_view range = "") {
    const uint64_t us = next_us(step);
    if (!range.empty()) {
      Record r = make_record(Kind::nvtx_range, at(step, us), at(step, us + 4));
      r.nvtx.message = names.intern(range);
      add(r);
    }
    Record r =
        make_record(Kind::alloc, at(step, us + 1), at(step, us + 2), names.api("cudaMalloc"));
    r.memory.address = address, r.memory.bytes = bytes;
    add(r);
  }
  // A call that fails with an error of CUDA's.
  void refuse(size_t step, uint64_t bytes, int32_t error) {
    const uint64_t us = next_us(step);
    Record r = make_record(Kind::alloc, at(step, us), at(step, us + 1), names.api("cudaMalloc"));
    r.memory.bytes = bytes;
    r.memory.result = static_cast<int16_t>(error);
    add(r);
  }
  void take(size_t step, uint64_t address) {
    const uint64_t us = next_us(step);
    Record r = make_record(Kind::dealloc, at(step, us), at(step, us + 1), names.api("cudaFree"));
    r.memory.address = address;
    add(r);
  }

  void add_counter(Counter counter, const std::vector<uint64_t>& values) {
    dump::CounterSeries* const series = counters.add_series();
    series->set_device(0);
    series->set_counter(static_cast<uint32_t>(counter));
    // Each is read a little after the one before it.
    uint64_t time = ticks_at(static_cast<uint64_t>(counter)) >> 1, before = 0;
    int64_t last = 0;
    for (const uint64_t value : values) {
      series->add_time(static_cast<int64_t>(time - before));
      series->add_value(static_cast<int64_t>(value) - last);
      before = time;
      last = static_cast<int64_t>(value);
      time += (100 * kTicksPerUs) >> 1;
    }
  }

  std::string dump() {
    ByteBuffer bytes;
    header.set_window(window);
    header.set_window_begin_ticks(boundaries_[window_from_] >> 1);
    append(bytes, ChunkKind::header, header);
    append_events(bytes, encoder_);
    append_steps(bytes, boundaries_, 0, 1);
    if (counters.series_size()) append(bytes, ChunkKind::counters, counters);
    dump::Summary summary =
        make_summary(boundaries_.back() >> 1, static_cast<uint32_t>(window_from_),
                     static_cast<uint32_t>(lengths_.size() - 1));
    summary.set_gpu_times_from(gpu_times_from);
    if (!step_source.empty()) summary.set_step_source(step_source);
    summary.set_gpu_time_error_ns(gpu_time_error_ns);
    append(bytes, ChunkKind::summary, summary);
    return std::string(view(bytes));
  }

 private:
  uint64_t at(size_t step, uint64_t us) const { return ticks_at(starts_.at(step) + us); }

  uint64_t next_us(size_t step) {
    const uint64_t first = starts_.at(step) + 920;
    next_us_ = std::max(next_us_ + 5, first);
    return next_us_ - starts_.at(step);
  }

  size_t window_from_;
  uint64_t next_us_ = 0;  // since the run began
  std::vector<uint64_t> lengths_, starts_, boundaries_;
  BatchEncoder encoder_{names};
  uint32_t correlation_ = 0;
};

std::string text_of(const analysis::Report& report, std::string_view kind) {
  std::string text;
  for (const analysis::Finding& each : report.findings) {
    if (analysis::finding_row(each.kind).name == kind) text += each.text + "\n";
  }
  return text;
}

std::string found(const std::string& dumps, std::string_view kind) {
  return text_of(analysis::make_report(load(dumps)), kind);
}

std::vector<uint64_t> lengths(size_t count, double growth) {
  std::vector<uint64_t> out;
  for (size_t i = 0; i < count; ++i) {
    const double part = static_cast<double>(i) / static_cast<double>(count - 1);
    out.push_back(static_cast<uint64_t>(kStepUs * (1 + growth * part)) + i % 3);
  }
  return out;
}

// ---- memory ------------------------------------------------------------------------------------

TEST(Findings, MemoryThatGrowsInEachStepAndWhoTakesIt) {
  RunMaker run(10);
  for (size_t step = 0; step < run.steps(); ++step) {
    run.give(step, 0x1000000 + step * 0x100000, 1 << 20, "history");
    run.give(step, 0x7000000, 64 << 20, "activations");
    run.take(step, 0x7000000);
    run.give(step, 0x20000000 + step * 0x1000000, 8 << 20, "gradients");  // until the next step
    if (step) run.take(step, 0x20000000 + (step - 1) * 0x1000000);
  }
  EXPECT_EQ(
      found(run.dump(), "memory_growth"),
      "rank 0: device memory grows by 1.0 MiB in each step, and is not released; most of it by "
      "history (8.0 MiB in 8 blocks). GPUPROF_STACKS=alloc names the line of code\n");
}

TEST(Findings, WhatEndsAProgramComesFirst) {
  RunMaker run(lengths(60, 0.5));
  for (size_t step = 0; step < run.steps(); ++step) {
    run.give(step, 0x1000000 + step * 0x100000, 1 << 20, "history");
  }
  run.add_counter(Counter::memory_used, {1 << 30, uint64_t{79} << 30});
  const auto found = analysis::make_report(load(run.dump())).findings;
  std::vector<std::string> ending, others;
  for (const analysis::Finding& each : found) {
    auto& list = analysis::ends_program(each.kind) ? ending : others;
    EXPECT_TRUE(others.empty() || &list == &others) << each.text;
    list.emplace_back(analysis::finding_row(each.kind).name);
  }
  EXPECT_EQ(ending, (std::vector<std::string>{"memory_growth", "near_out_of_memory"}));
  EXPECT_FALSE(others.empty()) << "the drift of step times";
}

TEST(Findings, AllocationsThatFailForWantOfMemory) {
  RunMaker run(4);
  run.refuse(1, uint64_t{3} << 30, 2);
  run.refuse(2, uint64_t{2} << 30, 2);
  run.refuse(3, 1 << 20, 1);  // for another reason
  EXPECT_EQ(found(run.dump(), "failed_allocations"),
            "rank 0: cudaMalloc of 2.0 GiB failed for want of memory, 2 times in the window. "
            "GPUPROF_MEMORY=1 lists what holds memory then, GPUPROF_STACKS=alloc its lines of "
            "code\n");
  EXPECT_EQ(found(RunMaker(4).dump(), "failed_allocations"), "");
}

TEST(Findings, NoOwnerOfMostIsNamedWhereThereIsNone) {
  RunMaker run(10);
  for (size_t step = 0; step < run.steps(); ++step) {
    for (uint64_t i = 0; i < 3; ++i) {
      run.give(step, 0x1000000 * (i + 1) + step * 0x10000, (6 - i) << 10,
               fmt::format("part {}", i));
    }
  }
  EXPECT_NE(found(run.dump(), "memory_growth").find("; the largest part by part 0 ("),
            std::string::npos);
}

// A request's cache grows in each forward pass.
TEST(Findings, MemoryThatGrowsInForwardPassesEndsNoProgram) {
  RunMaker run(10);
  run.step_source = "forward";
  for (size_t step = 0; step < run.steps(); ++step) {
    run.give(step, 0x1000000 + step * 0x100000, 1 << 20, "keys");
  }
  const std::string dump = run.dump();
  EXPECT_EQ(found(dump, "memory_growth"), "");
  EXPECT_NE(found(dump, "growing_cache").find("by 1.0 MiB in each forward pass"),
            std::string::npos);
  EXPECT_FALSE(analysis::ends_program(analysis::FindingKind::growing_cache));
}

TEST(Findings, MemoryThatIsGivenBackDoesNotGrow) {
  RunMaker run(10);
  for (size_t step = 0; step < run.steps(); ++step) {
    run.give(step, 0x1000000 + step * 0x100000, 1 << 20);
    run.take(step, 0x1000000 + step * 0x100000);
  }
  EXPECT_EQ(found(run.dump(), "memory_growth"), "");
}

TEST(Findings, MemoryThatIsNearlyFull) {
  const auto full = [](uint64_t percent) {
    RunMaker run(4);
    run.add_counter(Counter::memory_used, {1 << 30, (uint64_t{80} << 30) / 100 * percent, 1 << 30});
    return found(run.dump(), "near_out_of_memory");
  };
  EXPECT_EQ(full(97),
            "GPU 0: 77.6 GiB of 80.0 GiB in use (97 %). GPUPROF_MEMORY=1 lists what holds them, "
            "GPUPROF_STACKS=alloc its lines of code\n");
  EXPECT_EQ(full(90), "");
}

// ---- time --------------------------------------------------------------------------------------

TEST(Findings, StepsThatBecomeSlowerOverTheRun) {
  const std::string text = found(RunMaker(lengths(100, 0.3), 90).dump(), "step_time_drift");
  // The middles of the first and of the last third of the steps 9 to 89.
  EXPECT_NE(text.find("rank 0: steps became 15 % longer over the run (1.07 ms to 1.23 ms)"),
            std::string::npos)
      << text;
  EXPECT_NE(found(RunMaker(lengths(100, -0.2), 90).dump(), "step_time_drift").find("shorter"),
            std::string::npos);
  EXPECT_EQ(found(RunMaker(lengths(100, 0.04), 90).dump(), "step_time_drift"), "");
}

// Recording makes steps longer; that is no drift of the program.
TEST(Findings, StepsThatAreSlowerWhereTheyAreRecorded) {
  const auto run = [](size_t before, uint64_t recorded_us, const std::string& kind) {
    std::vector<uint64_t> lengths(before, 1000);
    for (size_t i = 0; i < lengths.size(); ++i) lengths[i] += i * 7 % 5;
    lengths.insert(lengths.end(), 30, recorded_us);
    RunMaker run(lengths, before);
    run.header.set_schedule("skip_first=10,warmup=2,active=30,repeat=1");
    return found(run.dump(), kind);
  };
  EXPECT_EQ(run(60, 1300, "slower_recorded"),
            "rank 0: steps of the window took 30 % longer than the 20 before it (1.300 ms, before "
            "1.002 ms; medians): recording slows the host, or the program does something else. "
            "Without that, causes of the host's have a smaller share. GPUPROF_PRESET=light takes "
            "less\n");
  EXPECT_EQ(run(60, 1300, "step_time_drift"), "");
  EXPECT_EQ(run(60, 1030, "slower_recorded"), "") << "less than 5 %";
  EXPECT_NE(run(10, 1300, "slower_recorded").find("than the 5 before it"), std::string::npos);
  EXPECT_EQ(run(9, 1300, "slower_recorded"), "") << "of the program's start, or warm-up";
}

// What the hooks and CUPTI count is less than all that recording costs: no line says otherwise.
TEST(Findings, TheCostOfRecordingStandsInEachAnswer) {
  const auto trace_of = [](uint64_t recorded_us) {
    std::vector<uint64_t> lengths(30, 1000);
    lengths.insert(lengths.end(), 10, recorded_us);
    RunMaker run(lengths, 30);
    run.header.set_schedule("skip_first=10,warmup=2,active=10,repeat=1");
    return load(run.dump());
  };
  const Trace slower = trace_of(1300), same = trace_of(1000);
  const Json told = describe_summary(slower, slower.processes[0])["slowdown"];
  EXPECT_EQ(told["steps_before"], 20);
  EXPECT_NEAR(told["percent"].get<double>(), 30, 0.1);
  EXPECT_TRUE(describe_summary(same, same.processes[0])["slowdown"].is_null());
  const auto text = [](const Trace& trace) {
    return report_text(analysis::make_report(trace), TextOptions{});
  };
  EXPECT_NE(text(slower).find("in its own code and CUPTI's, more in all (see above). Lost"),
            std::string::npos);
  EXPECT_EQ(text(same).find("more in all"), std::string::npos);
}

TEST(Findings, OfManyWindowsThatAreSlowerTheMiddleOneIsNamed) {
  std::string dumps;
  for (const uint64_t us : {1200, 1300, 1400}) {
    std::vector<uint64_t> lengths(30, 1000);
    lengths.insert(lengths.end(), 10, us);
    RunMaker run(lengths, 30);
    run.header.set_schedule("skip_first=10,warmup=2,active=10,repeat=1");
    run.header.set_rank(static_cast<int32_t>(us / 100) - 12);
    dumps += run.dump();
  }
  const std::string text = found(dumps, "slower_recorded");
  EXPECT_EQ(text.find("rank 1 (the median of 3 windows): steps of the window took 30 %"), 0u)
      << text;
}

// Window 1 of a cycle: before its warm-up lie the steps of `wait` alone.
TEST(Findings, OfStepsBeforeALaterWindowThoseAfterTheOneBeforeCount) {
  std::vector<uint64_t> lengths(40, 1500);  // recorded, as far as this window knows
  lengths.insert(lengths.end(), 12, 1000);
  lengths.insert(lengths.end(), 10, 1500);
  RunMaker run(lengths, 52);
  run.window = 1;
  run.header.set_schedule("skip_first=10,wait=10,warmup=2,active=10,repeat=2");
  EXPECT_NE(found(run.dump(), "slower_recorded").find("50 % longer than the 8 before it"),
            std::string::npos);
}

// Its window lies in the first tenth, which is warm-up.
TEST(Findings, AnEvenRunWithASlowFirstWindowHasNoDrift) {
  std::vector<uint64_t> run = lengths(200, 0);
  for (size_t i = 0; i < 15; ++i) run[i] += 200;
  RunMaker early({run.begin(), run.begin() + 15}, 5), late(run, 190);
  late.window = 1;
  EXPECT_EQ(found(early.dump() + late.dump(), "step_time_drift"), "");
}

TEST(Findings, TheLastWindowHasTheLongestLog) {
  RunMaker early(lengths(20, 0), 10), late(lengths(100, 0.3), 90);
  late.window = 1;
  EXPECT_NE(found(early.dump() + late.dump(), "step_time_drift").find("13 % longer over the run"),
            std::string::npos);
}

// As several traces of torch.profiler, which have no steps but their own.
TEST(Findings, StepsOfALaterWindowThatAreSlower) {
  const auto two = [](double slower) {
    RunMaker first(lengths(6, 0)), second(lengths(6, 0));
    std::vector<uint64_t> later;
    for (const uint64_t length : lengths(6, 0)) {
      later.push_back(static_cast<uint64_t>(static_cast<double>(length) * slower));
    }
    RunMaker last(later);
    second.window = 1, last.window = 2;
    return found(first.dump() + second.dump() + last.dump(), "step_time_drift");
  };
  EXPECT_EQ(two(1.2),
            "rank 0: steps became 20 % longer from window 0 to window 2 (1.00 ms to 1.20 ms)\n");
  EXPECT_EQ(two(1.02), "");
  EXPECT_EQ(two(1), "");
}

// Six steps that scatter more than they differ.
TEST(Findings, NoiseBetweenWindowsIsNoDrift) {
  RunMaker first({900, 1300, 1000, 800, 1200, 1100}), second({1000, 1400, 1100, 900, 1300, 1200});
  second.window = 1;
  EXPECT_EQ(found(first.dump() + second.dump(), "step_time_drift"), "");
}

// ---- the GPU -----------------------------------------------------------------------------------

TEST(Findings, SmallGridsOnABusyGpu) {
  const auto text = [](uint32_t blocks, uint32_t threads = 256) {
    RunMaker busy(6);
    busy.threads = threads;
    for (size_t step = 0; step < busy.steps(); ++step) {
      busy.blocks = blocks;
      busy.add_kernel(step, 940);  // beside the run's own
    }
    return found(busy.dump(), "low_gpu_efficiency");
  };
  EXPECT_NE(text(8).find("have blocks for only"), std::string::npos);
  EXPECT_EQ(text(4096), "");
  EXPECT_EQ(text(4096, 32), "") << "few threads in each multiprocessor, as of matrix products";
}

TEST(Findings, ProductsThatTensorCoresCouldDo) {
  const auto text = [](const char* name) {
    RunMaker run(6);
    run.kernel_name = name;
    for (size_t step = 0; step < run.steps(); ++step) run.add_kernel(step, 600);
    return found(run.dump(), "without_tensor_cores");
  };
  EXPECT_NE(text("cutlass_80_simt_sgemm_256x128_8x4_nn_align1")
                .find("for 40 % of kernel time 32-bit numbers are multiplied without Tensor cores"),
            std::string::npos);
  EXPECT_EQ(text("nvjet_sm90_tst_192x128_64x5_1x2_h_bz_coopB_NNT"), "");
  EXPECT_EQ(text("gemm_fusion_dot_3"), "") << "not known";
}

// Its first kernel ends 320 us into the step.
// A launch begins 10 us into its step.
TEST(Findings, TimesOfGpuWorkThatCannotBeRight) {
  const std::string end = ". What this report says of GPU time may be wrong by as much\n";
  RunMaker early(3);
  early.add_kernel(1, 8, 4);
  EXPECT_EQ(found(early.dump(), "impossible_times"),
            "rank 0: the times of 25.0 % of GPU work cannot be right: 1 piece of it begins before "
            "its call, by up to 6.000 us" +
                end);
  RunMaker repeated(4);
  repeated.add_kernel(2, 900);
  EXPECT_EQ(found(repeated.dump(), "impossible_times"),
            "rank 0: the times of 20.0 % of GPU work cannot be right: 1 piece of it has the times "
            "of the piece before" +
                end);
}

TEST(Findings, TimesFromEventsMeanSomethingElse) {
  RunMaker run(4);
  EXPECT_EQ(found(run.dump(), "event_times"), "");
  run.gpu_times_from = "events";
  run.gpu_time_error_ns = 7000;
  EXPECT_EQ(
      found(run.dump(), "event_times").find("rank 0: GPU times are from CUDA events, at most 7.0"),
      0u);
}

TEST(Findings, TimesWithinTheErrorOfClocksAreRight) {
  RunMaker run(4);
  run.add_kernel(1, 8, 8);
  run.add_kernel(2, 1, 930);  // as traces in whole microseconds have them
  run.add_kernel(2, 1, 930);
  EXPECT_EQ(found(run.dump(), "impossible_times"), "");
}

TEST(Findings, WorkThatDoesNotBeginThoughTheGpuIsIdle) {
  const auto text = [](uint64_t begin_us) {
    RunMaker run(lengths(6, 0), 0, 30);
    for (size_t step = 0; step < run.steps(); ++step) {
      run.add_kernel(step, 100, begin_us);
      run.add_wait(step, 50, begin_us + 100);
    }
    return found(run.dump(), "stalled_work");
  };
  EXPECT_EQ(text(520).rfind("for 20.0 % of step time no GPU works although work was issued", 0), 0)
      << text(520);
  EXPECT_NE(text(520).find("For 100 % of that the main thread is in cudaDeviceSynchronize"),
            std::string::npos)
      << text(520);
  EXPECT_EQ(text(400), "");  // 8 %
}

TEST(Findings, CopiesThatUndoEachOther) {
  RunMaker run(6);
  for (size_t step = 0; step < run.steps(); ++step) {
    run.add_copy(step, false, 24'000'000);
    run.add_copy(step, true, 24'000'000);
    run.add_copy(step, true, 100'000'000);
  }
  EXPECT_EQ(found(run.dump(), "copies_undone"),
            "24.0 MB a step go to the GPU and come back from it, in 1.0 pieces of the same sizes: "
            "data that could stay there?\n");
}

TEST(Findings, CopiesOfTwoProcessesDoNot) {
  RunMaker up(6), down(6);
  for (size_t step = 0; step < up.steps(); ++step) {
    up.add_copy(step, true, 24'000'000);
    down.add_copy(step, false, 24'000'000);
  }
  down.header = make_header(1, 1);
  EXPECT_EQ(found(up.dump() + down.dump(), "copies_undone"), "");
}

TEST(Findings, CopiesOfOtherSizesDoNot) {
  RunMaker run(6);
  for (size_t step = 0; step < run.steps(); ++step) {
    run.add_copy(step, false, 24'000'000);
    run.add_copy(step, true, 25'000'000);
    run.add_copy(step, false, 4);
    run.add_copy(step, true, 4);
  }
  EXPECT_EQ(found(run.dump(), "copies_undone"), "");
}

// ---- gpu_throttled -----------------------------------------------------------------------------

const analysis::Verdict* throttled(const analysis::Report& report) {
  for (const analysis::Verdict& each : report.verdict) {
    if (each.cause == analysis::Cause::gpu_throttled) return &each;
  }
  return nullptr;
}

TEST(Throttled, CostsWhatTheLowerClockTakesOfTheComputeTime) {
  RunMaker run(10);
  // In a quarter of the samples at 60 % of the highest clock; idle clocks are no one's fault.
  run.add_counter(Counter::sm_clock, {1980, 1188, 1980, 345, 1980, 1188, 1980, 1980});
  run.add_counter(Counter::throttle_reasons, {0, 0x40, 0, 0x1, 0, 0x44, 0, 0});
  const analysis::Report report = analysis::make_report(load(run.dump()));
  const analysis::Verdict* const verdict = throttled(report);
  ASSERT_TRUE(verdict);
  const double lost = report.breakdown_pct[0] * 0.25 * 0.4;
  EXPECT_NEAR(verdict->share_pct, lost, 0.01);
  EXPECT_NEAR(verdict->saves_pct, lost, 0.01);
  ASSERT_FALSE(verdict->evidence.empty());
  EXPECT_EQ(verdict->evidence[0],
            "GPU 0: clock lowered in 25 % of samples (power cap, temperature (hardware)), 1188 MHz "
            "of 1980");
}

// The clock and the reasons of 20 samples, each seed another length and place of what is lowered.
void add_clocks(RunMaker& run, int seed, int lowered, uint64_t reason) {
  std::vector<uint64_t> clocks(20, 1980), reasons(20, 0);
  for (int i = 0; i < lowered; ++i) {
    const auto at = static_cast<size_t>((seed * 3 + i) % 20);
    clocks[at] = static_cast<uint64_t>(850 + 10 * seed);
    reasons[at] = reason;
  }
  run.add_counter(Counter::sm_clock, clocks);
  run.add_counter(Counter::throttle_reasons, reasons);
  run.add_counter(Counter::max_sm_clock, {1980});
}

TEST(Throttled, ThroughoutInPartAndNever) {
  for (int seed = 0; seed < 20; ++seed) {
    RunMaker throughout(10), third(10), never(10);
    add_clocks(throughout, seed, 20, 0x40);
    add_clocks(third, seed, 7, 0x20);
    add_clocks(never, seed, 20, 0x1);  // idle
    const analysis::Report all = analysis::make_report(load(throughout.dump()));
    ASSERT_TRUE(throttled(all)) << seed;
    const double lost = 1 - (850.0 + 10 * seed) / 1980;
    EXPECT_NEAR(throttled(all)->saves_pct, all.breakdown_pct[0] * lost, 0.01);
    EXPECT_TRUE(throttled(analysis::make_report(load(third.dump())))) << seed;
    EXPECT_FALSE(throttled(analysis::make_report(load(never.dump())))) << seed;
  }
}

TEST(Throttled, ByTheClockThatTheUserSet) {
  RunMaker run(10);
  run.add_counter(Counter::sm_clock, {1500, 900, 1500, 900});
  run.add_counter(Counter::throttle_reasons, {0x2, 0x40, 0x2, 0x40});
  run.add_counter(Counter::max_sm_clock, {1980});
  const analysis::Report report = analysis::make_report(load(run.dump()));
  ASSERT_TRUE(throttled(report));
  EXPECT_NEAR(throttled(report)->saves_pct, report.breakdown_pct[0] * 0.5 * 0.4, 0.01);
}

TEST(Throttled, NotByTheUsersOwnClocksNorWhereItCostsNothing) {
  RunMaker own(10), little(10);
  own.add_counter(Counter::sm_clock, {1980, 1000, 1000, 1000});
  own.add_counter(Counter::throttle_reasons, {0, 0x2, 0x2, 0x1});
  EXPECT_FALSE(throttled(analysis::make_report(load(own.dump()))));
  little.add_counter(Counter::sm_clock, {1980, 1975, 1975, 1975});
  little.add_counter(Counter::throttle_reasons, {0, 0x4, 0x4, 0x4});
  EXPECT_FALSE(throttled(analysis::make_report(load(little.dump()))));
}

}  // namespace
}  // namespace gpuprof::test
