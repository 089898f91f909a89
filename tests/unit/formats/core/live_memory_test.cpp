// SPDX-License-Identifier: Apache-2.0
// What was allocated at a moment: from rows to a dump, and back.
#include "formats/core/live_memory.h"

#include <gtest/gtest.h>

#include "tests/unit/support/recovered.h"
#include "tests/unit/support/ring_maker.h"

namespace gpuprof::test {
namespace {

using Lines = std::vector<std::string>;

struct LiveDump {
  LiveDump() { append(bytes, ChunkKind::header, make_header()); }

  // `number`: of the failed allocation; 0: none.
  void add(LiveMoment moment, const std::vector<LiveRow>& rows, uint32_t number = 0,
           StringId stack = 0) {
    FailedAllocationRow failed{};
    failed.ticks = 4'000'000;
    failed.bytes = 1000 + number;
    failed.number = number;
    failed.stack = stack;
    failed.api = kNoApi;
    failed.device = 1;
    AllocatorRow allocators[kMostAllocators]{};
    allocators[1].allocated = 300, allocators[1].reserved = 400, allocators[1].peak = 350;
    ByteBuffer body;
    const LiveMemoryParts parts{
        moment, 4'000'000, rows.data(), rows.size(), number ? &failed : nullptr, allocators};
    ASSERT_TRUE(encode_live_memory(body, parts, names, 0));
    ASSERT_TRUE(append_chunk(bytes, ChunkKind::live_memory, body.data(), body.size(), 6));
  }
  Trace read() {
    append(bytes, ChunkKind::summary, make_summary(2'000'000'000));
    return load(view(bytes));
  }

  MemoryNames names;
  ByteBuffer bytes;
};

LiveRow row(uint64_t address, uint64_t bytes, uint64_t ticks, ApiId api, uint16_t device,
            StringId stack = 0) {
  return {address, bytes, ticks, 0, 77, stack, api, device, {}};
}

// Of a trace that has one, and no problem.
const LiveMemory& only_moment_of(const Trace& trace) {
  EXPECT_TRUE(trace.problems.empty());
  EXPECT_EQ(trace.processes.at(0).live_memory.size(), 1u);
  return trace.processes.at(0).live_memory.at(0);
}

TEST(LiveMemoryMessage, ComesBackAsItWentIn) {
  LiveDump dump;
  const ApiId malloc = dump.names.api("cudaMalloc");
  const PythonCodeName code{dump.names.intern("train.py"), dump.names.intern("main")};
  const StringId id = dump.names.intern({reinterpret_cast<const char*>(&code), sizeof code});
  const StringId stack = dump.names.intern_stack({0x1010, kPythonFrame | uint64_t{12} << 32 | id});
  dump.add(LiveMoment::window_begins,
           {row(0x9000, 64, 3'000'000, kNoApi, 1, stack), row(0x8000, 4096, 2'500'000, malloc, 1),
            row(0x7000, 128, 2'600'000, malloc, kNoDevice)});
  const Trace trace = dump.read();
  const Process& p = trace.processes.at(0);
  const LiveMemory& live = only_moment_of(trace);
  ASSERT_EQ(live.allocations.size(), 3u);
  const LiveAllocation &host = live.allocations[0], &segment = live.allocations[1],
                       &block = live.allocations[2];
  EXPECT_EQ(host.address, 0x7000u);
  EXPECT_EQ(host.device, Shape::kAbsent);
  EXPECT_EQ(segment.bytes, 4096u);
  EXPECT_EQ(segment.time, kEpochNs + 250'000);
  EXPECT_EQ(trace.text(segment.api), "cudaMalloc");
  EXPECT_EQ(segment.device, 1u);
  EXPECT_TRUE(block.is_block());
  EXPECT_EQ(block.thread, 77u);
  EXPECT_EQ(p.stacks.lines(block.stack), (Lines{"0x1010", "main (train.py:12)"}));
  EXPECT_TRUE(live.failed.empty());
  ASSERT_EQ(live.allocators.size(), 1u);
  EXPECT_EQ(live.allocators[0].reserved, 400u);
}

TEST(LiveMemoryMessage, TheNewestFailureIsKept) {
  LiveDump dump;
  const StringId stack = dump.names.intern_stack({0x2020});
  dump.add(LiveMoment::out_of_memory, {row(0x8000, 1, 3'000'000, kNoApi, 1)}, 2);
  dump.add(LiveMoment::out_of_memory, {row(0x9000, 2, 3'000'000, kNoApi, 1)}, 3, stack);
  dump.add(LiveMoment::out_of_memory, {row(0xa000, 3, 3'000'000, kNoApi, 1)}, 1);
  const Trace trace = dump.read();
  const Process& p = trace.processes.at(0);
  const LiveMemory& live = only_moment_of(trace);
  ASSERT_EQ(live.failed.size(), 1u);
  EXPECT_EQ(live.failed[0].number, 3u);
  EXPECT_EQ(live.failed[0].bytes, 1003u);
  EXPECT_EQ(p.stacks.lines(live.failed[0].stack), Lines{"0x2020"});
  ASSERT_EQ(live.allocations.size(), 1u);
  EXPECT_EQ(live.allocations[0].address, 0x9000u);
}

TEST(LiveMemoryMessage, ARingThatWasLeftHasThem) {
  RingMaker ring(1, 16 * 1024, true);
  const ApiId malloc = ring.add_api("cudaMalloc");
  ring.fill(0, 1, 77, {make_record(Kind::call, 3'000'000, 3'010'000, malloc)});
  const StringId stack = ring.add_stack({0x2020});
  ring.add_live_at_begin(row(0x9000, 64, 1'900'000, malloc, 0));
  ASSERT_TRUE(ring.add_live(row(0xa000, 128, 3'200'000, malloc, 0, stack)));
  const Recovered got = recover(ring.bytes());
  EXPECT_TRUE(got.problems.empty() && got.trace.problems.empty());
  const Process& p = got.trace.processes.at(0);
  const LiveMemory *const begin = p.live_at(LiveMoment::window_begins), *const left = p.live_at(
                                                                            LiveMoment::left);
  ASSERT_TRUE(begin && left);
  ASSERT_EQ(begin->allocations.size(), 1u);
  EXPECT_EQ(begin->allocations[0].bytes, 64u);
  ASSERT_EQ(left->allocations.size(), 1u);
  EXPECT_EQ(left->allocations[0].address, 0xa000u);
  EXPECT_EQ(p.stacks.lines(left->allocations[0].stack), Lines{"0x2020"});
  EXPECT_FALSE(p.live_at(LiveMoment::out_of_memory));
}

TEST(LiveMemoryMessage, MomentsThatAreNotKnownAreSkipped) {
  LiveDump dump;
  dump.add(static_cast<LiveMoment>(9), {row(0x8000, 1, 3'000'000, kNoApi, 1)});
  const Trace trace = dump.read();
  EXPECT_EQ(trace.problems.size(), 1u);
  EXPECT_TRUE(trace.processes.at(0).live_memory.empty());
}

TEST(LiveMemoryMessage, StacksThatWouldBeTooManyAreLeftOut) {
  LiveDump dump;
  const std::vector<uint64_t> frames(500, 0x1010);
  std::vector<LiveRow> rows;
  for (uint64_t i = 0; i < 20'000; ++i) {  // 10 million frames
    rows.push_back(row(0x8000 + i * 8, 1, 3'000'000, kNoApi, 1, dump.names.intern_stack(frames)));
  }
  AllocatorRow allocators[kMostAllocators]{};
  ByteBuffer body;
  const LiveMemoryParts parts{LiveMoment::left, 1, rows.data(), rows.size(), nullptr, allocators};
  ASSERT_TRUE(encode_live_memory(body, parts, dump.names, 0));
  dump::LiveMemory read;
  ASSERT_TRUE(read.ParseFromArray(body.data(), static_cast<int>(body.size())));
  EXPECT_EQ(read.address_size(), 20'000);
  EXPECT_GT(read.stack_frame_size(), 4'000'000);
  EXPECT_LT(read.stack_frame_size(), 4'300'000);
}

}  // namespace
}  // namespace gpuprof::test
