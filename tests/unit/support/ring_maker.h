// SPDX-License-Identifier: Apache-2.0
// Makes a ring file in memory as the collector does, for tests of what reads one.
#pragma once

#include <cstring>
#include <new>
#include <string>
#include <string_view>
#include <vector>

#include "formats/core/live_table.h"
#include "formats/core/ring_file.h"
#include "formats/core/string_table.h"
#include "tests/unit/support/dump_maker.h"

namespace gpuprof::test {

class RingMaker {
 public:
  // `memory_log`: as with GPUPROF_MEMORY=1.
  explicit RingMaker(uint32_t chunk_count, size_t table_bytes = 16 * 1024,
                     bool memory_log = false) {
    uint64_t at = 4096;
    const auto region = [&at](RingRegion& r, uint64_t bytes) {
      r.offset = at;
      r.bytes = bytes;
      at += bytes;
    };
    auto* const h = new (head_bytes_) RingHeader{};
    region(h->identity, 4096);
    region(h->steps, 1024);
    region(h->strings, table_bytes);
    region(h->shapes, table_bytes);
    region(h->functions, 1024);
    region(h->api_names, 1024);
    region(h->graph_nodes, 4 * sizeof(GraphNodeRow));
    region(h->stacks, table_bytes);
    if (memory_log) {
      region(h->live, LiveTable::bytes_for(kLiveSlots));
      region(h->live_at_begin, kLiveSlots * sizeof(LiveRow) + sizeof h->allocators);
      region(h->live_at_failure, kLiveSlots * sizeof(LiveRow) + sizeof h->allocators);
    }
    region(h->chunks, uint64_t{chunk_count} * kChunkBytes);
    h->tail_offset = at;
    words_.resize(at / 8);
    h->magic = kRingMagic;
    h->version = kRingVersion;
    h->header_bytes = sizeof(RingHeader);
    h->record_bytes = sizeof(Record);
    h->chunk_bytes = kChunkBytes;
    h->chunk_count = chunk_count;
    h->clock_source = static_cast<uint32_t>(ClockSource::tsc);
    h->clock_shift = 1;
    h->process_id = 4242;
    h->phase = static_cast<uint32_t>(SessionPhase::active);
    h->window_begin_ticks = 2'000'000;
    h->window_first_step = 12;
    h->window_last_step = 12;
    h->anchor_count = 2;
    for (int i = 0; i < 2; ++i) {
      h->anchors[i] = {2'000'000 + 2'000'000'000u * static_cast<uint64_t>(i),
                       1'000'000'000u + 1'000'000'000u * static_cast<uint64_t>(i),
                       kEpochNs + 1'000'000'000u * static_cast<uint64_t>(i)};
    }
    StringTable::format(at_offset(h->strings.offset), h->strings.bytes);
    ShapeTable::format(at_offset(h->shapes.offset), h->shapes.bytes);
    StringTable::format(at_offset(h->stacks.offset), h->stacks.bytes);
    if (memory_log) LiveTable::format(at_offset(h->live.offset), kLiveSlots);
    strings_ = StringTable(at_offset(h->strings.offset), h->strings.bytes, &h->strings.used);
    shapes_ = ShapeTable(at_offset(h->shapes.offset), h->shapes.bytes, &h->shapes.used);
    stacks_ = StringTable(at_offset(h->stacks.offset), h->stacks.bytes, &h->stacks.used);
    dump::Header identity = make_header(1);
    identity.clear_clock();
    set_identity(identity);
  }

  RingHeader& head() { return *std::launder(reinterpret_cast<RingHeader*>(head_bytes_)); }
  StringTable& strings() { return strings_; }
  ShapeTable& shapes() { return shapes_; }
  // Frames innermost first, as the collector keeps them.
  StringId add_stack(const std::vector<uint64_t>& frames) {
    return stacks_.intern(
        {reinterpret_cast<const char*>(frames.data()), frames.size() * sizeof(uint64_t)});
  }

  void set_identity(const dump::Header& header) {
    const std::string bytes = header.SerializeAsString();
    std::memcpy(at_offset(head().identity.offset), bytes.data(), bytes.size());
    head().identity.used = bytes.size();
  }
  ApiId add_api(std::string_view name, uint32_t domain = 1) {
    const auto index = static_cast<ApiId>(head().api_names.used / sizeof(ApiName));
    append_row(head().api_names, ApiName{strings_.intern(name), domain});
    return index;
  }
  void add_function(uint64_t function, std::string_view name) {
    append_row(head().functions, FunctionName{function, strings_.intern(name), 1});
  }
  // What GPUPROF_MEMORY keeps: what is allocated now, and was when the window began.
  bool add_live(const LiveRow& row) {
    return LiveTable(at_offset(head().live.offset), head().live.bytes).insert(row);
  }
  void add_live_at_begin(const LiveRow& row) {
    head().live_window = head().window + 1;
    head().live_begin_ticks = head().window_begin_ticks.load();
    append_row(head().live_at_begin, row);
  }
  // Its slots are used over again.
  void add_graph_node(const GraphNodeRow& row) {
    RingRegion& region = head().graph_nodes;
    std::memcpy(static_cast<char*>(at_offset(region.offset)) + region.used % region.bytes, &row,
                sizeof row);
    region.used += sizeof row;
  }
  // Boundaries are numbered through the run; start_steps says from which on they are in the ring.
  void start_steps(uint64_t first) {
    head().steps_base = first;
    head().steps.used = first * sizeof(uint64_t);
  }
  void add_step(uint64_t ticks) {
    const uint64_t slots = head().steps.bytes / sizeof(uint64_t);
    const uint64_t number = head().steps.used / sizeof(uint64_t);
    std::memcpy(at_offset(head().steps.offset + number % slots * sizeof(uint64_t)), &ticks,
                sizeof ticks);
    head().steps.used = (number + 1) * sizeof(uint64_t);
  }

  RingChunk& chunk(uint32_t index) {
    return *reinterpret_cast<RingChunk*>(
        at_offset(head().chunks.offset + uint64_t{index} * kChunkBytes));
  }
  // A chunk in use by thread `thread` with these records.
  RingChunk& fill(uint32_t index, uint64_t sequence, uint32_t thread,
                  const std::vector<Record>& records, ChunkState state = ChunkState::open) {
    RingChunk& c = chunk(index);
    c.state = static_cast<uint32_t>(state);
    c.sequence = sequence;
    c.thread_id = thread;
    c.window = head().window;
    std::memcpy(c.thread_name, "worker", 7);
    for (size_t i = 0; i < records.size(); ++i) c.records[i] = records[i];
    c.committed = static_cast<uint32_t>(records.size());
    return c;
  }
  void set_tail(const ByteBuffer& chunks) { tail_.assign(view(chunks)); }

  std::string bytes() {
    std::memcpy(words_.data(), head_bytes_, sizeof(RingHeader));
    return std::string(reinterpret_cast<const char*>(words_.data()), words_.size() * 8) + tail_;
  }

 private:
  static constexpr uint64_t kLiveSlots = 16;
  void* at_offset(uint64_t offset) { return reinterpret_cast<char*>(words_.data()) + offset; }
  template <typename Row>
  void append_row(RingRegion& region, const Row& row) {
    std::memcpy(static_cast<char*>(at_offset(region.offset)) + region.used, &row, sizeof row);
    region.used += sizeof row;
  }

  alignas(RingHeader) unsigned char head_bytes_[sizeof(RingHeader)] = {};
  std::vector<uint64_t> words_;
  std::string tail_;
  StringTable strings_, stacks_;
  ShapeTable shapes_;
};

// A ring with one thread, a launch, its kernel and two steps.
inline RingMaker small_ring(uint32_t chunks = 2) {
  RingMaker ring(chunks);
  const ApiId launch = ring.add_api("cudaLaunchKernel");
  ring.add_function(0x400100, "_Z4gemmPf");
  Record call = make_record(Kind::launch, 3'000'000, 3'010'000, launch);
  call.correlation = 5;
  call.launch.function = 0x400100;
  call.launch.grid_x = 4;
  Record work = make_record(Kind::gpu_kernel, 3'020'000, 3'060'000);
  work.correlation = 5;
  work.gpu_kernel.name = ring.strings().intern("_Z4gemmPf");
  work.gpu_kernel.shape = ring.shapes().intern({{4, 1, 1}, {64, 1, 1}, 0, 0, 32, 1, 1, 1, 0, 0});
  work.gpu_kernel.stream = 7;
  ring.fill(0, 1, 4242, {call});
  ring.fill(1, 2, 4300, {work}, ChunkState::full);
  ring.start_steps(12);
  ring.add_step(2'000'000);
  ring.add_step(3'000'000);
  ring.add_step(4'000'000);
  ring.head().losses[static_cast<size_t>(Loss::buffer_full)] = 9;
  return ring;
}

}  // namespace gpuprof::test
