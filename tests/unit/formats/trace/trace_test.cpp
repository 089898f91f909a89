// SPDX-License-Identifier: Apache-2.0
// Clocks, joins, steps, slices and memory curves of the in-memory trace.
#include "formats/trace/trace.h"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "formats/io/utf8.h"
#include "formats/trace/names.h"
#include "formats/views/memory_curves.h"
#include "formats/views/occupancy.h"
#include "formats/views/slices.h"
#include "tests/unit/support/dump_maker.h"

namespace gpuprof::test {
namespace {

TEST(ClockMap, IsExactOnAnchorsAndLinearBetween) {
  const std::vector<Anchor> anchors = {
      {1'000'000'007, 500'000'000, kEpochNs},
      {3'500'000'019, 1'500'000'123, kEpochNs + 1'000'000'500},
      {9'000'000'000'000, 3'700'000'000'123, kEpochNs + 3'699'000'000'000}};
  const ClockMap clock(anchors, 0, 0);
  ASSERT_TRUE(clock.usable());
  for (const Anchor& a : anchors) {
    EXPECT_EQ(clock.monotonic_ns(a.ticks), a.monotonic_ns);
    EXPECT_EQ(clock.realtime_ns(a.ticks), a.realtime_ns);
  }
  const uint64_t middle = (anchors[0].ticks + anchors[1].ticks) / 2;
  EXPECT_NEAR(static_cast<double>(clock.monotonic_ns(middle)), 1'000'000'061.5, 1);
  int64_t last = 0;
  for (uint64_t t = 0; t < 10'000'000'000'000; t += 99'999'999'989) {
    EXPECT_GE(clock.monotonic_ns(t), last) << "time never goes back";
    last = clock.monotonic_ns(t);
  }
}

TEST(ClockMap, GoesOnOutsideTheAnchorsWithTheirRate) {
  const ClockMap clock({{2'000, 1'000, 51'000}, {4'000, 2'000, 52'010}}, 0, 0);
  EXPECT_EQ(clock.monotonic_ns(0), 0);
  EXPECT_EQ(clock.monotonic_ns(8'000), 4'000);
  EXPECT_EQ(clock.realtime_ns(0), 50'000);
  EXPECT_EQ(clock.realtime_ns(8'000), 54'010) << "the wall clock keeps its distance";
}

TEST(ClockMap, OneAnchorNeedsARate) {
  const ClockMap rated({{4'000, 1'000, 91'000}}, 0, 2'000'000'000);
  EXPECT_TRUE(rated.usable());
  EXPECT_EQ(rated.monotonic_ns(6'000), 2'000);
  EXPECT_EQ(rated.realtime_ns(6'000), 92'000);
  EXPECT_FALSE(ClockMap({{4'000, 1'000, 91'000}}, 0, 0).usable());
  EXPECT_FALSE(ClockMap().usable());
  dump::Clock monotonic;
  monotonic.set_source(dump::CLOCK_SOURCE_MONOTONIC);
  dump::ClockAnchor* const anchor = monotonic.add_anchor();
  anchor->set_ticks(5'000);
  anchor->set_monotonic_ns(5'000);
  anchor->set_realtime_ns(95'000);
  EXPECT_TRUE(ClockMap::from(monotonic).usable());
  EXPECT_EQ(ClockMap::from(monotonic).monotonic_ns(7'000), 7'000);
}

TEST(ClockMap, ContradictingAnchorsAreDropped) {
  const ClockMap clock(
      {{2'000, 1'000, 1}, {3'000, 900, 1}, {2'000, 1'001, 1}, {0, 5, 5}, {4'000, 2'000, 2}}, 0, 0);
  EXPECT_EQ(clock.anchors().size(), 2u);
  EXPECT_EQ(ClockMap({{1, 1, 1}}, 200, 0).shift(), 63u);
}

TEST(Trace, WallClockSetDuringTheWindowDoesNotBendDurations) {
  dump::Header header = make_header();
  header.mutable_clock()->mutable_anchor(1)->set_realtime_ns(kEpochNs +
                                                             3'600'000'000'000);  // + 1 h
  MemoryNames names;
  BatchEncoder encoder(names);
  encoder.begin(0, 0);
  ASSERT_TRUE(encoder.add(make_record(Kind::call, 2'000'000 + 4000, 2'000'000 + 6000), 1, ""));
  ByteBuffer bytes;
  append(bytes, ChunkKind::header, header);
  append_events(bytes, encoder);
  const Trace trace = load(view(bytes));
  const Process& p = trace.processes.at(0);
  EXPECT_EQ(p.events.at(0).end - p.events[0].begin, 1000);
  EXPECT_EQ(p.events[0].begin, kEpochNs + 2000);
  EXPECT_EQ(p.monotonic(p.events[0].begin), 1'000'002'000);
}

class TraceJoin : public testing::Test {
 protected:
  Record& add(Kind kind, uint64_t begin_us, uint64_t end_us, std::string_view api = {},
              uint32_t correlation = 0) {
    Record r = make_record(kind, at(begin_us), at(end_us));
    if (!api.empty()) r.api = names_.api(api, api.starts_with("nccl") ? 3 : 1);
    r.correlation = correlation;
    if (kind == Kind::gpu_kernel) r.gpu_kernel.stream = 7;
    if (kind == Kind::gpu_set) r.gpu_copy.stream = 7;
    records_.push_back(r);
    threads_.push_back(thread_);
    return records_.back();
  }
  static uint64_t at(uint64_t us) { return 10'000'000 + us * kTicksPerUs; }
  void build() {
    BatchEncoder encoder(names_);
    encoder.begin(0, 0);
    for (size_t i = 0; i < records_.size(); ++i) {
      ASSERT_TRUE(encoder.add(records_[i], threads_[i], "main"));
    }
    ByteBuffer bytes;
    append(bytes, ChunkKind::header, make_header());
    append_events(bytes, encoder);
    trace_ = load(view(bytes));
    ASSERT_TRUE(trace_.problems.empty());
  }
  const Process& process() const { return trace_.processes.at(0); }
  EventIndex find(Kind kind, uint64_t begin_us) const {
    for (const Event& e : process().events) {
      const auto begin = kEpochNs + 4'000'000 + static_cast<int64_t>(begin_us) * 1000;
      if (trace_.shape(e).kind == kind && e.begin == begin) return process().index_of(e);
    }
    ADD_FAILURE() << kind_name(kind) << " at " << begin_us;
    return EventIndex::none;
  }
  std::vector<std::pair<EventIndex, EventIndex>> pairs() const {
    std::vector<std::pair<EventIndex, EventIndex>> out;
    for (const CollectiveKernel& c : process().collective_kernels)
      out.emplace_back(c.collective, c.kernel);
    return out;
  }

  MemoryNames names_;
  std::vector<Record> records_;
  uint32_t thread_ = 1;  // of what is added
  std::vector<uint32_t> threads_;
  Trace trace_;
};

TEST_F(TraceJoin, WorkOfAStreamDoesNotOverlapByTheNoiseOfClocks) {
  constexpr uint64_t kTicksPerNs = kTicksPerUs / 1000;
  add(Kind::gpu_kernel, 10, 20);
  add(Kind::gpu_kernel, 20, 30).begin -= 150 * kTicksPerNs;  // noise
  add(Kind::gpu_kernel, 30, 40).begin -= 300 * kTicksPerNs;  // programmatic dependent launch
  add(Kind::gpu_set, 38, 40).end -= 50 * kTicksPerNs;        // lies within the one before
  add(Kind::gpu_kernel, 50, 60);
  build();
  const Process& p = process();
  ASSERT_EQ(p.events.size(), 5u);
  const int64_t first = p.events[0].begin;
  const std::vector<std::pair<int64_t, int64_t>> expected = {
      {0, 10'000}, {10'000, 20'000}, {19'700, 30'000}, {28'000, 29'950}, {40'000, 50'000}};
  for (size_t i = 0; i < expected.size(); ++i) {
    EXPECT_EQ(p.events[i].begin - first, expected[i].first) << i;
    EXPECT_EQ(p.events[i].end - first, expected[i].second) << i;
  }
}

TEST_F(TraceJoin, LaunchAndKernelsByCorrelation) {
  add(Kind::launch, 10, 12, "cudaLaunchKernel", 1);
  add(Kind::launch, 20, 22, "cudaGraphLaunch", 2);
  add(Kind::gpu_kernel, 40, 41, {}, 2);
  add(Kind::gpu_kernel, 30, 31, {}, 2);
  add(Kind::gpu_kernel, 14, 15, {}, 1);
  add(Kind::gpu_kernel, 50, 51, {}, 99);
  build();
  const EventIndex plain = find(Kind::launch, 10), graph = find(Kind::launch, 20);
  const EventIndex first = find(Kind::gpu_kernel, 30), second = find(Kind::gpu_kernel, 40);
  EXPECT_EQ(process().event(plain).partner, find(Kind::gpu_kernel, 14));
  EXPECT_EQ(process().event(find(Kind::gpu_kernel, 14)).partner, plain);
  EXPECT_EQ(process().event(graph).partner, first);
  EXPECT_EQ(process().event(first).next_sibling, second);
  EXPECT_EQ(process().event(second).next_sibling, EventIndex::none);
  EXPECT_EQ(process().event(second).partner, graph);
  EXPECT_EQ(process().event(find(Kind::gpu_kernel, 50)).partner, EventIndex::none);
}

TEST_F(TraceJoin, LaunchIsPreferredOverOtherCallsOfItsCorrelation) {
  add(Kind::call, 5, 20, "cudaSomething", 1);
  add(Kind::launch, 10, 12, "cudaLaunchKernel", 1);
  add(Kind::gpu_kernel, 14, 15, {}, 1);
  build();
  EXPECT_EQ(process().event(find(Kind::gpu_kernel, 14)).partner, find(Kind::launch, 10));
}

TEST_F(TraceJoin, StreamHandlesAreLearntFromPairs) {
  add(Kind::launch, 10, 12, "cudaLaunchKernel", 1).launch.stream = 0x5000;
  Record& kernel = add(Kind::gpu_kernel, 14, 15, {}, 1);
  kernel.gpu_kernel.stream = 13;
  kernel.gpu_kernel.context = 2;
  build();
  ASSERT_NE(process().stream_of(0x5000), nullptr);
  EXPECT_EQ(process().stream_of(0x5000)->stream, 13u);
  EXPECT_EQ(process().stream_of(0x5000)->context, 2u);
  EXPECT_EQ(process().stream_of(0x6000), nullptr);
}

TEST_F(TraceJoin, CollectiveAndTheLaunchInsideIt) {
  add(Kind::collective, 10, 20, "ncclAllReduce");
  add(Kind::launch, 12, 14, "cudaLaunchKernelExC", 1);
  add(Kind::launch, 22, 24, "cudaLaunchKernel", 2);
  add(Kind::gpu_kernel, 30, 40, {}, 1);
  add(Kind::gpu_kernel, 50, 60, {}, 2);
  build();
  const auto found = pairs();
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].first, find(Kind::collective, 10));
  EXPECT_EQ(found[0].second, find(Kind::gpu_kernel, 30));
}

TEST_F(TraceJoin, GroupsLaunchAtTheirOutermostEnd) {
  add(Kind::call, 1, 2, "ncclGroupStart");
  add(Kind::call, 3, 4, "ncclGroupStart");
  add(Kind::collective, 5, 6, "ncclAllReduce").collective.stream = 0x10;
  add(Kind::collective, 7, 8, "ncclAllGather").collective.stream = 0x10;
  add(Kind::call, 9, 10, "ncclGroupEnd");
  add(Kind::collective, 11, 12, "ncclBroadcast").collective.stream = 0x20;
  add(Kind::call, 20, 40, "ncclGroupEnd");
  add(Kind::launch, 22, 23, "cuLaunchKernelEx", 1).launch.stream = 0x10;
  add(Kind::launch, 24, 25, "cuLaunchKernelEx", 2).launch.stream = 0x10;
  add(Kind::launch, 26, 27, "cuLaunchKernelEx", 3).launch.stream = 0x20;
  for (uint32_t i = 1; i <= 3; ++i) add(Kind::gpu_kernel, 40 + i * 10, 45 + i * 10, {}, i);
  build();
  const auto found = pairs();
  ASSERT_EQ(found.size(), 3u);
  EXPECT_EQ(found[0], std::pair(find(Kind::collective, 5), find(Kind::gpu_kernel, 50)));
  EXPECT_EQ(found[1], std::pair(find(Kind::collective, 7), find(Kind::gpu_kernel, 60)));
  EXPECT_EQ(found[2], std::pair(find(Kind::collective, 11), find(Kind::gpu_kernel, 70)));
}

TEST_F(TraceJoin, FusedCollectivesShareTheirKernel) {
  add(Kind::call, 1, 2, "ncclGroupStart");
  add(Kind::collective, 5, 6, "ncclAllReduce");
  add(Kind::collective, 7, 8, "ncclAllReduce");
  add(Kind::call, 20, 40, "ncclGroupEnd");
  add(Kind::launch, 22, 23, "cuLaunchKernelEx", 1);
  add(Kind::gpu_kernel, 50, 60, {}, 1);
  build();
  EXPECT_EQ(pairs().size(), 2u);
  EXPECT_EQ(pairs()[0].second, pairs()[1].second);
}

// Communicators that do not block: each call is left to a thread of NCCL's.
TEST_F(TraceJoin, WhatNcclLaunchesLaterIsItsCollectives) {
  constexpr int kInProgress = 7;
  const auto collective = [&](uint64_t us, uint64_t communicator, uint64_t stream, int result) {
    auto& out = add(Kind::collective, us, us + 2, "ncclAllReduce").collective;
    out.communicator = communicator, out.stream = stream;
    out.result = static_cast<int16_t>(result);
  };
  uint32_t last = 0;
  const auto launch = [&](uint32_t thread, uint64_t us, uint64_t stream, const char* kernel) {
    thread_ = thread;
    add(Kind::launch, us, us + 1, "cuLaunchKernelEx", ++last).launch.stream = stream;
    add(Kind::gpu_kernel, us + 1, us + 2, {}, last).gpu_kernel.name = names_.intern(kernel);
  };
  collective(10, 1, 0x10, kInProgress);
  collective(20, 2, 0x20, kInProgress);
  collective(40, 1, 0x10, kInProgress);
  collective(60, 1, 0x10, 0);  // refused, or launched elsewhere: nobody knows
  add(Kind::call, 100, 101, "ncclGroupStart");
  collective(102, 1, 0x10, 0);
  collective(105, 2, 0x20, 0);
  add(Kind::call, 110, 112, "ncclGroupEnd").call.result = kInProgress;
  launch(2, 25, 0x20, "ncclDevKernel_AllReduce");
  launch(3, 30, 0x10, "ncclDevKernel_AllReduce");
  launch(4, 41, 0x10, "gemm");  // the program's own
  launch(3, 45, 0x10, "ncclDevKernel_AllReduce");
  launch(3, 115, 0x20, "ncclDevKernel_AllReduce");
  launch(3, 120, 0x10, "ncclDevKernel_AllReduce");
  build();
  const auto pair = [&](uint64_t call, uint64_t kernel) {
    return std::pair(find(Kind::collective, call), find(Kind::gpu_kernel, kernel));
  };
  const std::vector expected = {pair(10, 31), pair(20, 26), pair(40, 46), pair(102, 121),
                                pair(105, 116)};
  EXPECT_EQ(pairs(), expected);
}

TEST_F(TraceJoin, MemoryCurveFollowsAllocationsOfTheWindow) {
  const auto memory = [this](Kind kind, uint64_t us, std::string_view api, uint64_t address,
                             uint64_t bytes) {
    Record& r = add(kind, us, us + 1, api);
    r.memory.address = address;
    r.memory.bytes = bytes;
  };
  memory(Kind::alloc, 10, "cudaMalloc", 0x1000, 100);
  memory(Kind::alloc, 20, "cudaMallocHost", 0x9000, 7);
  memory(Kind::dealloc, 30, "cudaFree", 0x5555, 0);  // from before the window
  memory(Kind::alloc, 40, "cudaMallocAsync", 0x2000, 50);
  memory(Kind::dealloc, 50, "cudaFree", 0x1000, 0);
  add(Kind::alloc, 60, 61, "cudaMalloc").memory.result = 2;
  build();
  const MemoryCurves curves = memory_curves(trace_, process());
  ASSERT_EQ(curves.device.size(), 3u);
  EXPECT_EQ(curves.device[0].total, 100);
  EXPECT_EQ(curves.device[1].total, 150);
  EXPECT_EQ(curves.device[2].total, 50);
  EXPECT_EQ(curves.device[2].change, -100);
  ASSERT_EQ(curves.host.size(), 1u);
  EXPECT_EQ(curves.host[0].total, 7);
}

// cuMemMap has none; PyTorch's expandable segments are of it.
TEST_F(TraceJoin, MemoryCurveHasTheCallsThatCuptiHasNoRecordOf) {
  const auto call = [this](Kind kind, uint64_t us, std::string_view api, uint64_t address,
                           uint64_t bytes, uint32_t correlation) {
    Record& r = add(kind, us, us + 2, api, correlation);
    r.memory.address = address, r.memory.bytes = bytes;
  };
  const auto record = [this](uint64_t us, bool release, uint32_t correlation) {
    Record& r = add(Kind::gpu_memory, us, us, {}, correlation);
    r.gpu_memory.address = 0x1000, r.gpu_memory.bytes = 100, r.gpu_memory.memory_kind = 3;
    r.gpu_memory.operation = release ? 2 : 1;
  };
  call(Kind::alloc, 10, "cuMemMap", 0x8000, 1000, 1);
  call(Kind::alloc, 20, "cudaMalloc", 0x1000, 100, 2);
  record(21, false, 2);
  call(Kind::alloc, 30, "cuMemMap", 0x9000, 1000, 3);
  call(Kind::dealloc, 40, "cudaFree", 0x1000, 0, 4);
  record(41, true, 4);
  call(Kind::dealloc, 50, "cuMemUnmap", 0x8000, 1000, 5);
  build();
  std::vector<int64_t> totals;
  for (const MemoryPoint& point : memory_curves(trace_, process()).device) {
    totals.push_back(point.total);
  }
  EXPECT_EQ(totals, (std::vector<int64_t>{1000, 1100, 2100, 2000, 1000}));
}

std::vector<Slice> slices_of(std::initializer_list<std::pair<int64_t, int64_t>> ranges) {
  std::vector<Slice> out;
  for (const auto& [begin, end] : ranges) out.push_back({EventIndex::none, begin, end});
  return out;
}

TEST(SplitTracks, NestingStaysTogetherAndPartialOverlapMoves) {
  const auto slices = slices_of({{0, 100}, {10, 20}, {20, 30}, {25, 110}, {100, 120}});
  const auto tracks = split_tracks(slices, Overlap::nest);
  ASSERT_EQ(tracks.size(), 2u);
  EXPECT_EQ(tracks[0].size(), 4u);
  ASSERT_EQ(tracks[1].size(), 1u);
  EXPECT_EQ(tracks[1][0].end, 110);
}

TEST(SplitTracks, GpuWorkNeverSharesATrack) {
  const auto slices = slices_of({{0, 100}, {10, 20}, {20, 30}, {100, 110}, {105, 107}});
  const auto tracks = split_tracks(slices, Overlap::apart);
  ASSERT_EQ(tracks.size(), 2u);
  for (const auto& track : tracks) {
    for (size_t i = 1; i < track.size(); ++i) EXPECT_LE(track[i - 1].end, track[i].begin);
  }
}

TEST(SplitTracks, ThereIsALimit) {
  std::vector<Slice> slices;
  for (int64_t i = 0; i < 500; ++i) slices.push_back({EventIndex::none, i, 1000 + i});
  for (const Overlap overlap : {Overlap::nest, Overlap::apart}) {
    const auto tracks = split_tracks(slices, overlap);
    EXPECT_EQ(tracks.size(), kMaxTracks);
    size_t count = 0;
    for (const auto& track : tracks) {
      count += track.size();
      for (const Slice& slice : track) EXPECT_LE(slice.begin, slice.end);
    }
    EXPECT_EQ(count, slices.size());
  }
}

// A type that names the one before twice, `times` times over: its text doubles with each.
std::string doubling_name(int times) {
  std::string name = "_Z1fSt4pairIiiE";
  for (int i = 0; i < times; ++i) {
    constexpr std::string_view kDigits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";
    const std::string before = std::string("S") + kDigits[static_cast<size_t>(i)] + "_";
    name += "S_I" + before + before + "E";
  }
  return name;
}

TEST(Names, AreBounded) {
  const std::string pair = "std::pair<int, int>", twice = "std::pair<" + pair + ", " + pair + " >";
  EXPECT_EQ(demangle(doubling_name(1)), "f(" + pair + ", " + twice + ")");
  EXPECT_EQ(demangle(doubling_name(30)), doubling_name(30)) << "tens of gigabytes";
  size_t longest = 0;
  for (int times = 0; times < 36; ++times) {
    const std::string name = doubling_name(times), text = demangle(name);
    EXPECT_LE(text.size(), kMostDemangled * name.size());
    longest = std::max(longest, text.size());
  }
  EXPECT_GT(longest, 3000u);
}

TEST(Names, AreKinetos) {
  EXPECT_EQ(demangle("_Z4gemmPf"), "gemm(float*)");
  EXPECT_EQ(demangle("ampere_sgemm"), "ampere_sgemm");
  EXPECT_EQ(demangle("_Znonsense"), "_Znonsense");
  EXPECT_EQ(overhead_name(1 << 16), "Buffer Flush");
  EXPECT_EQ(overhead_name(12345), "Unknown");
  EXPECT_EQ(sync_type_name(3), "Stream Sync");
  EXPECT_EQ(copy_direction_name(99), "Unknown");
  EXPECT_EQ(collective_name("ncclAllReduce").annotation, "nccl:all_reduce");
  EXPECT_EQ(collective_name("ncclNew").annotation, "ncclNew");
  EXPECT_EQ(nccl_type(9).bytes, 2u);
  EXPECT_EQ(nccl_type(0xffffffff).bytes, 0u);
}

TEST(Names, Utf8IsMadeValid) {
  EXPECT_EQ(valid_utf8("plain \xc3\xa4 \xe2\x82\xac \xf0\x9f\x98\x80"),
            "plain \xc3\xa4 \xe2\x82\xac \xf0\x9f\x98\x80");
  for (const char* bad :
       {"\xff", "\xc0\x80", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xc3", "\xe2\x82"}) {
    EXPECT_FALSE(is_valid_utf8(bad));
    EXPECT_TRUE(is_valid_utf8(valid_utf8(bad)));
  }
}

TEST(Occupancy, FollowsTheTightestLimit) {
  dump::Device device;
  device.set_multiprocessors(100);
  device.set_max_threads_per_multiprocessor(2048);
  device.set_registers_per_multiprocessor(65536);
  device.set_shared_bytes_per_multiprocessor(100 * 1024);
  Shape kernel{};
  kernel.grid = {10000, 1, 1};
  kernel.block = {256, 1, 1};
  EXPECT_EQ(occupancy_of(kernel, device).percent, 100);
  EXPECT_DOUBLE_EQ(occupancy_of(kernel, device).blocks_per_sm, 100);
  kernel.registers_per_thread = 64;  // 4 blocks of 16384 registers
  EXPECT_EQ(occupancy_of(kernel, device).percent, 50);
  kernel.dynamic_shared_bytes = 60 * 1024;  // 1 block
  EXPECT_EQ(occupancy_of(kernel, device).percent, 13);
  kernel.grid.x = 50;  // half the multiprocessors
  EXPECT_EQ(occupancy_of(kernel, device).percent, 6);
  EXPECT_EQ(occupancy_of(kernel, dump::Device()).percent, 0);
}

}  // namespace
}  // namespace gpuprof::test
