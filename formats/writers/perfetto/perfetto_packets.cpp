// SPDX-License-Identifier: Apache-2.0
#include "formats/writers/perfetto/perfetto_packets.h"

#include "formats/io/utf8.h"

namespace gpuprof::perfetto {
namespace {

constexpr uint32_t kStateCleared = 1;
constexpr uint32_t kClockRealtime = 1;
constexpr uint32_t kMonotonicCoarse = 4;  // what heap profiles name their time by
constexpr uint32_t kOwnClock = 64;        // the first of those that are a sequence's own

namespace packet {
enum : uint32_t {
  clock_snapshot = 6,
  interned_data = 12,
  profile = 37,
  defaults = 59,
  track_descriptor = 60,
  perf_sample = 66
};
}
namespace descriptor {
enum : uint32_t {
  uuid = 1,
  name = 2,
  process = 3,
  thread = 4,
  parent = 5,
  counter = 8,
  child_ordering = 11,
  sibling_rank = 12
};
}
namespace event {
enum : uint32_t { counter_value = 30, double_counter_value = 44 };
}
namespace interned {
enum : uint32_t { frame = 6, callstack = 7, mapping = 19 };
}
constexpr uint32_t kOrderExplicit = 3;
constexpr uint32_t kUnitBytes = 3;
constexpr uint32_t kGraphicsContexts = 23, kCuda = 4;

uint64_t clip(int64_t time) { return time > 0 ? static_cast<uint64_t>(time) : 0; }

}  // namespace

void PacketWriter::write_packet() {
  uint8_t head[1 + kMaxVarintBytes] = {1 << 3 | 2};  // Trace.packet
  const uint8_t* const end = put_varint(head + 1, packet_.size());
  out_.append(reinterpret_cast<const char*>(head), static_cast<size_t>(end - head));
  out_.append(reinterpret_cast<const char*>(packet_.data()), packet_.size());
  packet_.clear();
}

void PacketWriter::start(int64_t time) {
  start_ = static_cast<int64_t>(clip(time));
  wire_.uint(packet_field::kSequenceId, kSequence);
  wire_.uint(packet_field::kSequenceFlags, kStateCleared);
  const size_t defaults = wire_.open(packet::defaults);
  wire_.uint(packet_field::kClock, kOwnClock);
  wire_.close(defaults);
  write_packet();
  wire_.uint(packet_field::kSequenceId, kSequence);
  const size_t snapshot = wire_.open(packet::clock_snapshot);
  for (const uint32_t clock : {kWallClock, kClockRealtime, kMonotonicCoarse, kOwnClock}) {
    const size_t mark = wire_.open(1);
    wire_.uint(1, clock);
    wire_.uint_always(2, clock == kOwnClock ? 0 : clip(time));
    wire_.close(mark);
  }
  wire_.close(snapshot);
  write_packet();
}

void PacketWriter::begin_packet(int64_t time) {
  const Stamp stamp = stamp_of(time, start_);
  wire_.uint_always(packet_field::kTimestamp, stamp.value);
  if (stamp.absolute) wire_.uint(packet_field::kClock, kWallClock);
  wire_.uint(packet_field::kSequenceId, kSequence);
  wire_.uint(packet_field::kSequenceFlags, kNeedsState);
}

void PacketWriter::process_track(uint64_t uuid, int64_t pid, std::string_view name,
                                 std::string_view label, int64_t time) {
  wire_.uint_always(packet_field::kTimestamp, clip(time));
  const size_t mark = wire_.open(packet::track_descriptor);
  wire_.uint(descriptor::uuid, uuid);
  const size_t process = wire_.open(descriptor::process);
  wire_.int_field(1, pid);
  wire_.text(6, valid_utf8(name));
  wire_.text(8, valid_utf8(label));
  wire_.close(process);
  wire_.close(mark);
  write_packet();
}

void PacketWriter::thread_track(uint64_t uuid, int64_t pid, int64_t tid, std::string_view name,
                                int64_t time) {
  wire_.uint_always(packet_field::kTimestamp, clip(time));
  const size_t mark = wire_.open(packet::track_descriptor);
  wire_.uint(descriptor::uuid, uuid);
  const size_t thread = wire_.open(descriptor::thread);
  wire_.int_field(1, pid);
  wire_.int_field(2, tid);
  wire_.text(5, valid_utf8(name));
  wire_.close(thread);
  wire_.close(mark);
  write_packet();
}

void PacketWriter::track(const Track& track) {
  const size_t mark = wire_.open(packet::track_descriptor);
  wire_.uint(descriptor::uuid, track.uuid);
  wire_.text(descriptor::name, valid_utf8(track.name));
  wire_.uint(descriptor::parent, track.parent);
  if (track.counter_bytes || track.counter_bare || !track.counter_unit.empty()) {
    const size_t counter = wire_.open(descriptor::counter);
    if (track.counter_bytes) wire_.uint(3, kUnitBytes);
    if (!track.counter_unit.empty()) wire_.text(6, track.counter_unit);
    wire_.close(counter);
  }
  if (track.children_ordered) wire_.uint(descriptor::child_ordering, kOrderExplicit);
  wire_.int_field(descriptor::sibling_rank, track.rank);
  wire_.close(mark);
  write_packet();
}

uint64_t PacketWriter::intern(Pool& pool, std::string_view text) {
  const auto known = pool.ids.find(text);
  if (known != pool.ids.end()) return known->second;
  const uint64_t id = pool.ids.size() + 1;
  pool.ids.emplace(text, id);
  const size_t mark = interned_wire_.open(pool.field);
  interned_wire_.uint(1, id);
  interned_wire_.bytes(2, valid_utf8(text));
  interned_wire_.close(mark);
  return id;
}

void PacketWriter::begin_event(EventType type, uint64_t track, int64_t time) {
  begin_packet(time);
  event_mark_ = wire_.open(packet_field::kTrackEvent);
  wire_.uint(event_field::kType, static_cast<uint32_t>(type));
  wire_.uint(event_field::kTrack, track);
}

void PacketWriter::name(std::string_view name) {
  wire_.uint(event_field::kName, intern(names_, name));
}

void PacketWriter::category(std::string_view category) {
  wire_.uint(event_field::kCategories, intern(categories_, category));
}

void PacketWriter::counter(int64_t value) {
  wire_.uint_always(event::counter_value, static_cast<uint64_t>(value));
}

void PacketWriter::counter(double value) { wire_.real(event::double_counter_value, value); }

uint64_t PacketWriter::define_mapping(const CodeMapping& mapping) {
  // Readers put a slash before each part of a path.
  const bool rooted = mapping.path.starts_with('/');
  const uint64_t path = intern(mapping_paths_, mapping.path.substr(rooted ? 1 : 0));
  std::string hex;
  for (const char byte : mapping.build_id) {
    constexpr char kDigits[] = "0123456789abcdef";
    hex += kDigits[static_cast<uint8_t>(byte) >> 4];
    hex += kDigits[static_cast<uint8_t>(byte) & 15];
  }
  const uint64_t build_id = hex.empty() ? 0 : intern(build_ids_, hex);
  const size_t mark = interned_wire_.open(interned::mapping);
  interned_wire_.uint(1, ++mappings_);
  interned_wire_.uint(2, build_id);
  interned_wire_.uint(4, mapping.begin);
  interned_wire_.uint(5, mapping.end);
  interned_wire_.uint(7, path);
  interned_wire_.close(mark);
  return mappings_;
}

uint64_t PacketWriter::define_frame(const CallFrame& frame) {
  const uint64_t function = intern(functions_, frame.function);
  const uint64_t file = frame.file.empty() ? 0 : intern(source_paths_, frame.file);
  const size_t mark = interned_wire_.open(interned::frame);
  interned_wire_.uint(1, ++frames_);
  interned_wire_.uint(2, function);
  interned_wire_.uint(3, frame.mapping);
  interned_wire_.uint_always(4, frame.offset);
  interned_wire_.uint(5, file);
  interned_wire_.uint(6, frame.line);
  interned_wire_.close(mark);
  return frames_;
}

uint64_t PacketWriter::define_callstack(std::span<const uint64_t> frames) {
  const size_t mark = interned_wire_.open(interned::callstack);
  interned_wire_.uint(1, ++callstacks_);
  for (const uint64_t frame : frames) interned_wire_.uint(2, frame);
  interned_wire_.close(mark);
  return callstacks_;
}

void PacketWriter::stack_sample(int64_t time, int64_t pid, int64_t tid, uint64_t callstack) {
  begin_packet(time);
  write_interned();
  const size_t mark = wire_.open(packet::perf_sample);
  wire_.int_field(2, pid);
  wire_.int_field(3, tid);
  wire_.uint(4, callstack);
  wire_.close(mark);
  write_packet();
}

void PacketWriter::heap_profile(int64_t time, int64_t pid, uint64_t interval,
                                std::span<const HeapStack> stacks) {
  // Readers take packets in order of time, and one whose number does not follow for a loss.
  last_heap_profile_ = std::max(last_heap_profile_, time);
  begin_packet(last_heap_profile_);
  write_interned();
  const size_t mark = wire_.open(packet::profile);
  const size_t process = wire_.open(5);
  wire_.int_field(1, pid);
  for (const HeapStack& stack : stacks) {
    const size_t sample = wire_.open(2);
    wire_.uint(1, stack.callstack);
    wire_.uint(2, stack.bytes);
    wire_.uint(3, stack.freed_bytes);
    wire_.uint(5, stack.count);
    wire_.uint(6, stack.freed_count);
    wire_.close(sample);
  }
  wire_.uint(9, clip(time));
  wire_.text(11, "host memory");
  wire_.uint(12, interval);
  wire_.close(process);
  wire_.uint_always(7, heap_profiles_++);
  wire_.close(mark);
  write_packet();
}

void PacketWriter::end_event() {
  wire_.close(event_mark_);
  write_interned();
  write_packet();
}

void PacketWriter::write_interned() {
  if (interned_.empty()) return;
  wire_.bytes(packet::interned_data, interned_.data(), interned_.size());
  interned_.clear();
}

uint64_t PacketWriter::context(int64_t pid) {
  const auto [at, fresh] = contexts_.emplace(pid, contexts_.size() + 1);
  if (fresh) {
    const size_t mark = interned_wire_.open(kGraphicsContexts);
    interned_wire_.uint(1, at->second);
    interned_wire_.int_field(2, pid);
    interned_wire_.uint(3, kCuda);
    interned_wire_.close(mark);
  }
  return at->second;
}

void PacketWriter::define() {
  if (interned_.empty()) return;
  wire_.uint(packet_field::kSequenceId, kSequence);
  wire_.uint(packet_field::kSequenceFlags, kNeedsState);
  write_interned();
  write_packet();
}

}  // namespace gpuprof::perfetto
