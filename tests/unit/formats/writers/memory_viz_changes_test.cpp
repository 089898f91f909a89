// SPDX-License-Identifier: Apache-2.0
// When the memory of a process counts as released that no window shows to be so.
#include "formats/writers/memory_viz_changes.h"

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>

#include "formats/views/step_subset.h"
#include "tests/unit/support/trace_maker.h"

namespace gpuprof::test {
namespace {

constexpr int64_t kUs = 1000;
constexpr uint64_t kHeld = 0x100000, kFreed = 0x200000, kLater = 0x300000, kLast = 0x400000;

// Steps 2 w and 2 w + 1, of 100 us each. In step 0 `kHeld` and `kFreed` are allocated; in step 2
// `kFreed` is released and `kLater` allocated; in step 3 `kLast`.
std::string window(uint32_t number) {
  MemoryNames names;
  BatchEncoder encoder(names);
  encoder.begin(number, 1);
  const uint64_t begin = 1000 * number;
  const auto call = [&](Kind kind, uint64_t us, uint64_t address) {
    Record r = make_record(kind, ticks_at(begin + us), ticks_at(begin + us + 1),
                           names.api(kind == Kind::alloc ? "cudaMalloc" : "cudaFree"));
    r.memory.address = address;
    r.memory.bytes = kind == Kind::alloc ? 4096 : 0;
    if (!encoder.add(r, 4242, "main")) throw std::bad_alloc();
  };
  if (number == 0) {
    call(Kind::alloc, 10, kHeld);
    call(Kind::alloc, 20, kFreed);
  } else {
    call(Kind::dealloc, 10, kFreed);
    call(Kind::alloc, 20, kLater);
    call(Kind::alloc, 150, kLast);
  }
  dump::Header header = make_header(1);
  header.set_window(number);
  ByteBuffer bytes;
  append(bytes, ChunkKind::header, header);
  append_events(bytes, encoder);
  append_steps(bytes, {ticks_at(begin), ticks_at(begin + 100), ticks_at(begin + 200)}, 2 * number,
               1);
  dump::Summary summary = make_summary(ticks_at(begin + 200), 2 * number, 2 * number + 1);
  summary.set_window_begin_ticks(ticks_at(begin));
  append(bytes, ChunkKind::summary, summary);
  return std::string(view(bytes));
}

Trace two_windows() { return load(window(0) + window(1)); }

void keep(Trace& trace, const std::set<uint64_t>& steps) {
  keep_steps(trace, [&](uint64_t step) { return steps.contains(step); });
}

// When each block is released, in us from the first window's begin.
std::map<uint64_t, int64_t> releases(const Trace& trace) {
  std::map<uint64_t, int64_t> out;
  for (const auto& [gpu, changes] : memory_viz_changes(trace)) {
    for (const MemoryVizChange& change : changes) {
      if (change.bytes >= 0) continue;
      EXPECT_TRUE(out.emplace(change.address, (change.time - trace.processes[0].window_begin) / kUs)
                      .second);
    }
  }
  return out;
}

using Releases = std::map<uint64_t, int64_t>;

TEST(MemoryVizChanges, WithoutALogBlocksStayThatNothingReleases) {
  EXPECT_FALSE(releases(two_windows()).contains(kHeld));
}

TEST(MemoryVizChanges, OfSomeStepsBlocksStayThatNoEventReleases) {
  Trace trace = two_windows();
  keep(trace, {0, 1, 3});
  EXPECT_EQ(releases(trace), (Releases{{kFreed, 1100}})) << "when the kept step begins";
}

TEST(MemoryVizChanges, WhatTheLogsListLacksIsReleased) {
  for (const bool some : {false, true}) {
    Trace trace = two_windows();
    Process& second = trace.processes.at(1);
    second.live_memory.push_back({LiveMoment::window_begins, second.window_begin, {}, {}, {}});
    if (some) keep(trace, {0, 1, 3});
    const int64_t begin = some ? 1100 : 1000;
    EXPECT_EQ(releases(trace), (Releases{{kHeld, begin}, {kFreed, begin}})) << some;
  }
}

TEST(MemoryVizChanges, BlocksOutsideOfSegmentsMakeRangesWhereTheyTouch) {
  constexpr bool kSegment = false, kBlock = true;
  const auto change = [](bool tensor, uint64_t address, int64_t bytes) {
    return MemoryVizChange{0, address, bytes, tensor, nullptr, EventIndex::none, nullptr};
  };
  using Ranges = std::map<uint64_t, uint64_t>;
  EXPECT_EQ(ranges_without_segment({change(kSegment, 100, 50), change(kBlock, 110, 40),
                                    change(kBlock, 110, -40), change(kSegment, 100, -50)}),
            Ranges());
  EXPECT_EQ(ranges_without_segment({change(kBlock, 10, 10), change(kBlock, 20, 5),
                                    change(kBlock, 40, 5), change(kBlock, 20, -5)}),
            (Ranges{{10, 25}, {40, 45}}));
  EXPECT_EQ(ranges_without_segment({change(kBlock, 110, 10), change(kSegment, 100, 50)}),
            (Ranges{{110, 120}}))
      << "the segment came later";
  EXPECT_EQ(ranges_without_segment({change(kSegment, 100, 50), change(kBlock, 140, 20)}),
            (Ranges{{140, 160}}))
      << "it ends behind its segment";
  EXPECT_EQ(ranges_without_segment({change(kBlock, 10, -10)}), (Ranges{{10, 20}}))
      << "it is from before";
  EXPECT_EQ(ranges_without_segment(
                {change(kSegment, 100, 50), change(kBlock, 110, 10), change(kSegment, 100, -50)}),
            (Ranges{{110, 120}}))
      << "it outlives its segment";
}

}  // namespace
}  // namespace gpuprof::test
