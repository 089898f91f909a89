// SPDX-License-Identifier: Apache-2.0
// What a call of each kind costs, in the process it runs in: cost_table.py starts it bare and
// recorded. The functions called do nothing (fake_cudart.c). Prints {kind: best ns} as JSON.
#include <cuda.h>
#include <cuda_runtime_api.h>
#include <nccl.h>
#include <nvtx3/nvToolsExt.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <utility>
#include <vector>

#include "collector/base/clock.h"

namespace {

constexpr int kCalls = 2000;  // two buffers of records and a bit
constexpr int kRounds = 40;

double g_ticks_per_ns = 1;

// The drain thread empties the buffers in the pause before each round.
template <typename Call>
double cost_of(Call call) {
  double best = 1e9;
  for (int round = 0; round < kRounds; ++round) {
    ::usleep(3000);
    const uint64_t begin = gpuprof::now_ticks();
    for (int i = 0; i < kCalls; i += 4) call(), call(), call(), call();
    const auto ticks = static_cast<double>(gpuprof::now_ticks() - begin);
    best = std::min(best, ticks / g_ticks_per_ns / kCalls);
  }
  return best;
}

void* g_arguments[1];
char g_memory[64];

}  // namespace

int main() {
  g_ticks_per_ns = gpuprof::choose_clock().ticks_per_ns;
  cudaEventRecord(nullptr, nullptr);  // the first call starts a session
  auto* const kernel = reinterpret_cast<CUfunction>(g_memory);
  auto* const graph = reinterpret_cast<cudaGraphExec_t>(g_memory);
  auto* const communicator = reinterpret_cast<ncclComm_t>(g_memory);
  void* made = nullptr;
  cudaStream_t stream = nullptr;
  const std::vector<std::pair<const char*, double>> rows = {
      {"clock read", cost_of([] {
         uint64_t ticks = gpuprof::now_ticks();
         __asm__ volatile("" : "+r"(ticks));
       })},
      {"launch",
       cost_of([] { cudaLaunchKernel(g_memory, dim3(1), dim3(32), g_arguments, 0, nullptr); })},
      {"launch by the driver", cost_of([=] {
         cuLaunchKernel(kernel, 1, 1, 1, 32, 1, 1, 0, nullptr, g_arguments, nullptr);
       })},
      {"graph launch", cost_of([=] { cudaGraphLaunch(graph, nullptr); })},
      {"copy",
       cost_of([] { cudaMemcpyAsync(g_memory, g_memory, 8, cudaMemcpyDeviceToDevice, nullptr); })},
      {"set", cost_of([] { cudaMemsetAsync(g_memory, 0, 8, nullptr); })},
      {"allocation", cost_of([&] { cudaMalloc(&made, 64); })},
      {"release", cost_of([] { cudaFree(g_memory); })},
      {"synchronization", cost_of([] { cudaStreamSynchronize(nullptr); })},
      {"event", cost_of([] { cudaEventRecord(nullptr, nullptr); })},
      {"stream", cost_of([&] { cudaStreamCreateWithFlags(&stream, 0); })},
      {"collective", cost_of([=] {
         ncclAllReduce(g_memory, g_memory, 16, ncclFloat, ncclSum, communicator, nullptr);
       })},
      {"NVTX range", cost_of([] { nvtxRangePushA("range"), nvtxRangePop(); })},
      {"NVTX mark", cost_of([] { nvtxMarkA("mark"); })},
  };
  std::printf("{");
  for (const auto& [name, cost] : rows) {
    std::printf("%s\"%s\": %.2f", name == rows[0].first ? "" : ", ", name, cost);
  }
  std::printf("}\n");
  return 0;
}
