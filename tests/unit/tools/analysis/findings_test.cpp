// SPDX-License-Identifier: Apache-2.0
// What the report finds beside the verdict, in runs made for it.
#include "tools/analysis/findings.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "tests/unit/support/job_model.h"
#include "tests/unit/support/run_maker.h"
#include "tools/analysis/left_out_kinds.h"
#include "tools/analysis/report.h"
#include "tools/describe.h"
#include "tools/report/report_text.h"

namespace gpuprof::test {
namespace {

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

// ---- a budget ----------------------------------------------------------------------------------

struct LeftOut {
  ShedKind kind;
  size_t step;
  uint64_t us;
  uint32_t cost_ppm;
};

// The host waits for a third of each step, and does something of its own for the rest.
std::string budget_dump(const std::vector<LeftOut>& left_out) {
  RunMaker run(std::vector<uint64_t>(10, 5 * kStepUs), 0, 30);
  for (size_t step = 0; step < run.steps(); ++step) run.add_wait(step, 20, 1525);
  for (const LeftOut& each : left_out) {
    run.leave_out(each.kind, each.step, each.us, each.cost_ppm);
  }
  return run.dump();
}

bool has_cause(const analysis::Report& report, analysis::Cause cause) {
  return std::any_of(report.verdict.begin(), report.verdict.end(),
                     [&](const analysis::Verdict& each) { return each.cause == cause; });
}

TEST(Findings, WhatABudgetLeftOutIsMissingSinceWhen) {
  EXPECT_EQ(found(budget_dump({}), "left_out_kinds"), "");
  EXPECT_TRUE(has_cause(analysis::make_report(load(budget_dump({}))), analysis::Cause::host_work))
      << report_text(analysis::make_report(load(budget_dump({}))), TextOptions{});
  const analysis::Report report =
      analysis::make_report(load(budget_dump({{ShedKind::stacks, 2, 500, 61000}})));
  EXPECT_EQ(
      text_of(report, "left_out_kinds"),
      "by GPUPROF_BUDGET (2 %) not recorded: call stacks since step 2 (10.500 ms into "
      "the window). Tables and counts of these are not whole. A larger budget keeps them, or a "
      "lighter GPUPROF_PRESET from the start\n");
  EXPECT_TRUE(report.unknown_causes.empty());
  EXPECT_TRUE(has_cause(report, analysis::Cause::host_work)) << "it needs no stacks";
}

TEST(Findings, CausesThatNeedWhatABudgetLeftOutAreUnknown) {
  const LeftOut calls{ShedKind::calls, 2, 500, 61000}, waits{ShedKind::waits, 3, 0, 61000};
  const analysis::Report without_calls = analysis::make_report(load(budget_dump({calls})));
  EXPECT_EQ(analysis::names_of(without_calls.unknown_causes),
            "kernel_launch, allocation, host_work");
  EXPECT_FALSE(has_cause(without_calls, analysis::Cause::host_work));
  EXPECT_NE(
      text_of(without_calls, "left_out_kinds")
          .find("it is not known whether they are there: kernel_launch, allocation, host_work"),
      std::string::npos);
  const analysis::Report report = analysis::make_report(load(budget_dump({calls, waits})));
  EXPECT_EQ(analysis::names_of(report.unknown_causes),
            "data_loading, kernel_launch, allocation, synchronization, host_work");
  EXPECT_TRUE(report.verdict.empty());
  EXPECT_NE(report.reason.find("what takes the rest is not known: GPUPROF_BUDGET left out API "
                               "calls that start no GPU work since step 2"),
            std::string::npos)
      << report.reason;
  const std::string text = report_text(report, TextOptions{});
  EXPECT_NE(text.find("Waiting for the GPU; not recorded since step 3"), std::string::npos) << text;
}

TEST(Findings, CausesThatNeedWhatTheSettingsLeftOutAreUnknown) {
  Trace trace = load(budget_dump({}));
  EXPECT_TRUE(has_cause(analysis::make_report(trace), analysis::Cause::host_work));
  for (Process& process : trace.processes) {
    dump::Setting& setting = *process.header.add_setting();
    setting.set_name("GPUPROF_ACTIVITIES");
    setting.set_value("-op");
  }
  const analysis::Report report = analysis::make_report(trace);
  EXPECT_FALSE(has_cause(report, analysis::Cause::host_work)) << "it may be a data loader's";
  EXPECT_EQ(analysis::names_of(report.unknown_causes).substr(0, 12), "data_loading");
  EXPECT_NE(report.reason.find(
                "GPUPROF_PRESET or GPUPROF_ACTIVITIES left out PyTorch's operators and layers"),
            std::string::npos)
      << report.reason;
  EXPECT_EQ(analysis::unknown_parts_text(analysis::unknown_parts(report.left_out), false),
            "Not known apart, since GPUPROF_PRESET or GPUPROF_ACTIVITIES left out records: "
            "data_loading, kernel_launch, allocation, synchronization, other");
  const std::string text = report_text(report, TextOptions{});
  EXPECT_NE(text.find("Not known apart"), std::string::npos) << text;
  EXPECT_EQ(text.find("GPUPROF_BUDGET"), std::string::npos) << text;
}

TEST(Findings, InfoTellsABudgetAndWhatItLeftOut) {
  const Trace without = load(budget_dump({}));
  EXPECT_TRUE(describe_summary(without, without.processes[0])["budget"].is_null());
  const Trace trace = load(budget_dump(  // the second in a window before
      {{ShedKind::operators, 4, 250, 61000}, {ShedKind::samples, 0, 0, 0}}));
  const Json told = describe_summary(trace, trace.processes[0])["budget"];
  EXPECT_EQ(told["percent"], 2.0);
  EXPECT_TRUE(told["cost_percent"].is_null()) << "as of a killed process";
  ASSERT_EQ(told["left_out"].size(), 2u);
  EXPECT_EQ(told["left_out"][0]["kind"], "operators");
  EXPECT_EQ(told["left_out"][0]["since_step"], 4);
  EXPECT_NEAR(told["left_out"][0]["cost_percent"].get<double>(), 6.1, 1e-9);
  EXPECT_TRUE(told["left_out"][1]["cost_percent"].is_null());
  EXPECT_EQ(
      describe_budget(trace.processes[0]),
      "2 % of the window: not recorded are PyTorch's operators and layers since step 4 "
      "(20.250 ms into the window), where they took 6.10 %; host samples in the whole window; "
      "what recording costs so is not known");
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
  RunMaker again(4);
  again.refuse(1, uint64_t{2} << 30, 2);
  again.give(1, 0x1000000, uint64_t{2} << 30);  // the cache was freed
  EXPECT_NE(found(again.dump(), "failed_allocations").find("; it asked again and got as much."),
            std::string::npos);
  EXPECT_FALSE(analysis::ends_program(analysis::FindingKind::failed_allocations));
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
  EXPECT_NE(text.find("rank 0: steps became 15 % longer over the run (1.067 ms to 1.231 ms)"),
            std::string::npos)
      << text;
  EXPECT_NE(found(RunMaker(lengths(100, -0.2), 90).dump(), "step_time_drift").find("shorter"),
            std::string::npos);
  EXPECT_EQ(found(RunMaker(lengths(100, 0.04), 90).dump(), "step_time_drift"), "");
}

// As those of a server's forward passes, or of a small graph.
TEST(Findings, ShortStepsThatBecomeSlower) {
  std::vector<uint64_t> steps;
  for (const uint64_t us : lengths(100, 0.5)) steps.push_back(us / 100);
  EXPECT_EQ(found(RunMaker(steps, 90).dump(), "step_time_drift"),
            "rank 0: steps became 18 % longer over the run (11.000 us to 13.000 us)\n");
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
  EXPECT_NE(text(slower).find("for records and within CUPTI, more in all"), std::string::npos);
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
            "rank 0: steps became 20 % longer from window 0 to window 2 (1.001 ms to 1.201 ms)\n");
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

// What Tensor cores multiply, by compute capability; where that is not known, by the name.
TEST(Findings, NoTypeIsAdvisedThatTheTensorCoresLack) {
  const auto text = [](uint32_t major, const char* device) {
    RunMaker run(6);
    run.header.mutable_device(0)->set_compute_major(major);
    run.header.mutable_device(0)->set_name(device);
    run.kernel_name = "volta_sgemm_128x64_nn";
    for (size_t step = 0; step < run.steps(); ++step) run.add_kernel(step, 600);
    return found(run.dump(), "without_tensor_cores");
  };
  const std::string begin =
      "for 40 % of kernel time 32-bit numbers are multiplied without Tensor cores, most in "
      "volta_sgemm_128x64_nn. ";
  const std::string fp16 = begin +
                           "With less exact products these can be used: fp16 by autocast, with a "
                           "GradScaler in training\n";
  const std::string unknown = begin + "Whether the GPU has any is not known\n";
  EXPECT_EQ(text(7, "Quadro GV100"), fp16);
  EXPECT_EQ(text(7, "NVIDIA GeForce GTX 1660"), "");
  EXPECT_EQ(text(6, "Tesla P100-PCIE-16GB"), "");
  EXPECT_EQ(text(0, "Tesla V100-SXM2-16GB"), fp16);
  EXPECT_EQ(text(0, "Quadro GV100"), unknown);
  EXPECT_EQ(text(0, ""), unknown);
  for (const uint32_t major : {8, 9, 10}) {
    EXPECT_NE(text(major, "any").find(": TF32 (torch."), std::string::npos) << major;
  }
  EXPECT_EQ(text(0, "NVIDIA A100-SXM4-80GB"), text(8, "any"));
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

// CUPTI gives times of what a graph holds, events of the graph alone.
TEST(Findings, GraphsThatAreTimedAsAWholeAndWhy) {
  const auto text = [](const char* times) {
    RunMaker run(4);
    run.gpu_times_from = times;
    for (size_t step = 0; step < run.steps(); ++step) run.add_graph(step, 40, 930);
    return found(run.dump(), "whole_graphs");
  };
  const std::string begin = "4 % of step time is CUDA graphs that are timed as a whole: ";
  const std::string counted = "Their collectives and copies count as compute. ";
  EXPECT_EQ(text(""), begin +
                          "CUPTI gave no times of their kernels (captured before the window), or "
                          "graph:trace was asked for. " +
                          counted +
                          "A window that is open when they are captured has their kernels\n");
  EXPECT_EQ(text("events"), begin + "CUDA events tell nothing of their kernels. " + counted +
                                "With GPUPROF_GPU_TIMES=cupti, a window that is open when they are "
                                "captured has their kernels\n");
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

// ---- a host that is ahead ----------------------------------------------------------------------

TEST(Findings, StepsOfAHostThatIsAheadAreNotTheGpus) {
  for (const int sync_every : {1, 1'000'000}) {
    Job job;
    job.sync_every = sync_every;
    const analysis::Report report = analysis::make_report(JobModel(job).trace());
    const std::string text = text_of(report, "host_ahead");
    EXPECT_EQ(text.empty(), sync_every == 1) << text << report.step_time.mean_us;
    if (sync_every > 1) {
      EXPECT_NE(text.find("4.8"), std::string::npos) << text;
    }
  }
}

}  // namespace
}  // namespace gpuprof::test
