// SPDX-License-Identifier: Apache-2.0
#include "formats/core/trigger/live_state.h"

#include <gtest/gtest.h>

#include <string>

namespace gpuprof {
namespace {

std::string text_of(const LiveState& state) {
  char text[kLiveStateBytes];
  return {text, format_live_state(state, text)};
}

TEST(LiveState, IsReadAsItWasWritten) {
  for (const int64_t rank : {-1, 0, 16383}) {
    LiveState state{UINT64_MAX, 4242, rank, 7, 8'000'000, 250, UINT64_MAX, 2, 1}, read{};
    ASSERT_TRUE(parse_live_state(text_of(state), read));
    EXPECT_EQ(text_of(read), text_of(state));
    EXPECT_EQ(read.rank, rank);
    EXPECT_EQ(read.process_id, 4242u);
    EXPECT_EQ(read.boundaries, 7u);
    EXPECT_EQ(read.recording_off, 1u);
  }
}

TEST(LiveState, IsWholeOrNone) {
  const std::string text = text_of({1, 2, 3, 4, 5, 6, 7, 8, 9});
  LiveState read{};
  for (size_t length = 0; length < text.size(); ++length) {
    EXPECT_FALSE(parse_live_state(text.substr(0, length), read)) << length;
  }
  EXPECT_FALSE(parse_live_state("gpuprof-state-2" + text.substr(15), read)) << "another version";
  EXPECT_FALSE(parse_live_state(text.substr(0, text.size() - 1) + " 1\n", read)) << "more";
}

}  // namespace
}  // namespace gpuprof
