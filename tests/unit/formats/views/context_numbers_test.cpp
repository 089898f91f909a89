// SPDX-License-Identifier: Apache-2.0
#include "formats/views/context_numbers.h"

#include <gtest/gtest.h>

namespace gpuprof {
namespace {

Lane stream_of(uint32_t device, uint32_t context, uint32_t stream) {
  Lane lane{};
  lane.type = LaneType::stream;
  lane.device = device, lane.context = context, lane.stream = stream;
  return lane;
}

TEST(ContextNumbers, AreOfTheSameStreamOfTheSameDevice) {
  Process process;
  for (const Lane& lane : {stream_of(0, 4, 7), stream_of(0, 2, 7), stream_of(0, 2, 7),
                           stream_of(1, 1, 7), stream_of(0, 1, 9)}) {
    process.lanes.push_back(lane);
  }
  Lane thread{};
  thread.type = LaneType::thread;
  thread.stream = 7;
  process.lanes.push_back(thread);
  const ContextNumbers numbers(process);
  EXPECT_EQ(numbers.of(stream_of(0, 4, 7)), 1u);
  EXPECT_EQ(numbers.of(stream_of(0, 2, 7)), 0u);
  EXPECT_EQ(numbers.of(stream_of(1, 1, 7)), 0u);
  EXPECT_EQ(numbers.of(stream_of(0, 1, 9)), 0u);
}

// With a look at all lanes for each this takes many minutes.
TEST(ContextNumbers, ManyStreams) {
  constexpr uint32_t kStreams = 500'000;
  Process process;
  for (uint32_t i = 0; i < kStreams; ++i) process.lanes.push_back(stream_of(0, i, 7));
  const ContextNumbers numbers(process);
  for (uint32_t i = 0; i < kStreams; ++i) {
    ASSERT_EQ(numbers.of(process.lanes[i]), std::min(i, 5u));
  }
}

}  // namespace
}  // namespace gpuprof
