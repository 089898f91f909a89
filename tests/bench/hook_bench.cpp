// SPDX-License-Identifier: Apache-2.0
// What a call costs, in the process it runs in: hook_bench.py starts it bare, with the nop library,
// and with the real one in its phases, and compares. Every repetition is short and begins with a
// pause, in which the drain thread empties the buffers: what is measured is a call, not a full
// buffer. The first call after the pause is measured by itself ("first"): in a window it reads how
// long its thread waited for a processor.
#include <benchmark/benchmark.h>
#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <sched.h>

#include <chrono>
#include <cstdlib>
#include <thread>

#include "collector/base/clock.h"

namespace {

constexpr int kUnroll = 8;
constexpr int kIterations = 500;  // x 8 calls: four buffers
constexpr int kRepetitions = 60;

// Of two threads each has a processor of its own. Where the kernel puts both on one, they run one
// after the other, and the time of each is that of one thread.
class OwnProcessor {
 public:
  explicit OwnProcessor(const benchmark::State& state) {
    ::sched_getaffinity(0, sizeof allowed_, &allowed_);
    if (state.threads() == 1 || CPU_COUNT(&allowed_) < state.threads()) return;
    int left = state.thread_index();
    cpu_set_t own;
    CPU_ZERO(&own);
    for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
      if (CPU_ISSET(cpu, &allowed_) && left-- == 0) CPU_SET(cpu, &own);
    }
    ::sched_setaffinity(0, sizeof own, &own);
  }
  ~OwnProcessor() { ::sched_setaffinity(0, sizeof allowed_, &allowed_); }
  OwnProcessor(const OwnProcessor&) = delete;
  OwnProcessor& operator=(const OwnProcessor&) = delete;

 private:
  cpu_set_t allowed_{};
};

void record_event(benchmark::State& state) {
  const OwnProcessor own(state);
  cudaEventRecord(nullptr, nullptr);
  for (auto _ : state) {
    for (int i = 0; i < kUnroll; ++i) cudaEventRecord(nullptr, nullptr);
  }
}

void first_event(benchmark::State& state) {
  for (auto _ : state) cudaEventRecord(nullptr, nullptr);
}

void launch_kernel(benchmark::State& state) {
  const OwnProcessor own(state);
  void* arguments[1] = {nullptr};
  cudaLaunchKernel(arguments, dim3(1), dim3(32), arguments, 0, nullptr);
  for (auto _ : state) {
    for (int i = 0; i < kUnroll; ++i) {
      cudaLaunchKernel(arguments, dim3(1), dim3(32), arguments, 0, nullptr);
    }
  }
}

void read_clock_twice(benchmark::State& state) {
  const OwnProcessor own(state);
  for (auto _ : state) {
    for (int i = 0; i < kUnroll; ++i) {
      const uint64_t begin = gpuprof::now_ticks();
      benchmark::DoNotOptimize(begin);
      benchmark::ClobberMemory();
      const uint64_t end = gpuprof::now_ticks();
      benchmark::DoNotOptimize(end);
    }
  }
}

// Launches from twenty functions deep, each of the eight from another place: eight stacks.
template <int Depth>
[[gnu::noinline]] void launch_from_depth(void** arguments) {
  if constexpr (Depth > 1) {
    launch_from_depth<Depth - 1>(arguments);
  } else {
#define GPUPROF_LAUNCH cudaLaunchKernel(arguments, dim3(1), dim3(32), arguments, 0, nullptr)
    GPUPROF_LAUNCH, GPUPROF_LAUNCH, GPUPROF_LAUNCH, GPUPROF_LAUNCH;
    GPUPROF_LAUNCH, GPUPROF_LAUNCH, GPUPROF_LAUNCH, GPUPROF_LAUNCH;
#undef GPUPROF_LAUNCH
  }
  __asm__ volatile("");  // not a jump, which would leave no frame
}

void launch_deep(benchmark::State& state) {
  const OwnProcessor own(state);
  void* arguments[1] = {nullptr};
  launch_from_depth<20>(arguments);
  for (auto _ : state) launch_from_depth<20>(arguments);
}

// Steps before each repetition, of the preloaded library's own counting.
void take_steps() {
  static const auto step = reinterpret_cast<void (*)()>(::dlsym(RTLD_DEFAULT, "gpuprof_step"));
  static const char* const count = std::getenv("HOOK_BENCH_STEPS");
  for (int i = 0; step && count && i < std::atoi(count); ++i) step();
}

void pause_for_drain(const benchmark::State&) {
  std::this_thread::sleep_for(std::chrono::milliseconds(3));
  take_steps();
}

void add(const char* name, void (*body)(benchmark::State&), int threads,
         int iterations = kIterations) {
  benchmark::RegisterBenchmark(name, body)
      ->Threads(threads)
      ->Iterations(iterations)
      ->Repetitions(kRepetitions)
      ->Setup(pause_for_drain)
      ->UseRealTime();
}

}  // namespace

int main(int argc, char** argv) {
  gpuprof::choose_clock();            // the one that the library chooses, too
  cudaEventRecord(nullptr, nullptr);  // the first call starts a session
  add("clock", read_clock_twice, 1);
  add("event", record_event, 1);
  add("launch", launch_kernel, 1);
  add("clock2", read_clock_twice, 2);
  add("event2", record_event, 2);
  add("launch2", launch_kernel, 2);
  add("deep", launch_deep, 1);
  add("deep2", launch_deep, 2);
  add("first", first_event, 1, 1);
  benchmark::Initialize(&argc, argv);
  benchmark::AddCustomContext("calls_per_iteration", std::to_string(kUnroll));
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
