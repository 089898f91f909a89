// SPDX-License-Identifier: Apache-2.0
#include "collector/record/ring_place.h"

#include <gtest/gtest.h>

namespace gpuprof {
namespace {

constexpr uint64_t kPage = 65536;  // the largest that a kernel has

// Each page that a process writes to before its first window lies in the file's blocks.
TEST(RingPlace, BlocksOfBeforeWindowsAreWholePages) {
  for (const RingStacks stacks : {RingStacks::none, RingStacks::samples, RingStacks::native}) {
    for (const bool memory_log : {false, true}) {
      for (const bool light : {false, true}) {
        RingHeader header{};
        const uint64_t bytes = lay_out(header, RingSizes{32, stacks, memory_log, light, true});
        const auto [names, frames] = ranges_before_windows(header);
        EXPECT_EQ(names.begin, 0U);
        EXPECT_GE(names.end, header.strings.offset + names_before_windows(header));
        EXPECT_LE(frames.begin, header.stacks.offset);
        const uint64_t stack_bytes = stacks_before_windows(header);
        EXPECT_TRUE(stack_bytes == 0 || frames.end >= header.stacks.offset + stack_bytes);
        for (const uint64_t edge : {names.end, frames.begin, frames.end, bytes}) {
          EXPECT_EQ(edge % kPage, 0U) << edge;
        }
        EXPECT_EQ(frames.begin == frames.end, stacks == RingStacks::none);
      }
    }
  }
}

}  // namespace
}  // namespace gpuprof
