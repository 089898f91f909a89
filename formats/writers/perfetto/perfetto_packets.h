// SPDX-License-Identifier: Apache-2.0
// Perfetto's trace format on the level of packets: field numbers, interning,
// tracks. One packet sequence; an interned name travels in the packet that uses
// it first, or in one before.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>

#include "formats/core/byte_buffer.h"
#include "formats/core/wire.h"

namespace gpuprof::perfetto {

constexpr uint32_t kSequence = 1;    // sequence id of all packets
constexpr uint32_t kNeedsState = 2;  // sequence flags: uses names that were defined before

// Numbers of fields that many packets have.
namespace packet_field {
enum : uint32_t {
  kTimestamp = 8,
  kSequenceId = 10,
  kTrackEvent = 11,
  kSequenceFlags = 13,
  kRenderStage = 53,
  kClock = 58
};
}
namespace event_field {
enum : uint32_t {
  kCategories = 3,
  kAnnotation = 4,
  kAnnotationTag = kAnnotation << 3 | 2,
  kType = 9,
  kName = 10,
  kTrack = 11,
  kFlow = 47,
  kTerminatingFlow = 48
};
}

// The sequence's own clock begins with the trace: small numbers make small packets. A time before
// that is one of the wall clock, which the packet then names.
struct Stamp {
  uint64_t value;
  bool absolute;
};
inline Stamp stamp_of(int64_t time, int64_t start) {
  if (time >= start) return {static_cast<uint64_t>(time - start), false};
  return {time > 0 ? static_cast<uint64_t>(time) : 0, true};
}
constexpr uint32_t kWallClock = 6;  // BOOTTIME, which shows Unix time in our traces

enum class EventType : uint32_t { slice_begin = 1, slice_end = 2, instant = 3, counter = 4 };

struct Track {
  uint64_t uuid = 0;
  uint64_t parent = 0;
  std::string_view name;
  int32_t rank = 0;  // place among its siblings
  bool children_ordered = false;
  bool counter_bytes = false;          // a counter of bytes
  std::string_view counter_unit = {};  // a counter of something else; "1" for plain numbers
  bool counter_bare = false;           // a counter whose unit is not known
};

// A file that was mapped, and a function in it.
struct CodeMapping {
  uint64_t begin = 0, end = 0;
  std::string_view path, build_id;
};
struct CallFrame {
  std::string_view function, file;
  uint32_t line = 0;
  uint64_t mapping = 0;  // of define_mapping(); each frame has one
  uint64_t offset = 0;   // from the mapping's begin
};

// Bytes and calls of one call stack, and how much of both was given back.
struct HeapStack {
  uint64_t callstack;
  uint64_t bytes, count, freed_bytes, freed_count;
};

// Packets one after the other; names that they share. Not thread-safe.
class PacketWriter {
 public:
  explicit PacketWriter(std::string& out) : out_(out) {}

  // First packets: the sequence begins, its clock at `time`.
  void start(int64_t time);
  int64_t start_time() const { return start_; }
  void process_track(uint64_t uuid, int64_t pid, std::string_view name, std::string_view label,
                     int64_t time);
  void thread_track(uint64_t uuid, int64_t pid, int64_t tid, std::string_view name, int64_t time);
  void track(const Track& track);

  // A thread's call stack at a moment.
  void stack_sample(int64_t time, int64_t pid, int64_t tid, uint64_t callstack);
  // What a process allocated up to a moment, by call stack: the flame graph of its heap.
  void heap_profile(int64_t time, int64_t pid, uint64_t interval,
                    std::span<const HeapStack> stacks);
  void begin_event(EventType type, uint64_t track, int64_t time);
  void name(std::string_view name);
  void category(std::string_view category);
  void counter(int64_t value);
  void counter(double value);
  void end_event();

  // Interned texts: names of events, categories, keys and text values of
  // arguments, names for the GPU pages; and the context of a process there.
  // Known from the next packet or define() on.
  uint64_t name_id(std::string_view text) { return intern(names_, text); }
  uint64_t category_id(std::string_view text) { return intern(categories_, text); }
  uint64_t key(std::string_view text) { return intern(annotation_names_, text); }
  uint64_t value(std::string_view text) { return intern(strings_, text); }
  uint64_t stage(std::string_view text) { return intern(stages_, text); }
  uint64_t context(int64_t pid);
  // Call stacks likewise. Frames outermost first.
  uint64_t define_mapping(const CodeMapping& mapping);
  uint64_t define_frame(const CallFrame& frame);
  uint64_t define_callstack(std::span<const uint64_t> frames);
  // A packet with what was interned since the last one.
  void define();

 private:
  struct TextHash {
    using is_transparent = void;
    size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
  };
  // Interned texts of one kind, by field number of InternedData.
  struct Pool {
    uint32_t field;
    std::unordered_map<std::string, uint64_t, TextHash, std::equal_to<>> ids{};
  };
  uint64_t intern(Pool& pool, std::string_view text);
  void begin_packet(int64_t time);
  void write_interned();
  void write_packet();

  std::string& out_;
  ByteBuffer packet_, interned_;
  WireWriter wire_{packet_}, interned_wire_{interned_};
  size_t event_mark_ = 0;
  uint64_t heap_profiles_ = 0;
  int64_t last_heap_profile_ = 0;
  int64_t start_ = 0;
  Pool categories_{1}, names_{2}, annotation_names_{3}, strings_{29}, stages_{24};
  std::unordered_map<int64_t, uint64_t> contexts_;  // by pid
  Pool functions_{5}, build_ids_{16}, mapping_paths_{17}, source_paths_{18};
  uint64_t mappings_ = 0, frames_ = 0, callstacks_ = 0;
};

}  // namespace gpuprof::perfetto
