// SPDX-License-Identifier: Apache-2.0
#include "formats/dump/events_decoder.h"

#include <gtest/gtest.h>

#include <string>

namespace gpuprof {
namespace {

// Lanes with so many events, as they lie in a chunk.
std::string chunk_of(std::initializer_list<int> counts) {
  dump::Events events;
  events.add_string("");
  events.add_shape();
  for (const int count : counts) {
    dump::Lane& lane = *events.add_lane();
    lane.set_type(dump::Lane::THREAD);
    for (int i = 0; i < count; ++i) {
      lane.add_shape(0);
      lane.add_begin(1);
      lane.add_duration(2);
    }
  }
  return events.SerializeAsString();
}

std::vector<size_t> sizes(const DecodedEvents& decoded) {
  std::vector<size_t> out;
  for (const DecodedLane& lane : decoded.lanes) out.push_back(lane.part.size());
  return out;
}

TEST(EventsDecoder, MoreEventsThanMayComeAreCountedOnly) {
  const std::string chunk = chunk_of({10, 20, 30});
  EXPECT_EQ(sizes(decode_events(chunk, UINT64_MAX)), (std::vector<size_t>{10, 20, 30}));
  EXPECT_EQ(sizes(decode_events(chunk, 60)), (std::vector<size_t>{10, 20, 30}));
  const DecodedEvents decoded = decode_events(chunk, 29);
  ASSERT_TRUE(decoded.readable);
  EXPECT_EQ(sizes(decoded), (std::vector<size_t>{10, 0, 0}));
  EXPECT_EQ(decoded.lanes[2].claimed, 30u);
  EXPECT_NE(decoded.lanes[1].wrong, nullptr);
}

}  // namespace
}  // namespace gpuprof
