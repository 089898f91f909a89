// SPDX-License-Identifier: Apache-2.0
// Packed events come out as they went in, whoever wrote which part; chunks of a lane that overlap
// in time come out in the order of the lane; the clock's cursor agrees with the clock.
#include "formats/trace/event_table.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <thread>

#include "formats/dump/lane_filler.h"
#include "tests/unit/support/dump_maker.h"

namespace gpuprof::test {
namespace {

// Gaps and durations of all sizes, lanes that begin before others, extras now and then.
std::vector<Event> some_events(size_t count, uint32_t shapes) {
  std::mt19937_64 random(7);
  std::vector<Event> events;
  int64_t at = kEpochNs;
  uint32_t extras = 0;
  for (size_t i = 0; i < count; ++i) {
    if (i % 1000 == 999) at = kEpochNs - static_cast<int64_t>(random() % 10'000'000'000);
    Event event;
    event.begin = at += static_cast<int64_t>(random() >> (30 + random() % 34));
    event.end = event.begin + static_cast<int64_t>(random() >> (28 + random() % 36));
    event.shape = static_cast<ShapeIndex>(random() % shapes);
    event.correlation = static_cast<uint32_t>(random());
    if (random() % 5 == 0) event.extra = ++extras;
    events.push_back(event);
  }
  return events;
}

void expect_same(const EventTable& table, const std::vector<Event>& events) {
  ASSERT_EQ(table.size(), events.size());
  for (size_t i = 0; i < events.size(); ++i) {
    const Event event = table[i];
    ASSERT_EQ(event.begin, events[i].begin) << i;
    ASSERT_EQ(event.end, events[i].end) << i;
    ASSERT_EQ(table.end_of(i), events[i].end) << i;
    ASSERT_EQ(event.shape, events[i].shape) << i;
    ASSERT_EQ(event.correlation, events[i].correlation) << i;
    ASSERT_EQ(event.extra, events[i].extra) << i;
    ASSERT_EQ(event.partner, EventIndex::none) << i;
    ASSERT_EQ(event.next_sibling, EventIndex::none) << i;
    ASSERT_EQ(number(event.index), i);
  }
}

TEST(EventTable, KeepsWhatSeveralWritersWrote) {
  for (const uint32_t shapes : {300u, 1u << 20}) {
    const std::vector<Event> events = some_events(5000, shapes);
    // Parts that begin within a block, a part within one block, an empty one.
    const size_t starts[] = {0, 64, 1001, 1010, 1010, 1023, 3000, 5000};
    EventTable table(events.size(), shapes);
    std::vector<EventTable::Writer> writers;
    for (size_t i = 0; i + 1 < std::size(starts); ++i) writers.emplace_back(table, starts[i]);
    std::vector<std::thread> threads;
    for (size_t i = 0; i < writers.size(); ++i) {
      threads.emplace_back([&, i] {
        for (size_t at = starts[i]; at < starts[i + 1]; ++at) writers[i].add(events[at]);
      });
    }
    for (std::thread& thread : threads) thread.join();
    table.finish(writers);
    expect_same(table, events);
  }
}

TEST(EventTable, LinksAndExtrasCanBeSet) {
  const std::vector<Event> events = some_events(200, 10);
  EventTable table(events.size(), 10);
  std::vector<EventTable::Writer> writers;
  writers.emplace_back(table, 0);
  for (const Event& event : events) writers[0].add(event, true);
  table.finish(writers);
  expect_same(table, events);
  table.set_partner(3, static_cast<EventIndex>(150));
  table.set_next_sibling(150, static_cast<EventIndex>(151));
  table.set_extra(77, 1234);
  EXPECT_EQ(number(table[3].partner), 150u);
  EXPECT_EQ(number(table[150].next_sibling), 151u);
  EXPECT_EQ(table[151].next_sibling, EventIndex::none);
  EXPECT_EQ(table[77].extra, 1234u);
  EXPECT_EQ(table[76].extra, events[76].extra);
}

TEST(LaneFiller, PartsThatOverlapInTimeAreMerged) {
  std::mt19937 random(3);
  for (int round = 0; round < 50; ++round) {
    Trace trace;
    Process process;
    process.extras.push_back({});
    const auto shapes = std::make_shared<std::vector<ShapeIndex>>(1, trace.shapes.intern(Shape{}));
    std::vector<OpenLane> lanes(3);
    std::vector<std::vector<RawEvent>> expected(lanes.size());
    for (size_t l = 0; l < lanes.size(); ++l) {
      uint32_t number = 0;
      for (int p = 0; p < 4; ++p) {
        LanePart part;
        for (uint32_t i = random() % 40; i > 0; --i) {
          RawEvent event{};
          event.begin = 1000 * static_cast<uint64_t>(p) + random() % 1500;
          event.end = event.begin + random() % 3 * 10;
          event.correlation = ++number;
          if (random() % 4 == 0) {
            EventExtra extra{};
            extra.bytes = event.correlation;
            part.extras.push_back(extra);
            event.extra = static_cast<uint32_t>(part.extras.size());
          }
          part.add(event);
          expected[l].push_back(event);
        }
        part.shapes = shapes;
        lanes[l].count += part.size();
        lanes[l].parts.push_back(std::move(part));
      }
      std::stable_sort(expected[l].begin(), expected[l].end(),
                       [](const RawEvent& a, const RawEvent& b) { return is_earlier(a, b); });
    }
    fill_events(trace, lanes, process, 0);
    ASSERT_EQ(process.lanes.size(), lanes.size());
    for (size_t l = 0; l < lanes.size(); ++l) {
      const auto events = process.lane_events(process.lanes[l]);
      ASSERT_EQ(events.size(), expected[l].size());
      for (size_t i = 0; i < events.size(); ++i) {
        const RawEvent& raw = expected[l][i];
        ASSERT_EQ(events[i].correlation, raw.correlation) << l << " " << i;
        EXPECT_EQ(events[i].begin, static_cast<int64_t>(raw.begin));
        EXPECT_EQ(events[i].end, static_cast<int64_t>(raw.end));
        EXPECT_EQ(process.extra(events[i]).bytes, raw.extra ? raw.correlation : 0u);
        EXPECT_EQ(number(process.lane_index(events[i])), l);
      }
    }
  }
}

TEST(ClockCursor, AgreesWithTheMap) {
  std::mt19937_64 random(11);
  for (int round = 0; round < 200; ++round) {
    std::vector<Anchor> anchors;
    uint64_t ticks = random() >> (20 + random() % 30);
    int64_t time = static_cast<int64_t>(random() >> 24);
    for (uint64_t i = random() % 4; i > 0; --i) {
      ticks += 1 + (random() >> (24 + random() % 30));
      time += 1 + static_cast<int64_t>(random() >> (24 + random() % 30));
      anchors.push_back({ticks, time, time});
    }
    const ClockMap map(anchors, 0, round % 3 ? 2'345'678'901 : 0);
    ClockMap::Cursor cursor(map);
    for (int i = 0; i < 500; ++i) {
      const uint64_t near = anchors.empty() ? 0 : anchors[random() % anchors.size()].ticks;
      const uint64_t at = near + (random() >> (random() % 64)) - (random() >> (24 + random() % 40));
      ASSERT_EQ(cursor.monotonic_ns(at), map.monotonic_ns(at)) << at << " in round " << round;
    }
  }
}

}  // namespace
}  // namespace gpuprof::test
