// SPDX-License-Identifier: Apache-2.0
#include "collector/window/metrics/window_use.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace gpuprof {
namespace {

Record work(Kind kind, uint64_t begin, uint64_t end, uint16_t device = 0) {
  Record record{};
  record.kind = kind;
  record.begin = begin;
  record.end = end;
  if (kind == Kind::gpu_kernel || kind == Kind::gpu_graph) {
    record.gpu_kernel.device = device;
  } else {
    record.gpu_copy.device = device;
  }
  return record;
}

TEST(CoveredTime, IsThatOfAllStretchesInAnyOrder) {
  std::mt19937 random(7);
  std::vector<bool> covered(20000);
  CoveredTime time;
  for (int i = 0; i < 3000; ++i) {
    const uint64_t begin = random() % 19900, end = begin + random() % 100;
    time.add(begin, end);
    for (uint64_t t = begin; t < end; ++t) covered[t] = true;
  }
  const auto count = [&](uint64_t begin, uint64_t end) {
    uint64_t sum = 0;
    for (uint64_t t = begin; t < end; ++t) sum += covered[t];
    return sum;
  };
  EXPECT_EQ(time.total(0, 20000), count(0, 20000));
  EXPECT_EQ(time.total(500, 1500), count(500, 1500));
  time.clear();
  EXPECT_EQ(time.total(0, 20000), 0u);
}

TEST(CoveredTime, OfMoreStretchesThanItKeepsTheOldestAreSummedUp) {
  constexpr uint64_t kStretches = 2'000'000;
  CoveredTime time;
  for (uint64_t i = 0; i < kStretches; ++i) time.add(10 * i, 10 * i + 3);
  time.add(4, 8);  // its time is summed up
  EXPECT_EQ(time.total(0, 10 * kStretches), 3 * kStretches);
}

TEST(WindowUse, TellsWorkOfNcclFromOtherWorkOnEachGpu) {
  WindowUse use;
  use.begin();
  use.add(work(Kind::gpu_kernel, 0, 40), "_Z4gemmv");
  use.add(work(Kind::gpu_kernel, 30, 70), "ncclDevKernel_AllReduce_Sum_f32_RING_LL");
  use.add(work(Kind::gpu_copy, 60, 65), "");
  use.add(work(Kind::gpu_kernel, 10, 20, 3), "_Z4gemmv");
  EXPECT_TRUE(use.gpu(0).worked);
  EXPECT_EQ(use.gpu(0).all.total(0, 100), 70u);
  EXPECT_EQ(use.gpu(0).computing.total(0, 100), 45u);
  EXPECT_FALSE(use.gpu(1).worked);
  EXPECT_EQ(use.gpu(3).all.total(0, 100), 10u);
  EXPECT_FALSE(use.gpu(0).graphs);
  use.add(work(Kind::gpu_graph, 80, 90), "");
  EXPECT_TRUE(use.gpu(0).graphs);
}

TEST(WindowUse, KnowsNoDataLoaderUntilOneIsSeen) {
  WindowUse use;
  use.begin();
  Record range = work(Kind::annotation, 0, 25);
  use.add(range, "forward");
  EXPECT_FALSE(use.loads_data());
  use.add(range, "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__");
  EXPECT_TRUE(use.loads_data());
  EXPECT_EQ(use.data_ticks(0, 20), 20u);
  EXPECT_FALSE(use.gpu(0).worked);
}

TEST(WindowUse, ARecordWithoutATimeIsNoWork) {
  WindowUse use;
  use.begin();
  Record record = work(Kind::gpu_kernel, 0, 40);
  record.flags = kFlagNoTime;
  use.add(record, "_Z4gemmv");
  EXPECT_FALSE(use.gpu(0).worked);
}

}  // namespace
}  // namespace gpuprof
