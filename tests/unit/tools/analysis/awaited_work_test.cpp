// SPDX-License-Identifier: Apache-2.0
// What a stream was told to wait for, in steps of ten kernels and a copy on a stream of its own.
#include <gtest/gtest.h>

#include "tests/unit/support/trace_maker.h"
#include "tools/analysis/report.h"

namespace gpuprof::analysis {
namespace {

constexpr uint64_t kSteps = 10, kKernels = 10, kKernelUs = 100, kLatencyUs = 6;
constexpr uint64_t kCompute = 0x5000, kCopies = 0x6000, kCopied = 0x77, kComputed = 0x78;

class Steps {
 public:
  Steps() { encoder_.begin(0, 1); }

  // The kernels wait for the copy by an event, and the host for the kernels.
  void copy_before(uint64_t copy_us) {
    const uint64_t copied = now_ + kLatencyUs + copy_us;
    copy(now_ + kLatencyUs, copied);
    event(Kind::event, "cudaEventRecord", kCopied, kCopies);
    event(Kind::stream, "cudaStreamWaitEvent", kCopied, kCompute);
    synchronize("cudaStreamSynchronize", kCompute, kernels(copied));
  }

  // The copy waits for the kernels, their stream for the copy, and the host for their stream.
  void copy_after(uint64_t copy_us) {
    const uint64_t computed = kernels(now_ + kLatencyUs);
    event(Kind::event, "cudaEventRecord", kComputed, kCompute);
    event(Kind::stream, "cudaStreamWaitEvent", kComputed, kCopies);
    copy(computed, computed + copy_us);
    event(Kind::event, "cudaEventRecord", kCopied, kCopies);
    event(Kind::stream, "cudaStreamWaitEvent", kCopied, kCompute);
    synchronize("cudaStreamSynchronize", kCompute, computed + copy_us);
  }

  Report report() {
    ByteBuffer bytes;
    const uint64_t end = test::ticks_at(now_);
    test::append(bytes, ChunkKind::header, test::make_header(1, 0));
    test::append_events(bytes, encoder_);
    boundaries_.push_back(end);
    test::append_steps(bytes, boundaries_, 0, 1);
    test::append(bytes, ChunkKind::summary, test::make_summary(end, 0, kSteps - 1));
    return make_report(test::load(test::view(bytes)));
  }

  void begin_step() { boundaries_.push_back(test::ticks_at(now_)); }

 private:
  void add(Record record) {
    record.correlation = ++correlation_;
    add_as(record, correlation_);
  }
  void add_as(Record record, uint32_t correlation) {
    record.correlation = correlation;
    if (!encoder_.add(record, 4242, "python")) throw std::bad_alloc();
  }
  Record call(Kind kind, std::string_view name, uint64_t us) {
    const Record out =
        test::make_record(kind, test::ticks_at(now_), test::ticks_at(now_ + us), names_.api(name));
    now_ += us;
    return out;
  }

  // Returns when the last one is over.
  uint64_t kernels(uint64_t begin) {
    for (uint64_t i = 0; i < kKernels; ++i) {
      Record launch = call(Kind::launch, "cudaLaunchKernel", 2);
      launch.launch.stream = kCompute;
      launch.launch.grid_x = launch.launch.block_x = 1;
      add(launch);
      Record kernel = test::make_record(Kind::gpu_kernel, test::ticks_at(begin),
                                        test::ticks_at(begin + kKernelUs));
      kernel.gpu_kernel.name = names_.intern("gemm");
      kernel.gpu_kernel.stream = 7, kernel.gpu_kernel.context = 1;
      add_as(kernel, correlation_);
      begin += kKernelUs;
    }
    return begin;
  }

  void copy(uint64_t begin, uint64_t end) {
    Record asked = call(Kind::copy, "cudaMemcpyAsync", 2);
    asked.copy.stream = kCopies;
    asked.copy.bytes = (end - begin) * 25'000;
    asked.copy.direction = 1;
    add(asked);
    Record moved = test::make_record(Kind::gpu_copy, test::ticks_at(begin), test::ticks_at(end));
    moved.gpu_copy.bytes = asked.copy.bytes, moved.gpu_copy.direction = 1;
    moved.gpu_copy.stream = 13, moved.gpu_copy.context = 1;
    moved.gpu_copy.source_kind = 2, moved.gpu_copy.destination_kind = 3;
    moved.gpu_copy.peer_source = moved.gpu_copy.peer_destination = 0xffff;
    add_as(moved, correlation_);
  }

  void event(Kind kind, std::string_view name, uint64_t event, uint64_t stream) {
    Record record = call(kind, name, 1);
    record.sync.event = event, record.sync.stream = stream;
    add(record);
  }

  void synchronize(std::string_view name, uint64_t stream, uint64_t until) {
    Record record = call(Kind::sync, name, until + 2 - now_);
    record.sync.stream = stream;
    add(record);
  }

  test::MemoryNames names_;
  BatchEncoder encoder_{names_};
  std::vector<uint64_t> boundaries_;
  uint64_t now_ = 0;  // us
  uint32_t correlation_ = 0;
};

Report report_of(void (Steps::*step)(uint64_t), uint64_t copy_us) {
  Steps steps;
  for (uint64_t i = 0; i < kSteps; ++i) {
    steps.begin_step();
    (steps.*step)(copy_us);
  }
  return steps.report();
}

double saving_of(const Report& report, Cause cause) {
  for (const Verdict& verdict : report.verdict) {
    if (verdict.cause == cause) return verdict.saves_pct;
  }
  return 0;
}

// The first kernel of a step finds its stream idle and begins when the copy is over: that is no
// latency of its launch.
TEST(AwaitedWork, ACopyThatKernelsWaitForIsWhatIsSaved) {
  for (const auto step : {&Steps::copy_before, &Steps::copy_after}) {
    const Report with = report_of(step, 1000), without = report_of(step, 1);
    ASSERT_GT(with.step_time.mean_us, 1900);
    const double saved = 100 * (1 - without.step_time.mean_us / with.step_time.mean_us);
    EXPECT_NEAR(saving_of(with, Cause::transfer), saved, 1.5) << with.reason;
    EXPECT_EQ(saving_of(without, Cause::transfer), 0);
  }
}

}  // namespace
}  // namespace gpuprof::analysis
