// SPDX-License-Identifier: Apache-2.0
// Who caused what: operators, layers, lines of code, owners of memory, arithmetic, on a small trace
// as torch.profiler writes it.
#include "tools/analysis/operators.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>

#include "formats/kineto_reader/reader.h"
#include "tools/analysis/code_place.h"
#include "tools/analysis/report.h"
#include "tools/report/operator_text.h"

namespace gpuprof::analysis {
namespace {

// A step of 1000 us: a module calls linear(addmm), which takes 100 us of the GPU; a backward thread
// calls mm, 200 us; .item() waits at train.py:41.
std::string step_events(int step) {
  const double at = 10000 + 1000 * step;
  const int id = 10 * step;
  std::string out;
  const auto add = [&](const char* category, const char* name, double begin, double length, int pid,
                       int tid, const std::string& args) {
    out += fmt::format(
        R"(,{{"ph":"X","cat":"{}","name":"{}","ts":{},"dur":{},"pid":{},"tid":{},"args":{{{}}}}})",
        category, name, at + begin, length, pid, tid, args);
  };
  const auto flow = [&](const char* phase, double begin, int tid) {
    out += fmt::format(
        R"(,{{"ph":"{}","bp":"e","cat":"fwdbwd","name":"fwdbwd","id":{},"ts":{},"pid":9,"tid":{}}})",
        phase, id + 1, at + begin, tid);
  };
  const auto launch = [&](const char* name, int number, double begin, int tid, double gpu,
                          double length) {
    add("cuda_runtime", "cudaLaunchKernel", begin, 5, 9, tid,
        fmt::format(R"("correlation":{})", id + number));
    add("kernel", name, gpu, length, 0, 7,
        fmt::format(
            R"("correlation":{},"stream":7,"device":0,"context":1,"grid":[8,1,1],"block":[128,1,1])",
            id + number));
  };
  add("user_annotation", fmt::format("ProfilerStep#{}", step).c_str(), 0, 1000, 9, 9, "");
  add("python_function", "nn.Module: Linear_0", 10, 200, 9, 9,
      R"("Python id":1,"Python module id":0)");
  add("cpu_op", "aten::linear", 20, 100, 9, 9,
      R"("Input Dims":[[64,32],[16,32]],"Input type":["float","float"])");
  add("cpu_op", "aten::addmm", 30, 60, 9, 9,
      R"("Sequence number":5,"Input Dims":[[16],[64,32],[32,16],[],[]],"Input type":["float","float","float","Scalar","Scalar"])");
  flow("s", 30, 9);
  launch("ampere_tf32_s1688gemm_128x64_sliced1x2_ldg8_f2f_tn", 1, 40, 9, 60, 100);
  add("cpu_op", "AddmmBackward0", 300, 80, 9, 10, R"("Sequence number":5,"Fwd thread id":1)");
  flow("f", 300, 10);
  add("cpu_op", "aten::mm", 310, 50, 9, 10,
      R"("Input Dims":[[16,64],[64,32]],"Input type":["float","float"])");
  launch("ampere_tf32_s1688gemm_128x64_sliced1x2_ldg8_f2f_tn", 2, 320, 10, 340, 200);
  add("python_function", "/home/me/train.py(41): main", 600, 300, 9, 9, R"("Python id":2)");
  add("python_function", "/usr/lib/python3/site-packages/torch/_tensor.py(5): item", 610, 200, 9, 9,
      R"("Python id":3,"Python parent id":2)");
  add("cuda_runtime", "cudaStreamSynchronize", 620, 100, 9, 9,
      fmt::format(R"("correlation":{})", id + 3));
  return out;
}

Trace trace_of(const std::string& events, const char* device = "NVIDIA A100-SXM4-80GB") {
  const std::string path = testing::TempDir() + "operators_" + std::to_string(::getpid());
  std::ofstream(path) << R"({"schemaVersion":1,"deviceProperties":[{"id":0,"name":")" << device
                      << R"(","totalGlobalMem":85000000000}],"traceEvents":[)" << events.substr(1)
                      << "]}";
  Trace trace;
  read_kineto(path, trace);
  std::filesystem::remove(path);
  return trace;
}

Report report_of(const std::string& events) {
  static Trace trace;
  trace = trace_of(events);
  return make_report(trace);
}

std::string three_steps() { return step_events(0) + step_events(1) + step_events(2); }

const OperatorRow* row_of(const std::vector<OperatorRow>& rows, std::string_view name) {
  for (const OperatorRow& row : rows) {
    if (row.name == name) return &row;
  }
  return nullptr;
}

// A row of the grouped operators.
const OperatorRow* row_of(const Report& report, std::string_view name, std::string_view by) {
  for (const OperatorRow& row : report.operators.grouped) {
    if (row.name == name && row.by == by) return &row;
  }
  return nullptr;
}

Report grouped(const std::string& events, Grouping grouping) {
  static Trace trace;
  trace = trace_of(events);
  return make_report(trace, Depth::tables, grouping);
}

TEST(Operators, AreToldApartByTheShapesOfTheirInputs) {
  const Report report = grouped(three_steps(), Grouping::shape);
  const OperatorRow* const mm = row_of(report, "aten::mm", "[[16,64],[64,32]]");
  ASSERT_TRUE(mm && row_of(report, "aten::linear", "[[64,32],[16,32]]"));
  EXPECT_EQ(mm->count, 3U);
  EXPECT_DOUBLE_EQ(mm->gpu_self_us, 600);
  EXPECT_TRUE(row_of(report, "AddmmBackward0", "")) << "its shapes are not recorded";
  double self = 0, all = 0;
  for (const OperatorRow& row : report.operators.grouped) self += row.gpu_self_us;
  for (const OperatorRow& row : report.operators.operators) all += row.gpu_self_us;
  EXPECT_DOUBLE_EQ(self, all);
}

// 12 calls of aten::div a step: two alone, one with only another in it, one with another and a call
// of CUDA's, and two in one.
TEST(Operators, CallsThatHoldOnlyOneOfTheirNameAreOne) {
  std::string events = three_steps();
  const auto add = [&](const char* category, const char* name, int begin, int length) {
    events += fmt::format(
        R"(,{{"ph":"X","cat":"{}","name":"{}","ts":{},"dur":{},"pid":9,"tid":9,"args":{{"Input Dims":[[2]]}}}})",
        category, name, 11000 + begin, length);
  };
  const auto div = [&](int begin, int length) { add("cpu_op", "aten::div", begin, length); };
  div(400, 10);
  div(420, 40), div(430, 20), add("cpu_op", "aten::to", 432, 4);
  add("cuda_runtime", "cudaGetDevice", 440, 3);
  div(470, 20), add("cuda_runtime", "cudaGetDevice", 471, 2), div(474, 10);
  div(500, 40), div(505, 10), div(520, 10);
  div(550, 30), div(555, 20), div(560, 10);  // three in a row are one
  const Report report = grouped(events, Grouping::shape);
  const OperatorRow* const row = row_of(report.operators.operators, "aten::div");
  ASSERT_TRUE(row);
  EXPECT_EQ(row->count, 1U + 1 + 2 + 3 + 1);
  EXPECT_DOUBLE_EQ(row->cpu_us, 10 + 40 + 20 + 40 + 30);
  EXPECT_DOUBLE_EQ(row->cpu_self_us, 140 - 4);
  EXPECT_DOUBLE_EQ(row->cpu_call_us, 3 + 2);
  EXPECT_EQ(row_of(report, "aten::div", "[[2]]")->count, row->count);
}

TEST(Operators, AreToldApartByLayerInBothPasses) {
  const Report report = grouped(three_steps(), Grouping::layer);
  EXPECT_TRUE(row_of(report, "aten::addmm", "nn.Module: Linear_0"));
  EXPECT_TRUE(row_of(report, "aten::mm", "nn.Module: Linear_0")) << "of the backward pass";
  EXPECT_TRUE(row_of(report, "AddmmBackward0", "nn.Module: Linear_0"));
  const OperatorRow* const layer = row_of(report.operators.modules, "nn.Module: Linear_0");
  ASSERT_TRUE(layer);
  EXPECT_DOUBLE_EQ(layer->gpu_us, 900);
  EXPECT_DOUBLE_EQ(layer->gpu_backward_us, 600);
}

// With an operator that has a stack of its own, and one within functions of Python.
std::string stack_events() {
  std::string out = three_steps();
  const auto add = [&](const char* name, int begin, const char* args) {
    out += fmt::format(
        R"(,{{"ph":"X","cat":"cpu_op","name":"{}","ts":{},"dur":4,"pid":9,"tid":9,"args":{{{}}}}})",
        name, begin, args);
  };
  add("aten::own", 11650,
      R"("Call stack":"torch/nn/functional.py(7): call;/home/me/net.py(3): forward")");
  add("aten::open", 11660, "");
  return out;
}

TEST(Operators, AreToldApartByStackAndLine) {
  const Report by_stack = grouped(stack_events(), Grouping::stack);
  EXPECT_TRUE(row_of(by_stack, "aten::own", "functional.py:7 call < net.py:3 forward"));
  EXPECT_TRUE(row_of(by_stack, "aten::open", "_tensor.py:5 item < train.py:41 main"));
  const Report by_line = grouped(stack_events(), Grouping::line);
  EXPECT_TRUE(row_of(by_line, "aten::own", "net.py:3 forward"));
  EXPECT_TRUE(row_of(by_line, "aten::open", "train.py:41 main"));
}

TEST(Operators, MemoryIsWhatIsGivenOutLessWhatIsTakenBack) {
  std::string events = three_steps();
  const auto memory = [&](int at, int64_t bytes, int address) {
    events += fmt::format(
        R"(,{{"ph":"i","cat":"cpu_instant_event","s":"t","name":"[memory]","ts":{},"pid":9,"tid":9,"args":{{"Bytes":{},"Addr":{},"Device Type":1,"Device Id":0,"Total Allocated":9000,"Total Reserved":9000}}}})",
        at, bytes, address);
  };
  memory(11025, 1000, 1);  // in aten::linear, and in the module
  memory(11035, 500, 2);   // in aten::addmm below it
  memory(11045, -200, 3);
  const Report report = report_of(events);
  const OperatorRow* const linear = row_of(report.operators.operators, "aten::linear");
  const OperatorRow* const addmm = row_of(report.operators.operators, "aten::addmm");
  const OperatorRow* const layer = row_of(report.operators.modules, "nn.Module: Linear_0");
  ASSERT_TRUE(linear && addmm && layer);
  EXPECT_EQ(linear->memory_bytes, 1300);
  EXPECT_EQ(linear->memory_self_bytes, 1000);
  EXPECT_EQ(addmm->memory_self_bytes, 300);
  EXPECT_EQ(layer->memory_bytes, 1300);
}

// A model of three layers and a head.
Report layered() {
  Report report;
  report.gpu_timed = true;
  report.steps.resize(2);
  const auto add = [&](const char* name, double gpu, double backward) {
    OperatorRow row;
    row.name = std::string("nn.Module: ") + name;
    row.kind = "module";
    row.count = 2;
    row.gpu_us = gpu;
    row.gpu_backward_us = backward;
    report.operators.modules.push_back(row);
  };
  add("GPT.blocks.1 (Block)", 450, 300);
  add("GPT.blocks.0.attention (Attention)", 400, 250);
  add("GPT.blocks.0 (Block)", 500, 300);
  add("GPT.head (Linear)", 50, 0);
  add("GPT", 1000, 600);
  return report;
}

TEST(LayerText, IsATreeByPaths) {
  const std::string text = layer_text(layered(), {});
  size_t at = 0;
  for (const char* const row :
       {"  GPT\n", "    blocks.0 (Block)\n", "      attention (Attention)\n",
        "    blocks.1 (Block)\n", "    head (Linear)\n"}) {
    at = text.find(row, at);
    ASSERT_NE(at, std::string::npos) << row << text;
  }
  EXPECT_NE(text.find("500 us   200 us    300 us"), std::string::npos) << text;
}

TEST(LayerText, OneWhoseSurroundingsAreNotListedHasItsWholePath) {
  TextOptions options;
  options.filter = "attention|blocks.1";
  const std::string text = layer_text(layered(), options);
  EXPECT_NE(text.find("  GPT.blocks.0.attention (Attention)\n"), std::string::npos) << text;
  EXPECT_EQ(text.find("head"), std::string::npos) << text;
}

TEST(Operators, SelfAndTotal) {
  const OperatorTables tables = report_of(three_steps()).operators;
  const OperatorRow* const linear = row_of(tables.operators, "aten::linear");
  const OperatorRow* const addmm = row_of(tables.operators, "aten::addmm");
  ASSERT_TRUE(linear && addmm);
  EXPECT_EQ(linear->count, 3u);
  EXPECT_NEAR(linear->cpu_us, 300, 0.01);
  EXPECT_NEAR(linear->cpu_self_us, 120, 0.01);
  EXPECT_NEAR(linear->gpu_us, 300, 0.01);
  EXPECT_NEAR(linear->gpu_self_us, 0, 0.01);
  EXPECT_NEAR(addmm->gpu_self_us, 300, 0.01);
  EXPECT_NEAR(addmm->cpu_self_us, 180, 0.01);
  EXPECT_EQ(row_of(tables.operators, "ProfilerStep#1"), nullptr);
}

TEST(Operators, ALayerHasTheWorkOfItsBackwardPass) {
  const OperatorTables tables = report_of(three_steps()).operators;
  ASSERT_EQ(tables.modules.size(), 1u);
  EXPECT_EQ(tables.modules[0].name, "nn.Module: Linear_0");
  EXPECT_EQ(tables.modules[0].count, 3u);
  EXPECT_NEAR(tables.modules[0].cpu_us, 600, 0.01);
  EXPECT_NEAR(tables.modules[0].gpu_us, 900, 0.01);  // 100 forward and 200 backward, each step
}

TEST(Operators, LinesOfCode) {
  const OperatorTables tables = report_of(three_steps()).operators;
  ASSERT_EQ(tables.places.size(), 1u);
  EXPECT_EQ(tables.places[0].kind, "synchronization");
  EXPECT_EQ(tables.places[0].place, "train.py:41 main");
  EXPECT_EQ(tables.places[0].count, 3u);
  EXPECT_NEAR(tables.places[0].total_us, 300, 0.01);
}

TEST(Operators, ArithmeticOfKnownShapes) {
  const Report report = report_of(three_steps());
  const double flop = 2.0 * 64 * 32 * 16 + 2.0 * 16 * 64 * 32;  // linear counts once: as addmm
  EXPECT_DOUBLE_EQ(report.operators.arithmetic.flop_per_step, flop);
  EXPECT_NEAR(report.operators.arithmetic.tflops, flop / 1e-3 / 1e12, 1e-6);
  // TF32 on an A100: 156 TFLOP/s.
  EXPECT_NEAR(report.operators.arithmetic.mfu_pct, 100 * flop / 156e12 / 1e-3, 1e-6);
  EXPECT_NEAR(report.operators.arithmetic.counted_time_pct, 100, 0.01);
  EXPECT_EQ(row_of(report.operators.operators, "aten::linear")->flop, 0);
  const auto found =
      std::find_if(report.findings.begin(), report.findings.end(),
                   [](const Finding& each) { return each.kind == FindingKind::achieved_flops; });
  ASSERT_NE(found, report.findings.end());
  EXPECT_NEAR(found->value, flop / 1e-3 / 1e12, 1e-6);
  EXPECT_NE(found->text.find(
                fmt::format("{:.1f} % of what the GPU can do (MFU)", 100 * flop / 156e12 / 1e-3)),
            std::string::npos)
      << found->text;
}

// Each of four GPUs does what one does alone, for a thread of its own.
TEST(Operators, ArithmeticOfSeveralGpusIsThatOfOne) {
  static constexpr const char* kernel = "ampere_tf32_s1688gemm_128x128_ldg8_f2f_tn";
  const auto job = [](int gpus) {
    std::string events = three_steps();
    for (int gpu = 0; gpu < gpus; ++gpu) {
      for (const int step : {0, 1, 2}) {
        const int at = 10000 + 1000 * step, correlation = 5000 + 10 * gpu + step;
        events += fmt::format(
            R"(,{{"ph":"X","cat":"cpu_op","name":"aten::mm","ts":{},"dur":40,"pid":9,"tid":{},"args":{{"Input Dims":[[640,640],[640,640]],"Input type":["float","float"]}}}})"
            R"(,{{"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","ts":{},"dur":5,"pid":9,"tid":{},"args":{{"correlation":{}}}}})"
            R"(,{{"ph":"X","cat":"kernel","name":"{}","ts":{},"dur":300,"pid":{},"tid":20,"args":{{"stream":20,"device":{},"context":{},"correlation":{}}}}})",
            at + 700, 20 + gpu, at + 710, 20 + gpu, correlation, kernel, at + 720, gpu, gpu,
            gpu + 1, correlation);
      }
    }
    return report_of(events).operators.arithmetic;
  };
  const Arithmetic one = job(1), four = job(4);
  const double flop = 2.0 * 640 * 640 * 640, more = one.flop_per_step - flop;
  ASSERT_GT(more, 0);
  EXPECT_NEAR(one.mfu_pct, 100 * (flop + more) / 156e12 / 1e-3, 1e-6);
  EXPECT_NEAR(four.flop_per_step, 4 * flop + more, 1e-3);
  EXPECT_NEAR(four.mfu_pct, 100 * (flop + more / 4) / 156e12 / 1e-3, 1e-6);
  EXPECT_NEAR(four.tflops, (flop + more / 4) / 1e-3 / 1e12, 1e-9);
}

// An operator and its kernel that began before the first step, and the kernel that runs in it.
TEST(Operators, ArithmeticIsThatOfWholeSteps) {
  const auto early = [](const char* name) {
    return three_steps() +
           fmt::format(
               R"(,{{"ph":"X","cat":"cpu_op","name":"{}","ts":9500,"dur":40,"pid":9,"tid":9,"args":{{"External id":990,"Input Dims":[[640,640],[640,640]],"Input type":["float","float"]}}}})",
               name);
  };
  const Arithmetic whole = report_of(early("aten::empty")).operators.arithmetic;
  ASSERT_GT(whole.flop_per_step, 0);
  const std::string events =
      early("aten::mm") +
      R"(,{"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","ts":9510,"dur":5,"pid":9,"tid":9,"args":{"correlation":9990,"External id":990}})"
      R"(,{"ph":"X","cat":"kernel","name":"early_gemm","ts":10005,"dur":15,"pid":0,"tid":7,"args":{"stream":7,"device":0,"context":1,"correlation":9990,"External id":990}})";
  const Arithmetic more = report_of(events).operators.arithmetic;
  EXPECT_DOUBLE_EQ(more.flop_per_step, whole.flop_per_step);
  EXPECT_DOUBLE_EQ(more.tflops, whole.tflops);
  EXPECT_DOUBLE_EQ(more.mfu_pct, whole.mfu_pct);
  EXPECT_DOUBLE_EQ(more.counted_time_pct, whole.counted_time_pct);
}

// The last step's work runs after it.
TEST(Operators, WorkThatRunsAfterItsStepCounts) {
  const Arithmetic whole = report_of(three_steps()).operators.arithmetic;
  std::string events = three_steps();
  events +=
      R"(,{"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","ts":12950,"dur":5,"pid":9,"tid":9,"args":{"correlation":9991}})"
      R"(,{"ph":"X","cat":"kernel","name":"late","ts":13100,"dur":300,"pid":0,"tid":7,"args":{"stream":7,"device":0,"context":1,"correlation":9991}})";
  const Arithmetic more = report_of(events).operators.arithmetic;
  EXPECT_DOUBLE_EQ(more.flop_per_step, whole.flop_per_step);
  EXPECT_NEAR(more.counted_time_pct, 100 * 900.0 / 1200, 0.01);  // 300 of each step before
}

TEST(Operators, NoArithmeticWhereMostOfTheWorkIsNotKnown) {
  std::string events = three_steps();
  constexpr int kLength = 900;  // in each step, beside 300 of known arithmetic
  for (const int at : {0, 1000, 2000}) {
    events +=
        fmt::format(R"(,{{"ph":"X","cat":"kernel","name":"other","ts":{},"dur":{},"pid":0,"tid":8,)"
                    R"("args":{{"stream":8,"device":0,"context":1,"correlation":{}}}}})",
                    10000 + at + 50, kLength, 900 + at);
  }
  const Report report = report_of(events);
  EXPECT_EQ(report.operators.arithmetic.flop_per_step, 0);
  EXPECT_EQ(report.operators.arithmetic.mfu_pct, 0);
}

TEST(Operators, NoArithmeticWhereABudgetLeftOutOperatorsOfTheSteps) {
  Trace trace = trace_of(three_steps());
  Process& process = trace.processes.front();
  const int64_t end = process.window_steps().back().end;
  process.budget.left_out = {{ShedKind::operators, end - 1, 1}};
  EXPECT_EQ(make_report(trace).operators.arithmetic.flop_per_step, 0);
  process.budget.left_out = {{ShedKind::operators, end, 1}};
  EXPECT_GT(make_report(trace).operators.arithmetic.flop_per_step, 0);
}

TEST(Operators, MemoryAtItsPeakHasOwners) {
  std::string events = three_steps();
  const auto memory = [&](double time, int64_t bytes, int address, int64_t total,
                          int64_t reserved) {
    events += fmt::format(
        R"(,{{"ph":"i","s":"t","cat":"cpu_instant_event","name":"[memory]","ts":{},"pid":9,"tid":9,"args":{{"Device Type":1,"Device Id":0,"Addr":{},"Bytes":{},"Total Allocated":{},"Total Reserved":{}}}}})",
        10000 + time, address, bytes, total, reserved);
  };
  memory(35, 400'000'000, 1, 500'000'000, 600'000'000);     // in addmm, which a module calls
  memory(130, 300'000'000, 2, 800'000'000, 2'000'000'000);  // in the module alone
  memory(500, -300'000'000, 2, 500'000'000, 2'000'000'000);
  const Report report = report_of(events);
  const auto& owners = report.operators.memory_owners;
  ASSERT_EQ(owners.size(), 3u);
  EXPECT_EQ(owners[0].name, "aten::linear in nn.Module: Linear_0");
  EXPECT_EQ(owners[0].bytes, 400'000'000);
  EXPECT_EQ(owners[1].name, "nn.Module: Linear_0");
  EXPECT_EQ(owners[2].name, "before the window");
  EXPECT_EQ(owners[2].bytes, 100'000'000);
  const auto found =
      std::find_if(report.findings.begin(), report.findings.end(),
                   [](const Finding& each) { return each.kind == FindingKind::fragmentation; });
  ASSERT_NE(found, report.findings.end());
  EXPECT_NEAR(found->value, 60, 0.01);
  EXPECT_TRUE(found->text.ends_with("never used")) << found->text;
  // Memory that is kept for graphs is free between their launches.
  const std::string graphs =
      events +
      R"(,{"ph":"X","cat":"cuda_runtime","name":"cudaGraphLaunch","ts":10400,"dur":5,"pid":9,"tid":9,"args":{"correlation":999}})";
  std::string text;
  for (const Finding& each : report_of(graphs).findings) {
    if (each.kind == FindingKind::fragmentation) text = each.text;
  }
  EXPECT_TRUE(text.ends_with("or kept for CUDA graphs, which share it with nothing else")) << text;
}

// In 200 of 300 us of each step the name of the product does not tell.
TEST(Operators, ProductsWhoseNamesDoNotTellHaveAShareOfTheirOwn) {
  std::string events;
  for (int step = 0; step < 4; ++step) {
    std::string more = step_events(step);
    const size_t second = more.rfind("ampere_tf32_s1688gemm_128x64_sliced1x2_ldg8_f2f_tn");
    events += more.replace(second, 50, "gemm_fusion_dot_3");
  }
  const Report report = make_report(trace_of(events));
  EXPECT_NEAR(report.tables.tensor_core_pct, 100.0 / 3, 0.01);
  EXPECT_NEAR(report.tables.tensor_core_unknown_pct, 200.0 / 3, 0.01);
  ASSERT_EQ(report.tables.kernel_families.size(), 1u);
  EXPECT_NEAR(report.tables.kernel_families[0].tensor_core_unknown_us, 800, 0.01);
}

TEST(Flops, Formulas) {
  EXPECT_EQ(flop_of("aten::mm", "[[2,3],[3,5]]", ""), 60);
  EXPECT_EQ(flop_of("aten::mm", "[[2,3],[4,5]]", ""), 0);
  EXPECT_EQ(flop_of("aten::bmm", "[[7,2,3],[7,3,5]]", ""), 420);
  EXPECT_EQ(flop_of("aten::add", "[[7,2,3],[7,3,5]]", ""), 0);
  EXPECT_EQ(
      flop_of("aten::_scaled_dot_product_flash_attention", "[[1,2,8,4],[1,2,8,4],[1,2,8,4]]", ""),
      2.0 * 2 * 8 * 8 * 8);
  const char* const resnet_first =
      R"("Concrete Inputs":["","","","[2, 2]","[3, 3]","[1, 1]","False","[0, 0]","1"])";
  EXPECT_EQ(flop_of("aten::convolution", "[[32,3,224,224],[64,3,7,7],[],[],[],[],[],[],[]]",
                    resnet_first),
            2.0 * 32 * 64 * 112 * 112 * 3 * 7 * 7);
  EXPECT_EQ(flop_of("aten::convolution", "[[32,3,224,224],[64,3,7,7]]", ""),
            0);  // stride not known
  EXPECT_EQ(flop_of("aten::convolution_backward", "[[32,64,112,112],[32,3,224,224],[64,3,7,7]]",
                    R"("Concrete Inputs":["","","","","","","","","","","[False, True, False]"])"),
            2.0 * 32 * 64 * 112 * 112 * 3 * 7 * 7);
  for (const char* sides : {"1e300,224", "-1,224", "3,3", "1e999,224"}) {
    const std::string dims = fmt::format("[[32,3,{}],[64,3,7,7]]", sides);
    const double flop = flop_of("aten::convolution", dims, resnet_first);
    EXPECT_TRUE(std::isfinite(flop) && flop >= 0) << dims << ": " << flop;
  }
  EXPECT_EQ(flop_of("aten::convolution", "[[1,3,5,5],[64,3,13,13]]", resnet_first), 0)
      << "a filter larger than its input and the padding";
  EXPECT_EQ(flop_of("aten::mm", "[[1e200,1e200],[1e200,1e200]]", ""), 0);
  for (const char* broken : {"", "[", "[[1,2],3]", "{}", "[[\"a\"],[null]]"}) {
    EXPECT_EQ(flop_of("aten::mm", broken, "]"), 0) << broken;
    EXPECT_EQ(flop_of("aten::convolution", broken, "]"), 0) << broken;
  }
}

TEST(Flops, TransposedConvolutions) {
  // 2 x 2 with stride 2: each of 8 x 256 x 32 x 32 inputs is multiplied with 128 x 2 x 2 weights.
  const double forward = 2.0 * 8 * 256 * 32 * 32 * 128 * 4;
  const char* const dims = "[[8,128,64,64],[8,256,32,32],[256,128,2,2],[],[],[],[],[],[],[],[]]";
  for (const char* const told : {"True", ""}) {
    const std::string arguments = fmt::format(
        R"("Concrete Inputs":["","","","","[2, 2]","[0, 0]","[1, 1]","{}","[0, 0]","1","[True, True, False]"])",
        told);
    EXPECT_EQ(flop_of("aten::convolution_backward", dims, arguments), 2 * forward) << told;
  }
  EXPECT_EQ(flop_of("aten::conv_transpose2d", "[[8,256,32,32],[256,128,2,2]]", ""), forward);
  EXPECT_EQ(
      flop_of("aten::convolution", "[[8,256,32,32],[256,128,2,2]]",
              R"("Concrete Inputs":["","","","[2, 2]","[0, 0]","[1, 1]","True","[0, 0]","1"])"),
      forward);
}

// As gpuprof's own dumps have them.
TEST(Flops, ConvolutionsWithoutTheirStride) {
  const std::string_view forward = "[[32,64,56,56],[128,64,3,3],[],[],[],[],[],[],[]]",
                         backward = "[[32,128,28,28],[32,64,56,56],[128,64,3,3],[],[]]";
  const double flop = 2.0 * 32 * 128 * 28 * 28 * 64 * 9;
  EXPECT_EQ(flop_of("aten::convolution_backward", backward, ""), 0) << "forward is not known";
  ConvolutionOutputs known;
  known.add("aten::convolution_backward", backward);
  EXPECT_EQ(flop_of("aten::convolution", forward, "", &known), flop);
  EXPECT_EQ(flop_of("aten::convolution_backward", backward, "", &known), 2 * flop);
  EXPECT_EQ(flop_of("aten::convolution", "[[32,64,55,55],[128,64,3,3]]", "", &known), 0);
  known.add("aten::convolution_backward", "[[32,128,56,56],[32,64,56,56],[128,64,3,3],[],[]]");
  EXPECT_EQ(flop_of("aten::convolution", forward, "", &known), 0) << "which of two strides?";
  EXPECT_EQ(flop_of("aten::convolution_backward", backward, "", &known), 0);
  // As many channels on both sides, and a little longer: by padding, or transposed.
  const std::string_view longer = "[[1,64,58,58],[1,64,56,56],[64,64,3,3]]",
                         depthwise = "[[1,64,28,28],[1,64,56,56],[64,1,3,3]]",
                         twice = "[[1,64,112,112],[1,64,56,56],[64,64,2,2]]";
  for (const std::string_view each : {longer, depthwise, twice}) {
    known.add("aten::convolution_backward", each);
  }
  EXPECT_EQ(flop_of("aten::convolution_backward", longer, "", &known), 0);
  EXPECT_EQ(flop_of("aten::convolution_backward", depthwise, "", &known), 4.0 * 64 * 28 * 28 * 9);
  EXPECT_EQ(flop_of("aten::convolution_backward", twice, "", &known), 4.0 * 64 * 56 * 56 * 64 * 4);
}

TEST(Flops, OtherProductsAndAttention) {
  EXPECT_EQ(flop_of("aten::_scaled_mm", "[[2,3],[3,5],[],[]]", ""), 60);
  EXPECT_EQ(flop_of("aten::_int_mm", "[[2,3],[3,5]]", ""), 60);
  EXPECT_EQ(flop_of("aten::_grouped_mm", "[[20,3],[4,3,5],[4]]", ""), 600);
  EXPECT_EQ(flop_of("aten::_scaled_grouped_mm", "[[20,3],[4,3,5],[20],[4,5]]", ""), 600);
  EXPECT_EQ(flop_of("aten::_grouped_mm", "[[4,2,3],[4,3,5]]", ""), 240);
  EXPECT_EQ(flop_of("aten::_grouped_mm", "[[20,3],[4,7,5],[4]]", ""), 0);
  // [b, s, h, d]
  const double whole = 2.0 * 2 * 8 * 8 * 8;
  EXPECT_EQ(flop_of("aten::_flash_attention_forward", "[[1,8,2,4],[1,8,2,4],[1,8,2,4],[]]", ""),
            whole);
  EXPECT_EQ(
      flop_of("aten::_efficient_attention_forward", "[[1,8,2,4],[1,8,2,4],[1,8,2,4],[],[]]", ""),
      whole);
  EXPECT_EQ(
      flop_of("aten::_efficient_attention_forward", "[[1,8,2,4],[1,8,2,4],[1,8,2,4],[],[3]]", ""),
      0)
      << "of sequences whose lengths are not known";
}

TEST(Flops, PeaksOfDevices) {
  EXPECT_EQ(peak_flops("NVIDIA A100-SXM4-80GB", Precision::half), 312e12);
  EXPECT_EQ(peak_flops("NVIDIA A10", Precision::half), 125e12);
  EXPECT_EQ(peak_flops("NVIDIA H100 PCIe", Precision::half), 756e12);
  EXPECT_EQ(peak_flops("NVIDIA H100 80GB HBM3", Precision::half), 989.4e12);
  EXPECT_EQ(peak_flops("NVIDIA H100 NVL", Precision::tf32), 417.5e12);
  EXPECT_EQ(peak_flops("NVIDIA H100 80GB HBM3 MIG 1g.10gb", Precision::half), 0);
  EXPECT_EQ(peak_flops("NVIDIA H200", Precision::fp32), 67e12);
  EXPECT_EQ(peak_flops("NVIDIA H200 NVL", Precision::fp32), 0);
  EXPECT_EQ(peak_flops("NVIDIA GH200 480GB", Precision::half), 990e12);
  EXPECT_EQ(peak_flops("NVIDIA GB200", Precision::half), 2500e12);
  EXPECT_EQ(peak_flops("NVIDIA B200", Precision::tf32), 1100e12);
  EXPECT_EQ(peak_flops("NVIDIA L40S", Precision::half), 362.05e12);
  EXPECT_EQ(peak_flops("NVIDIA L40", Precision::half), 0);
  EXPECT_EQ(peak_flops("Tesla V100-SXM2-16GB", Precision::tf32), 15.7e12);  // it has none
  EXPECT_EQ(peak_flops("Tesla V100S-PCIE-32GB", Precision::half), 130e12);
  EXPECT_EQ(peak_flops("Radeon", Precision::fp32), 0);
  EXPECT_EQ(precision_of("[\"double\"]", false), Precision::other);
}

TEST(CodePlace, InnermostFrameOfTheProgram) {
  EXPECT_EQ(
      python_stack_place("/x/site-packages/torch/nn/functional.py(1): f; /home/me (2)/run.py(7): "
                         "<module>;/home/me/main.py(3): g")
          .text,
      "run.py:7 <module>");
  EXPECT_EQ(python_stack_place("/x/site-packages/torch/nn/functional.py(1): f").text,
            "functional.py:1 f");
  EXPECT_EQ(python_stack_place("nonsense; ;").text, "");
}

TEST(CodePlace, OfNativeStacks) {
  StackTable stacks;
  const auto module = [&](uint64_t begin, const char* path) {
    Module added;
    added.begin = begin, added.end = begin + 0x1000, added.bias = begin, added.path = path;
    stacks.add_module(added);
  };
  module(0x10000, "/usr/lib/libtorch_cuda.so.2");
  module(0x20000, "/home/me/train");
  module(0x30000, "/opt/conda/bin/python3.11");
  module(0x40000, "/home/my.software/python_train");
  stacks.set_frames(0x10010, {{"at::native::item()", "", 0, false, false}});
  stacks.set_frames(0x20010, {{"std::sort()", "/usr/include/c++/12/algo.h", 7, true, false},
                              {"step()", "/home/me/train.cpp", 41, false, false}});
  stacks.set_frames(0x30010, {{"PyObject_Call", "", 0, false, false}});
  const auto place = [&](std::vector<uint64_t> frames) {
    return native_place(stacks, stacks.add(frames));
  };
  EXPECT_EQ(place({0x10010, 0x20010}).text, "train.cpp:41 step()");
  EXPECT_TRUE(place({0x10010, 0x20010}).own);
  EXPECT_EQ(place({0x10010, 0x20020}).text, "train+0x20");  // no name is known
  EXPECT_EQ(place({0x20020, 0x20010}).text, "train.cpp:41 step()");
  EXPECT_EQ(place({0x10010, 0x30010}).text, "at::native::item()");  // Python is not the program
  EXPECT_FALSE(place({0x10010, 0x30010}).own);
  const uint64_t python = stacks.python_frame("main", "/home/me/train.py", 3);
  EXPECT_EQ(place({0x10010, 0x30010, python}).text, "train.py:3 main");
  EXPECT_EQ(place({0x10010, 0x40010}).text, "python_train+0x10");
  EXPECT_EQ(place({0x99}).text, "");
}

}  // namespace
}  // namespace gpuprof::analysis
