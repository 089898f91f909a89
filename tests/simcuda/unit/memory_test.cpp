// SPDX-License-Identifier: Apache-2.0
// Allocation, copies and sets: their effect, their time, their errors.
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "tests/simcuda/core/clock.h"
#include "tests/simcuda/unit/support.h"

namespace gpuprof::simcuda::testing {
namespace {

constexpr size_t kBytes = 8 << 20;

void* device_block(size_t bytes = kBytes) {
  void* p = nullptr;
  EXPECT_EQ(cudaMalloc(&p, bytes), cudaSuccess);
  return p;
}

uint64_t last_copy_ns() {
  const auto copies = select(truth(), "gpu", "type", "memcpy");
  return copies.empty() ? 0 : end_of(copies.back()) - begin_of(copies.back());
}

TEST(Memory, CopiesAndSetsHaveTheirEffect) {
  void* device = device_block(1024);
  const std::string text = "the quick brown fox";
  char back[32] = {};
  ASSERT_EQ(cudaMemcpy(device, text.data(), text.size(), cudaMemcpyHostToDevice), cudaSuccess);
  ASSERT_EQ(cudaMemset(static_cast<char*>(device) + 4, '.', 5), cudaSuccess);
  ASSERT_EQ(cudaMemcpy(back, device, text.size(), cudaMemcpyDeviceToHost), cudaSuccess);
  EXPECT_STREQ(back, "the ..... brown fox");
  EXPECT_EQ(cudaFree(device), cudaSuccess);
}

TEST(Memory, TwoDimensionalCopiesSkipThePadding) {
  void* device = nullptr;
  size_t pitch = 0;
  ASSERT_EQ(cudaMallocPitch(&device, &pitch, 3, 2), cudaSuccess);
  ASSERT_EQ(pitch, 512u);
  ASSERT_EQ(cudaMemcpy2D(device, pitch, "abcdef", 3, 3, 2, cudaMemcpyHostToDevice), cudaSuccess);
  EXPECT_EQ(std::memcmp(static_cast<char*>(device) + pitch, "def", 3), 0);
  EXPECT_EQ(cudaFree(device), cudaSuccess);
}

TEST(Memory, PinnedIsFasterThanPageableAndTheDeviceFastest) {
  void* a = device_block();
  void* b = device_block();
  void* pinned = nullptr;
  ASSERT_EQ(cudaMallocHost(&pinned, kBytes), cudaSuccess);
  std::vector<char> pageable(kBytes);
  ASSERT_EQ(cudaMemcpy(a, pageable.data(), kBytes, cudaMemcpyHostToDevice), cudaSuccess);
  const uint64_t pageable_ns = last_copy_ns();
  ASSERT_EQ(cudaMemcpy(a, pinned, kBytes, cudaMemcpyHostToDevice), cudaSuccess);
  const uint64_t pinned_ns = last_copy_ns();
  ASSERT_EQ(cudaMemcpy(a, b, kBytes, cudaMemcpyDeviceToDevice), cudaSuccess);
  const uint64_t device_ns = last_copy_ns();
  EXPECT_EQ(pageable_ns, 1500 + kBytes / 6);
  EXPECT_EQ(pinned_ns, 1500 + kBytes / 25);
  EXPECT_EQ(device_ns, 1500 + kBytes / 1000);
  EXPECT_EQ(cudaFreeHost(pinned), cudaSuccess);
  EXPECT_EQ(cudaFree(a), cudaSuccess);
  EXPECT_EQ(cudaFree(b), cudaSuccess);
}

TEST(Memory, AsynchronousCopiesOfPinnedMemoryReturnBeforeTheyEnd) {
  const Streams streams(1);
  void* device = device_block(200 << 20);
  void* pinned = nullptr;
  ASSERT_EQ(cudaMallocHost(&pinned, 200 << 20), cudaSuccess);
  launch("in_front", 1'000'000'000, streams[0]);
  ASSERT_EQ(cudaMemcpyAsync(device, pinned, 200 << 20, cudaMemcpyHostToDevice, streams[0]),
            cudaSuccess);
  EXPECT_EQ(cudaStreamQuery(streams[0]), cudaErrorNotReady);
  ASSERT_EQ(cudaStreamSynchronize(streams[0]), cudaSuccess);
  EXPECT_EQ(cudaFreeHost(pinned), cudaSuccess);
  EXPECT_EQ(cudaFree(device), cudaSuccess);
}

TEST(Memory, OneEnginePerDirection) {
  const Streams streams(3);
  void* a = device_block();
  void* pinned = nullptr;
  ASSERT_EQ(cudaMallocHost(&pinned, kBytes), cudaSuccess);
  launch("hold", 1'000'000'000, streams[0]);  // the first copy waits, so that all are ready at once
  cudaEvent_t event = nullptr;
  ASSERT_EQ(cudaEventCreate(&event), cudaSuccess);
  ASSERT_EQ(cudaEventRecord(event, streams[0]), cudaSuccess);
  ASSERT_EQ(cudaStreamWaitEvent(streams[1], event, 0), cudaSuccess);
  ASSERT_EQ(cudaStreamWaitEvent(streams[2], event, 0), cudaSuccess);
  ASSERT_EQ(cudaMemcpyAsync(a, pinned, kBytes, cudaMemcpyHostToDevice, streams[0]), cudaSuccess);
  ASSERT_EQ(cudaMemcpyAsync(a, pinned, kBytes, cudaMemcpyHostToDevice, streams[1]), cudaSuccess);
  ASSERT_EQ(cudaMemcpyAsync(pinned, a, kBytes, cudaMemcpyDeviceToHost, streams[2]), cudaSuccess);
  const auto copies = select(truth(), "gpu", "type", "memcpy");
  ASSERT_GE(copies.size(), 3u);
  const Json& first = copies[copies.size() - 3];
  const Json& second = copies[copies.size() - 2];
  const Json& other_way = copies[copies.size() - 1];
  EXPECT_EQ(begin_of(second), end_of(first));
  EXPECT_EQ(begin_of(other_way), begin_of(first));
  ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  EXPECT_EQ(cudaFreeHost(pinned), cudaSuccess);
  EXPECT_EQ(cudaFree(a), cudaSuccess);
}

TEST(Memory, FreeWaitsForTheDevice) {
  const Streams streams(1);
  void* device = device_block();
  launch("busy", 20'000'000, streams[0]);
  ASSERT_EQ(cudaFree(device), cudaSuccess);
  EXPECT_GE(now_ns(), end_of(kernel("busy")));
}

TEST(Memory, FreeOfAPoolsMemoryDoesNotWait) {
  const Streams streams(1);
  void* pooled = nullptr;
  ASSERT_EQ(cudaMallocAsync(&pooled, kBytes, streams[0]), cudaSuccess);
  launch("busy_beside_pool", 1'000'000'000, streams[0]);
  ASSERT_EQ(cudaFree(pooled), cudaSuccess);
  EXPECT_LT(now_ns(), end_of(kernel("busy_beside_pool")));
}

TEST(Memory, WhatEndsInHostMemoryWaits) {
  const Streams streams(1);
  char* pinned = nullptr;
  void* device = device_block();
  ASSERT_EQ(cudaMallocHost(reinterpret_cast<void**>(&pinned), kBytes), cudaSuccess);
  const auto expect = [&](bool waits, const char* name, auto call) {
    launch(name, 300'000'000, streams[0]);
    ASSERT_EQ(call(), cudaSuccess);
    EXPECT_EQ(now_ns() >= end_of(kernel(name)), waits) << name;
    ASSERT_EQ(cudaStreamSynchronize(streams[0]), cudaSuccess);
  };
  const auto copy = [&](void* to, cudaMemcpyKind kind) {
    return cudaMemcpyAsync(to, pinned, kBytes / 2, kind, streams[0]);
  };
  expect(true, "host_to_host", [&] { return copy(pinned + kBytes / 2, cudaMemcpyHostToHost); });
  expect(false, "to_device", [&] { return copy(device, cudaMemcpyHostToDevice); });
  expect(false, "set_async", [&] { return cudaMemsetAsync(pinned, 0, kBytes, streams[0]); });

  const Streams blocking(1, cudaStreamDefault);
  launch("before_sets", 300'000'000, blocking[0]);
  ASSERT_EQ(cudaMemset(device, 0, kBytes), cudaSuccess);
  EXPECT_LT(now_ns(), end_of(kernel("before_sets")));
  ASSERT_EQ(cudaMemset(pinned, 0, kBytes), cudaSuccess);
  EXPECT_GE(now_ns(), end_of(kernel("before_sets")));
  EXPECT_EQ(cudaFreeHost(pinned), cudaSuccess);
  EXPECT_EQ(cudaFree(device), cudaSuccess);
}

TEST(Memory, WrongUseIsAnError) {
  void* device = device_block(64);
  char host[64] = {};
  EXPECT_EQ(cudaMemcpy(host, device, 64, cudaMemcpyHostToDevice), cudaErrorInvalidValue);
  EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidValue);
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
  EXPECT_EQ(cudaFree(host), cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemset(host, 0, 64), cudaErrorInvalidValue);
  EXPECT_EQ(cudaSetDevice(99), cudaErrorInvalidDevice);
  EXPECT_EQ(cudaLaunchKernel(host, dim3(1), dim3(1), nullptr, 0, nullptr),
            cudaErrorInvalidDeviceFunction);
  EXPECT_EQ(cudaFree(device), cudaSuccess);
}

TEST(Memory, CapacityIsFinite) {
  size_t free_bytes = 0;
  size_t total = 0;
  ASSERT_EQ(cudaMemGetInfo(&free_bytes, &total), cudaSuccess);
  void* p = nullptr;
  EXPECT_EQ(cudaMalloc(&p, total + 1), cudaErrorMemoryAllocation);
  ASSERT_EQ(cudaMalloc(&p, 1 << 20), cudaSuccess);
  size_t less = 0;
  ASSERT_EQ(cudaMemGetInfo(&less, &total), cudaSuccess);
  EXPECT_EQ(free_bytes - less, size_t{1} << 20);
  EXPECT_EQ(cudaFree(p), cudaSuccess);
}

TEST(Memory, StreamOrderedAllocation) {
  const Streams streams(1);
  void* p = nullptr;
  ASSERT_EQ(cudaMallocAsync(&p, 4096, streams[0]), cudaSuccess);
  ASSERT_EQ(cudaMemsetAsync(p, 7, 4096, streams[0]), cudaSuccess);
  cudaMemPool_t pool = nullptr;
  ASSERT_EQ(cudaDeviceGetDefaultMemPool(&pool, 0), cudaSuccess);
  uint64_t used = 0;
  ASSERT_EQ(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrUsedMemCurrent, &used), cudaSuccess);
  EXPECT_EQ(used, 4096u);
  EXPECT_EQ(cudaFreeAsync(p, streams[0]), cudaSuccess);
}

TEST(DISABLED_Child, ThirdMallocFails) {
  void* p = nullptr;
  EXPECT_EQ(cudaMalloc(&p, 16), cudaSuccess);
  EXPECT_EQ(cudaMalloc(&p, 16), cudaSuccess);
  EXPECT_EQ(cudaMalloc(&p, 16), cudaErrorMemoryAllocation);
  EXPECT_EQ(cudaMalloc(&p, 16), cudaSuccess);
}

TEST(Failures, TheNamedCallFails) {
  EXPECT_EQ(run_child("DISABLED_Child.ThirdMallocFails", {{"SIMCUDA_FAIL", "cudaMalloc:3"}}), 0);
  EXPECT_NE(run_child("DISABLED_Child.ThirdMallocFails", {{"SIMCUDA_FAIL", "cudaMalloc:4"}}), 0);
}

TEST(DISABLED_Child, AnIllegalAddressStays) {
  void* p = nullptr;
  int device = -1;
  EXPECT_EQ(cudaMalloc(&p, 16), cudaSuccess);
  EXPECT_EQ(cudaDeviceSynchronize(), cudaErrorIllegalAddress);
  EXPECT_EQ(cudaGetLastError(), cudaErrorIllegalAddress);
  EXPECT_EQ(cudaGetDevice(&device), cudaSuccess);
  EXPECT_EQ(cudaMalloc(&p, 16), cudaErrorIllegalAddress);
  EXPECT_EQ(cudaStreamQuery(nullptr), cudaErrorIllegalAddress);
  std::thread([] { EXPECT_EQ(cudaDeviceSynchronize(), cudaErrorIllegalAddress); }).join();
}

TEST(Failures, WhatEndsTheProcessesUseOfCudaStays) {
  EXPECT_EQ(run_child("DISABLED_Child.AnIllegalAddressStays",
                      {{"SIMCUDA_FAIL", "cudaDeviceSynchronize:1:700"}}),
            0);
}

TEST(Failures, NotReadyIsNone) {
  const Streams streams(1);
  launch("not_ready", 1'000'000'000, streams[0]);
  EXPECT_EQ(cudaStreamQuery(streams[0]), cudaErrorNotReady);
  EXPECT_EQ(cudaPeekAtLastError(), cudaSuccess);
  EXPECT_EQ(cudaSetDevice(99), cudaErrorInvalidDevice);
  EXPECT_EQ(cudaStreamQuery(streams[0]), cudaErrorNotReady);
  EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidDevice);
}

TEST(DISABLED_Child, NoDriver) {
  int count = 0;
  EXPECT_EQ(cudaGetDeviceCount(&count), cudaErrorInsufficientDriver);
}

TEST(Failures, NoDriver) {
  EXPECT_EQ(run_child("DISABLED_Child.NoDriver", {{"SIMCUDA_NODRIVER", "1"}}), 0);
}

TEST(DISABLED_Child, LeavesByUnderscoreExit) {
  launch("last_words", 1000, nullptr);
  _exit(0);
}

TEST(Truth, SurvivesUnderscoreExit) {
  const std::string directory = make_directory();
  ASSERT_EQ(run_child("DISABLED_Child.LeavesByUnderscoreExit", {{"SIMCUDA_TRUTH", directory}}), 0);
  EXPECT_EQ(select(truth_in(directory), "gpu", "name", "last_words").size(), 1u);
}

TEST(Truth, ManyThreadsLoseNothing) {
  constexpr int kThreads = 8;
  constexpr int kLaunches = 500;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([] {
      const Streams streams(1);
      for (int i = 0; i < kLaunches; ++i) launch("crowd", 100, streams[0]);
    });
  }
  for (std::thread& thread : threads) thread.join();
  const auto lines = select(truth(), "gpu", "name", "crowd");
  EXPECT_EQ(lines.size(), size_t{kThreads} * kLaunches);
  std::vector<uint32_t> ids;
  for (const Json& line : lines) ids.push_back(line["corr"].get<uint32_t>());
  std::sort(ids.begin(), ids.end());
  EXPECT_EQ(std::unique(ids.begin(), ids.end()), ids.end());
}

TEST(Fork, TheChildCannotUseADeviceThatTheParentUsedAndLogsItself) {
  launch("parent", 1000, nullptr);
  const int pid = fork();
  if (pid == 0) {
    void* p = nullptr;
    _exit(cudaMalloc(&p, 16) == cudaErrorInitializationError ? 0 : 1);
  }
  EXPECT_EQ(wait_child(pid), 0);
  const auto calls = select(truth_in(getenv("SIMCUDA_TRUTH")), "call", "tid", pid);
  ASSERT_EQ(calls.size(), 1u);
  EXPECT_EQ(calls[0]["ret"], static_cast<int>(cudaErrorInitializationError));
  EXPECT_TRUE(select(truth(), "call", "tid", pid).empty()) << "the child has a file of its own";
}

}  // namespace
}  // namespace gpuprof::simcuda::testing
