// SPDX-License-Identifier: Apache-2.0
// Perfetto's trace format on the level of packets: field numbers, interning, tracks. One packet
// sequence; every interned name travels in the packet that uses it first.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>

#include "formats/core/byte_buffer.h"
#include "formats/core/wire.h"
#include "formats/file_bytes.h"

namespace gpuprof::perfetto {

enum class EventType : uint32_t { slice_begin = 1, slice_end = 2, instant = 3, counter = 4 };

struct Track {
  uint64_t uuid = 0;
  uint64_t parent = 0;
  std::string_view name;
  int32_t rank = 0;  // place among its siblings
  bool children_ordered = false;
  bool counter_bytes = false;          // a counter of bytes
  std::string_view counter_unit = {};  // a counter of something else; "1" for plain numbers
};

// A file that was mapped, and a function in it; mapping 0: none.
struct CodeMapping {
  uint64_t begin = 0, end = 0;
  std::string_view path, build_id;
};
struct CallFrame {
  std::string_view function, file;
  uint32_t line = 0;
  uint64_t mapping = 0;
  uint64_t offset = 0;  // from the mapping's begin
};

// Fields of one track event, between begin_event() and end_event().
class PacketWriter {
 public:
  explicit PacketWriter(OutputFile& file) : file_(file) {}

  // First packets: the sequence begins, and its clock is the wall clock.
  void start(int64_t time);
  void process_track(uint64_t uuid, int64_t pid, std::string_view name, std::string_view label,
                     int64_t time);
  void thread_track(uint64_t uuid, int64_t pid, int64_t tid, std::string_view name, int64_t time);
  void track(const Track& track);

  void begin_event(EventType type, uint64_t track, int64_t time);
  void name(std::string_view name);
  void category(std::string_view category);
  void flow(uint64_t id);
  void terminating_flow(uint64_t id);
  void counter(int64_t value);
  void counter(double value);
  void annotate(std::string_view key, uint64_t value);
  void annotate_pointer(std::string_view key, uint64_t value);  // shown in hexadecimal
  void annotate_signed(std::string_view key, int64_t value);
  void annotate(std::string_view key, std::string_view value);
  void annotate_once(std::string_view key, std::string_view value);  // a value that hardly recurs
  // Call stacks: what they are made of is defined while an event is being written, and has the
  // number that is returned from then on. Frames outermost first.
  uint64_t define_mapping(const CodeMapping& mapping);
  uint64_t define_frame(const CallFrame& frame);
  uint64_t define_callstack(std::span<const uint64_t> frames);
  void stack(uint64_t callstack);
  void end_event();

  // Work on a GPU as Perfetto's GPU pages want it, beside the slice that has its arguments and
  // flows.
  struct RenderStage {
    uint64_t id;             // of the work, unique in the file
    int32_t gpu;             // counted through over all processes
    int64_t pid;             // whose context it runs in
    std::string_view queue;  // "stream 7"
    std::string_view name;
    int64_t begin, end;
  };
  void render_stage(const RenderStage& stage);

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
  uint64_t intern_context(int64_t pid);
  void write_interned();
  void write_packet();

  OutputFile& file_;
  ByteBuffer packet_, interned_;
  WireWriter wire_{packet_}, interned_wire_{interned_};
  size_t event_mark_ = 0;
  Pool categories_{1}, names_{2}, annotation_names_{3}, strings_{29}, stages_{24};
  std::unordered_map<int64_t, uint64_t> contexts_;  // by pid
  Pool functions_{5}, build_ids_{16}, mapping_paths_{17}, source_paths_{18};
  uint64_t mappings_ = 0, frames_ = 0, callstacks_ = 0;
};

}  // namespace gpuprof::perfetto
