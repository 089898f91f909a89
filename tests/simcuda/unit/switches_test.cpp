// SPDX-License-Identifier: Apache-2.0
// Switches of the simulator that no test of another area uses: what each changes. They are read
// once, so each case is a process of its own.
#include <cuda.h>
#include <dlfcn.h>
#include <nccl.h>

#include <algorithm>
#include <cstring>

#include "tests/simcuda/unit/support.h"

namespace gpuprof::simcuda::testing {
namespace {

constexpr size_t kBytes = 8 << 20;
constexpr uint64_t kCopyLatencyNs = 1500;

uint64_t last_copy_ns() {
  const auto copies = select(truth(), "gpu", "type", "memcpy");
  return copies.empty() ? 0 : end_of(copies.back()) - begin_of(copies.back());
}

TEST(DISABLED_Child, CopiesOfOtherSpeeds) {
  void *a = nullptr, *b = nullptr, *far = nullptr, *pinned = nullptr;
  ASSERT_EQ(cudaMalloc(&a, kBytes), cudaSuccess);
  ASSERT_EQ(cudaMalloc(&b, kBytes), cudaSuccess);
  ASSERT_EQ(cudaMallocHost(&pinned, kBytes), cudaSuccess);
  ASSERT_EQ(cudaSetDevice(1), cudaSuccess);
  ASSERT_EQ(cudaMalloc(&far, kBytes), cudaSuccess);
  ASSERT_EQ(cudaSetDevice(0), cudaSuccess);
  std::vector<char> pageable(kBytes);
  ASSERT_EQ(cudaMemcpy(a, pageable.data(), kBytes, cudaMemcpyHostToDevice), cudaSuccess);
  EXPECT_EQ(last_copy_ns(), kCopyLatencyNs + kBytes);
  ASSERT_EQ(cudaMemcpy(a, pinned, kBytes, cudaMemcpyHostToDevice), cudaSuccess);
  EXPECT_EQ(last_copy_ns(), kCopyLatencyNs + kBytes / 2);
  ASSERT_EQ(cudaMemcpy(a, b, kBytes, cudaMemcpyDeviceToDevice), cudaSuccess);
  EXPECT_EQ(last_copy_ns(), kCopyLatencyNs + kBytes / 4);
  ASSERT_EQ(cudaMemcpyPeer(a, 0, far, 1, kBytes), cudaSuccess);
  ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  EXPECT_EQ(last_copy_ns(), kCopyLatencyNs + kBytes / 8);
}
TEST(Switches, SpeedsOfCopies) {
  EXPECT_EQ(run_child("DISABLED_Child.CopiesOfOtherSpeeds", {{"SIMCUDA_PAGEABLE_GBS", "1"},
                                                             {"SIMCUDA_PINNED_GBS", "2"},
                                                             {"SIMCUDA_DEVICE_GBS", "4"},
                                                             {"SIMCUDA_PEER_GBS", "8"}}),
            0);
}

TEST(DISABLED_Child, FourBytesOfACopy) {
  void* device = nullptr;
  char back[9] = "........";
  ASSERT_EQ(cudaMalloc(&device, 8), cudaSuccess);
  ASSERT_EQ(cudaMemcpy(device, "abcdefgh", 8, cudaMemcpyHostToDevice), cudaSuccess);
  ASSERT_EQ(cudaMemcpy(back, device, 8, cudaMemcpyDeviceToHost), cudaSuccess);
  EXPECT_STREQ(back, "abcd....");
}
TEST(Switches, BytesThatACopyMoves) {
  EXPECT_EQ(run_child("DISABLED_Child.FourBytesOfACopy", {{"SIMCUDA_COPY_LIMIT", "4"}}), 0);
}

TEST(DISABLED_Child, LateKernel) {
  launch("late", 1000, nullptr);
  ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  const auto calls = select(truth(), "call", "name", "cudaLaunchKernel");
  ASSERT_EQ(calls.size(), 1u);
  EXPECT_GE(begin_of(kernel("late")), begin_of(calls[0]) + 2'000'000'000);
}
TEST(Switches, LatencyOfALaunch) {
  EXPECT_EQ(run_child("DISABLED_Child.LateKernel", {{"SIMCUDA_LAUNCH_LATENCY_NS", "2000000000"}}),
            0);
}

// The kernels of one reduction of a million floats between two GPUs of this process.
void reduce_on_two(ncclComm_t (&comms)[2]) {
  ASSERT_EQ(ncclCommInitAll(comms, 2, nullptr), ncclSuccess);
  ASSERT_EQ(ncclGroupStart(), ncclSuccess);
  for (const ncclComm_t comm : comms) {
    ASSERT_EQ(ncclAllReduce(nullptr, nullptr, 1'000'000, ncclFloat, ncclSum, comm, nullptr),
              ncclSuccess);
  }
  ASSERT_EQ(ncclGroupEnd(), ncclSuccess);
  for (int device = 0; device < 2; ++device) {
    ASSERT_EQ(cudaSetDevice(device), cudaSuccess);
    ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  }
}

TEST(DISABLED_Child, SlowReduction) {
  ncclComm_t comms[2];
  reduce_on_two(comms);
  uint64_t shortest = UINT64_MAX;
  for (const Json& work : select(truth(), "gpu", "type", "kernel")) {
    shortest = std::min(shortest, end_of(work) - begin_of(work));
  }
  // 4 MB over the bus of each at 0.5 GB/s, and 8 us.
  EXPECT_GE(shortest, 8'008'000u);
}
TEST(Switches, SpeedOfCollectives) {
  EXPECT_EQ(run_child("DISABLED_Child.SlowReduction", {{"SIMCUDA_NCCL_GBS", "0.5"}}), 0);
}

TEST(DISABLED_Child, LaunchesByTheRuntime) {
  ncclComm_t comms[2];
  reduce_on_two(comms);
  const auto lines = truth();
  EXPECT_EQ(select(lines, "call", "name", "cudaLaunchKernelExC").size(), 2u);
  EXPECT_EQ(select(lines, "call", "name", "cuLaunchKernelEx").size(), 0u);
}
TEST(Switches, LaunchesOfNccl) {
  EXPECT_EQ(run_child("DISABLED_Child.LaunchesByTheRuntime", {{"SIMCUDA_NCCL_LAUNCH", "runtime"}}),
            0);
  EXPECT_NE(run_child("DISABLED_Child.LaunchesByTheRuntime", {{"SIMCUDA_NCCL_LAUNCH", "driver"}}),
            0);
}

// Two GPUs gather: a flag to the other one, the data, a flag again, and no kernel.
TEST(DISABLED_Child, GathersByCopyEngines) {
  ncclComm_t comms[2];
  const int devices[] = {0, 1};
  ASSERT_EQ(ncclCommInitAll(comms, 2, devices), ncclSuccess);
  constexpr uint64_t kLate = 3'000'000;
  cudaStream_t streams[2];
  ASSERT_EQ(ncclGroupStart(), ncclSuccess);
  for (int i = 0; i < 2; ++i) {
    ASSERT_EQ(cudaSetDevice(i), cudaSuccess);
    ASSERT_EQ(cudaStreamCreate(&streams[i]), cudaSuccess);
    if (i == 1) launch("own_work", kLate, streams[i]);
    ASSERT_EQ(ncclAllGather(nullptr, nullptr, 1 << 20, ncclFloat, comms[i], streams[i]),
              ncclSuccess);
  }
  ASSERT_EQ(ncclGroupEnd(), ncclSuccess);
  for (int i = 0; i < 2; ++i) ASSERT_EQ(cudaStreamSynchronize(streams[i]), cudaSuccess);
  const auto lines = truth();
  EXPECT_EQ(select(lines, "gpu", "type", "kernel").size(), 1u) << "its own";
  std::vector<Json> early;  // of the first GPU
  for (const Json& copy : select(lines, "gpu", "type", "memcpy")) {
    if (copy.value("device", -1) == 0) early.push_back(copy);
  }
  ASSERT_EQ(early.size(), 3u);
  EXPECT_EQ(early[0].value("bytes", 0), 4);
  EXPECT_EQ(early[1].value("bytes", 0), 4 << 20);
  EXPECT_EQ(early[2].value("bytes", 0), 4);
  EXPECT_GT(begin_of(early[1]) - end_of(early[0]), kLate / 2) << "it waits for the other";
  EXPECT_LT(begin_of(early[2]) - end_of(early[1]), kLate / 2);
}
TEST(Switches, CopyEnginesOfNccl) {
  EXPECT_EQ(run_child("DISABLED_Child.GathersByCopyEngines", {{"SIMCUDA_NCCL", "ce"}}), 0);
  EXPECT_NE(run_child("DISABLED_Child.GathersByCopyEngines", {}), 0);
}

TEST(DISABLED_Child, GettersAreLogged) {
  int device = -1;
  ASSERT_EQ(cudaGetDevice(&device), cudaSuccess);
  const auto calls = select(truth(), "call", "name", "cudaGetDevice");
  ASSERT_EQ(calls.size(), 1u);
  EXPECT_EQ(calls[0].value("trivial", false), true);
}
TEST(Switches, GettersInTheTruth) {
  EXPECT_EQ(run_child("DISABLED_Child.GettersAreLogged", {{"SIMCUDA_TRUTH_ALL", "1"}}), 0);
  EXPECT_NE(run_child("DISABLED_Child.GettersAreLogged", {}), 0);
}

TEST(DISABLED_Child, AnswersWithOtherAddresses) {
  void* const driver = dlopen("libcuda.so.1", RTLD_NOW);
  ASSERT_NE(driver, nullptr) << dlerror();
  using Ask = CUresult (*)(const char*, void**, int, cuuint64_t, CUdriverProcAddressQueryResult*);
  const auto ask = reinterpret_cast<Ask>(dlsym(driver, "cuGetProcAddress_v2"));
  ASSERT_NE(ask, nullptr);
  void* found = nullptr;
  ASSERT_EQ(ask("cuInit", &found, 12000, 0, nullptr), CUDA_SUCCESS);
  EXPECT_NE(found, dlsym(driver, "cuInit"));
  EXPECT_EQ(reinterpret_cast<CUresult (*)(unsigned)>(found)(0), CUDA_SUCCESS);
}
TEST(Switches, AddressesOfTheDriver) {
  EXPECT_EQ(
      run_child("DISABLED_Child.AnswersWithOtherAddresses", {{"SIMCUDA_PROC_ADDRESS", "other"}}),
      0);
  EXPECT_NE(run_child("DISABLED_Child.AnswersWithOtherAddresses", {}), 0);
}

}  // namespace
}  // namespace gpuprof::simcuda::testing
