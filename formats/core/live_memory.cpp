// SPDX-License-Identifier: Apache-2.0
#include "formats/core/live_memory.h"

#include "formats/core/interned.h"
#include "formats/core/packed_column.h"
#include "formats/core/python_codes.h"
#include "formats/core/wire.h"

namespace gpuprof {
namespace {

// What is the same for many allocations: api << 16 | device.
struct Origin {
  uint32_t value;
  bool operator==(const Origin&) const = default;
};
uint64_t hash_of(Origin origin) { return gpuprof::hash_of(StringId{origin.value}); }

uint32_t plus_one(uint16_t device) { return device == kNoDevice ? 0 : device + 1u; }

class Writer {
 public:
  Writer(ByteBuffer& out, const NameResolver& names, uint32_t shift)
      : wire_(out), names_(names), shift_(shift) {}

  bool write(const LiveMemoryParts& parts) {
    wire_.uint(1, static_cast<uint32_t>(parts.moment));
    wire_.uint(2, parts.ticks >> shift_);
    if (!write_rows(parts.rows, parts.count)) return false;
    if (parts.failed) write_failed(*parts.failed);
    if (!write_stacks()) return false;
    for (const Origin& origin : origins_) {
      const size_t mark = wire_.open(13);
      wire_.text(1, names_.api_name(static_cast<ApiId>(origin.value >> 16)));
      wire_.uint(2, plus_one(static_cast<uint16_t>(origin.value)));
      wire_.close(mark);
    }
    for (uint32_t i = 0; i < kMostAllocators; ++i) write_allocator(i, parts.allocators[i]);
    return wire_.ok();
  }

 private:
  bool write_rows(const LiveRow* rows, size_t count) {
    PackedColumn address, bytes, time, origin, thread, stack;
    for (PackedColumn* const column : {&address, &bytes, &time, &origin, &thread, &stack}) {
      if (!column->start(count)) return false;
    }
    uint64_t last_address = 0, last_time = 0;
    for (size_t i = 0; i < count; ++i) {
      const LiveRow& row = rows[i];
      address.put(zigzag(static_cast<int64_t>(row.address - last_address)));
      last_address = row.address;
      bytes.put(row.bytes);
      const uint64_t at = row.ticks >> shift_;
      time.put(zigzag(static_cast<int64_t>(at - last_time)));
      last_time = at;
      const uint32_t from = origins_.position_of({uint32_t{row.api} << 16 | row.device});
      uint32_t number = 0;
      if (from == kNoPosition || !stack_number(row.stack, number)) return false;
      origin.put(from);
      thread.put(row.thread_id);
      stack.put(number);
    }
    address.write_always(wire_, 3);
    bytes.write_always(wire_, 4);
    time.write_always(wire_, 5);
    origin.write_always(wire_, 6);
    thread.write_always(wire_, 7);
    stack.write(wire_, 8);
    return true;
  }

  // The number of a stack in this message, from 1 on; 0: none. False: no memory.
  bool stack_number(StringId stack, uint32_t& number) {
    number = 0;
    const std::string_view frames = names_.stack(stack);
    if (stack == 0 || frames.empty() || frames_ > kMostFrames) return true;
    const size_t before = stacks_.size();
    const uint32_t position = stacks_.position_of(stack);
    if (position == kNoPosition) return false;
    if (stacks_.size() != before) frames_ += frames.size() / sizeof(uint64_t);
    number = position + 1;
    return true;
  }

  bool write_stacks() {
    size_t frames = 0;
    for (const StringId id : stacks_) frames += names_.stack(id).size() / sizeof(uint64_t);
    PackedColumn depths, column;
    if (!depths.start(stacks_.size()) || !column.start(frames)) return false;
    PythonCodes codes;
    uint64_t last = 0;
    for (const StringId id : stacks_) {
      const std::string_view stack = names_.stack(id);
      depths.put(stack.size() / sizeof(uint64_t));
      const bool all = each_frame(stack, [&](uint64_t frame) {
        if (!codes.number(frame)) return false;
        column.put(zigzag(static_cast<int64_t>(frame - last)));
        last = frame;
        return true;
      });
      if (!all) return false;
    }
    depths.write_always(wire_, 9);
    column.write_always(wire_, 10);
    return codes.each([&](StringId id) { return names_.string(id); },
                      [&](const PythonCodeName& code) {
                        wire_.bytes(11, names_.string(code.function));
                        wire_.bytes(12, names_.string(code.file));
                        return true;
                      });
  }

  void write_failed(const FailedAllocationRow& row) {
    uint32_t stack = 0;
    if (!stack_number(row.stack, stack)) stack = 0;
    const size_t mark = wire_.open(14);
    wire_.uint(1, row.ticks.load(std::memory_order_relaxed) >> shift_);
    wire_.uint(2, row.bytes);
    wire_.text(3, names_.api_name(row.api));
    wire_.uint(4, plus_one(row.device));
    wire_.uint(5, row.thread_id);
    wire_.uint(6, stack);
    wire_.uint(7, row.number);
    wire_.close(mark);
  }

  void write_allocator(uint32_t device, const AllocatorRow& row) {
    const uint64_t peak = row.peak.load(std::memory_order_relaxed);
    if (peak == 0) return;
    const size_t mark = wire_.open(15);
    wire_.uint(1, device);
    wire_.uint(2, row.allocated.load(std::memory_order_relaxed));
    wire_.uint(3, row.reserved.load(std::memory_order_relaxed));
    wire_.uint(4, peak);
    wire_.uint(5, row.peak_ticks.load(std::memory_order_relaxed) >> shift_);
    wire_.close(mark);
  }

  // Far more than a ring has room for; one that cannot be trusted may name the same bytes often.
  static constexpr size_t kMostFrames = 4 << 20;

  WireWriter wire_;
  const NameResolver& names_;
  uint32_t shift_;
  size_t frames_ = 0;  // in stacks_
  Interned<Origin> origins_;
  Interned<StringId> stacks_;
};

}  // namespace

bool encode_live_memory(ByteBuffer& out, const LiveMemoryParts& parts, const NameResolver& names,
                        uint32_t clock_shift) {
  return Writer(out, names, clock_shift).write(parts);
}

}  // namespace gpuprof
