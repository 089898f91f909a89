// SPDX-License-Identifier: Apache-2.0
// Events of a trace's rows come out of their packing as they went in, in the order of a lane; and
// so do the operators' ids that they name.
#include "formats/kineto_reader/packed_row.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "formats/kineto_reader/external_ids.h"

namespace gpuprof::kineto {
namespace {

// Times, lengths and ids of all sizes, before the epoch too; `late`: of so many events one is
// earlier than the one before.
std::vector<BlockEvent> some_events(size_t count, size_t late, uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto wide = [&random](unsigned least) {
    return random() >> (least + random() % (64 - least));
  };
  std::vector<BlockEvent> events;
  int64_t at = -static_cast<int64_t>(wide(2));
  for (size_t i = 0; i < count; ++i) {
    at += i % 3 ? static_cast<int64_t>(wide(30)) : 0;
    if (late && random() % late == 0) at -= static_cast<int64_t>(wide(20));
    if (i == count / 2) at = int64_t{1} << 61;
    BlockEvent event{};
    event.begin = at;
    event.end = at + static_cast<int64_t>(wide(2 + random() % 40));
    event.shape = static_cast<ShapeIndex>(wide(32));
    if (random() % 4) event.correlation = static_cast<uint32_t>(wide(32));
    if (random() % 4 == 0) event.extra = static_cast<uint32_t>(wide(32));
    if (random() % 3) event.external_id = wide(0);
    events.push_back(event);
  }
  return events;
}

void expect_lane(std::vector<std::vector<BlockEvent>> rows) {
  LaneEvents lane;
  std::vector<BlockEvent> wanted;
  for (const std::vector<BlockEvent>& row : rows) {
    PackedRow packed;
    for (const BlockEvent& event : row) packed.add(event);
    ASSERT_EQ(packed.size(), row.size());
    lane.add(std::move(packed));
    wanted.insert(wanted.end(), row.begin(), row.end());
  }
  std::stable_sort(wanted.begin(), wanted.end(), is_earlier<BlockEvent, BlockEvent>);
  for (size_t i = 0; i < wanted.size(); ++i) {
    const BlockEvent* const event = lane.next();
    ASSERT_TRUE(event) << i;
    ASSERT_EQ(event->begin, wanted[i].begin) << i;
    ASSERT_EQ(event->end, wanted[i].end) << i;
    ASSERT_EQ(event->shape, wanted[i].shape) << i;
    ASSERT_EQ(event->correlation, wanted[i].correlation) << i;
    ASSERT_EQ(event->extra, wanted[i].extra) << i;
    ASSERT_EQ(event->external_id, wanted[i].external_id) << i;
  }
  EXPECT_FALSE(lane.next());
  EXPECT_FALSE(lane.next());
}

TEST(PackedRow, InOrder) {
  std::vector<BlockEvent> events = some_events(100'000, 0, 1);
  std::stable_sort(events.begin(), events.end(), is_earlier<BlockEvent, BlockEvent>);
  expect_lane({events});
}

TEST(PackedRow, RunsAreMerged) { expect_lane({some_events(20'000, 50, 2)}); }

TEST(PackedRow, EachEventARunOfItsOwn) {
  std::vector<BlockEvent> events = some_events(300, 0, 3);
  std::reverse(events.begin(), events.end());
  expect_lane({events});
}

TEST(PackedRow, SeveralRowsAreOneLane) {
  expect_lane({some_events(3000, 100, 4), {}, some_events(5000, 0, 5), some_events(1, 0, 6)});
}

TEST(PackedRow, EqualEventsKeepTheirOrder) {
  std::vector<BlockEvent> events(100);
  for (uint32_t i = 0; i < events.size(); ++i) {
    events[i].begin = 7, events[i].end = 9, events[i].correlation = i + 1;
  }
  const std::vector<BlockEvent> first(events.begin(), events.begin() + 40);
  expect_lane({first, {events.begin() + 40, events.end()}});
}

TEST(ExternalIds, FewFarBetweenAndMany) {
  for (const size_t distance : {1, 3, 5000}) {
    std::mt19937_64 random(distance);
    ExternalIds ids;
    std::vector<std::pair<uint32_t, uint64_t>> wanted, got;
    for (uint32_t event = 17; event < 100'000;
         event += 1 + static_cast<uint32_t>(random() % distance)) {
      const uint64_t values[] = {random() % 1000 + 1, 0xfffffffe, 0xffffffff, 0x100000000,
                                 ~uint64_t{0}};
      wanted.emplace_back(event, values[random() % std::size(values)]);
      ids.set(event, wanted.back().second);
    }
    ids.each([&got](uint32_t event, uint64_t id) { got.emplace_back(event, id); });
    EXPECT_EQ(got, wanted);
  }
}

}  // namespace
}  // namespace gpuprof::kineto
