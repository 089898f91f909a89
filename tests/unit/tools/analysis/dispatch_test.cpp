// SPDX-License-Identifier: Apache-2.0
// What a thread does between its calls: a framework's operators are the issuing of work, whatever
// they take; what runs outside of them is the program's own. Eager steps as torch.profiler writes
// them, slow as on a busy machine.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "formats/kineto_reader/reader.h"
#include "tools/analysis/report.h"

namespace gpuprof::analysis {
namespace {

// Something between two operators of each step, us.
struct Planted {
  const char* name = nullptr;  // of an operator around it; null: in none
  double length = 0;
  bool launches = false;  // at its end
};

class EagerRun {
 public:
  explicit EagerRun(Planted planted) {
    for (int step = 0; step < 8; ++step) {
      const double begin = at_;
      for (int i = 0; i < 10; ++i) {
        if (i == 5) plant(planted);
        run_operator(i < 5 ? "aten::linear" : "AddmmBackward0", 1800, 300);
        at_ += 150;
      }
      add("user_annotation", fmt::format("ProfilerStep#{}", step), begin, at_ - begin, 9, 9, "");
    }
  }

  Report report() const {
    const std::string path = testing::TempDir() + "dispatch_" + std::to_string(::getpid());
    std::ofstream(path) << R"({"schemaVersion":1,"traceEvents":[)" << events_.substr(1) << "]}";
    Trace trace;
    read_kineto(path, trace);
    std::filesystem::remove(path);
    return make_report(trace);
  }

 private:
  void add(const char* category, const std::string& name, double begin, double length, int pid,
           int tid, const std::string& args) {
    events_ += fmt::format(
        R"(,{{"ph":"X","cat":"{}","name":"{}","ts":{},"dur":{},"pid":{},"tid":{},"args":{{{}}}}})",
        category, name, begin, length, pid, tid, args);
  }

  // A kernel of 20 us.
  void launch(double begin) {
    const std::string args =
        fmt::format(R"("correlation":{},"stream":7,"device":0,"context":1)", ++id_);
    add("cuda_runtime", "cudaLaunchKernel", begin, 5, 9, 9,
        fmt::format(R"("correlation":{})", id_));
    add("kernel", "gemm", begin + 8, 20, 0, 7, args);
  }

  void run_operator(const char* name, double length, double launched) {
    add("cpu_op", name, at_, length, 9, 9, "");
    launch(at_ + launched);
    at_ += length;
  }

  void plant(const Planted& planted) {
    if (planted.launches) return run_operator(planted.name, planted.length, planted.length - 10);
    if (planted.name) add("cpu_op", planted.name, at_, planted.length, 9, 9, "");
    at_ += planted.length;
  }

  std::string events_;
  double at_ = 10'000;
  int id_ = 0;
};

double share(const Report& report, Part part) {
  return report.breakdown_pct[static_cast<size_t>(part)];
}

TEST(Dispatch, SlowOperatorsAreTheFrameworks) {
  const Report report = EagerRun({}).report();
  ASSERT_FALSE(report.verdict.empty()) << report.reason;
  EXPECT_EQ(report.verdict[0].cause, Cause::kernel_launch);
  EXPECT_EQ(report.verdict.size(), 1u);
  EXPECT_NEAR(share(report, Part::other), 0, 0.1);
  EXPECT_GT(share(report, Part::kernel_launch), 95);
}

TEST(Dispatch, TimeOutsideOfOperatorsIsTheProgramsOwn) {
  const Report report = EagerRun({nullptr, 30'000, false}).report();
  ASSERT_FALSE(report.verdict.empty()) << report.reason;
  EXPECT_EQ(report.verdict[0].cause, Cause::host_work);
  EXPECT_NEAR(share(report, Part::other), 100 * 30.0 / 49.5, 1.0);
  EXPECT_NEAR(report.verdict[0].saves_pct, 100 * 30.0 / 49.5, 3.0);
}

TEST(Dispatch, FiveMillisecondsAmongSlowOperators) {
  const Report report = EagerRun({nullptr, 5'000, false}).report();
  ASSERT_EQ(report.verdict.size(), 2u) << report.reason;
  EXPECT_EQ(report.verdict[1].cause, Cause::host_work);
  EXPECT_NEAR(report.verdict[1].share_pct, 100 * 5.0 / 24.5, 1.0);
}

// An operator that issues nothing computes on the host; a torch.autograd.Function is the program's.
TEST(Dispatch, NotWhatComputesOnTheHostNorThePythonOfAFunction) {
  for (const Planted& planted :
       {Planted{"aten::randn", 30'000, false}, Planted{"ScaleBackward", 30'000, true},
        Planted{"autograd::engine::evaluate_function: ScaleBackward", 30'000, true},
        Planted{"mine::scale", 30'000, true}}) {
    const Report report = EagerRun(planted).report();
    ASSERT_FALSE(report.verdict.empty()) << planted.name << ": " << report.reason;
    EXPECT_EQ(report.verdict[0].cause, Cause::host_work) << planted.name;
  }
}

}  // namespace
}  // namespace gpuprof::analysis
