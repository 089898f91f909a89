// SPDX-License-Identifier: Apache-2.0
// The live buffers of a traced process, a file mapped MAP_SHARED (`*.gpuprof.ring`), so that
// SIGKILL loses no committed record. Written by the collector, read by the collector's drain thread
// and, after a crash, by the tools. All offsets are bytes from the file's start; everything is
// little-endian.
//
//   RingHeader | identity text | step log | string table | shape table | function names |
//   API names | stack table | modules | graph nodes | live memory | chunks | tail
//
// The tail holds ordinary dump chunks (see chunk.h) that the drain thread appended: step-log
// entries moved out of the fixed region. The file is complete in size before the first record is
// written.
#pragma once

#include <atomic>
#include <cstdint>

#include "formats/core/record.h"

namespace gpuprof {

inline constexpr uint64_t kRingMagic = 0x31474e5246525047;  // "GPRFRNG1" in file order
inline constexpr uint32_t kRingVersion = 1;
inline constexpr uint32_t kChunkBytes = 64 * 1024;
inline constexpr uint32_t kRecordsPerChunk = kChunkBytes / sizeof(Record) - 1;

// Which clock ticks are, and how they relate to wall time. An anchor is one reading of all three
// clocks, taken tightly together (best of several tries).
struct ClockAnchor {
  uint64_t ticks;
  uint64_t monotonic_ns;  // CLOCK_MONOTONIC
  uint64_t realtime_ns;   // CLOCK_REALTIME
};

enum class ClockSource : uint32_t { tsc = 1, monotonic = 2, cntvct = 3 };

enum class ChunkState : uint32_t {
  free = 0,
  open = 1,  // owned by the thread that writes it
  full = 2,  // waits for the drain thread
};

// One 64 KiB buffer of one thread. The header takes the space of one record.
struct RingChunk {
  std::atomic<uint32_t> state;      // ChunkState
  std::atomic<uint32_t> committed;  // records complete; stored with release after each record
  uint64_t sequence;                // unique in this process, from 1; names the chunk in the dump
  uint32_t thread_id;               // Linux tid of the writer
  uint32_t window;                  // window the records belong to
  char thread_name[16];
  uint32_t next_free;  // free-list link: chunk index + 1; 0: end
  uint32_t reserved[5];
  Record records[kRecordsPerChunk];
};
static_assert(sizeof(RingChunk) == kChunkBytes);
static_assert(std::atomic<uint32_t>::is_always_lock_free);

// One region of an append-only table: `used` grows by atomic add and is clamped to `bytes` by
// readers.
struct RingRegion {
  uint64_t offset;
  uint64_t bytes;
  std::atomic<uint64_t> used;
};

struct FunctionName {
  uint64_t function;  // host pointer or cudaKernel_t
  StringId name;      // mangled device name
  uint32_t ready;     // 1 once the row is complete
};

// One row of preload's table of intercepted functions; the row's index is the ApiId. Written once,
// before the first record.
struct ApiName {
  StringId name;
  uint32_t domain;  // Shape.api_domain: 1 runtime, 2 driver, 3 nccl, 4 other
};

// A file mapped with executable code: where, and which one. A row is written once, complete before
// `ready`; what was unmapped keeps its row.
struct ModuleRow {
  uint64_t begin, end;   // addresses of its executable code, [begin, end)
  uint64_t bias;         // address in memory minus address in the file's symbols
  uint64_t file_bytes;   // 0: unknown, as for the vDSO
  uint64_t modified_ns;  // of the file
  StringId path;
  StringId build_id;  // its raw bytes; 0: the file has none
  uint32_t ready;
  uint32_t reserved;
};
static_assert(sizeof(ModuleRow) == 56);

// A node of an executable CUDA graph and the call that it was captured from.
struct GraphNodeRow {
  uint64_t id;           // as GPU records carry it
  uint64_t begin_ticks;  // of the call
  uint64_t stream;       // as passed
  uint64_t capture;      // the driver's id of the capture
  uint32_t thread_id;
  StringId stack;  // of the call, in the table `stacks`; 0: none
  ApiId api;
  uint16_t reserved[3];
};
static_assert(sizeof(GraphNodeRow) == 48);

// A stack holds a Python frame among return addresses as kPythonFrame | line << 32 | the StringId
// of the bytes of this.
inline constexpr uint64_t kPythonFrame = uint64_t{1} << 63;
struct PythonCodeName {
  StringId file, function;
};
static_assert(sizeof(PythonCodeName) == 8);

inline constexpr int kMaxAnchors = 16;
inline constexpr int kLossKinds = 22;
// Those in RingHeader.losses, and those in it and in .more_losses; see loss_counter().
inline constexpr int kFirstLosses = 16, kFirstTwoLosses = 17;
inline constexpr int kLatestLosses = 16;  // with room for more
static_assert(kLossKinds <= kFirstTwoLosses + kLatestLosses);

// What was dropped, by cause. Values are part of the dump format.
enum class Loss : uint8_t {
  buffer_full = 0,  // no free chunk: records
  string_table_full = 1,
  shape_table_full = 2,
  cupti_dropped = 3,  // records CUPTI says it dropped
  cupti_unknown = 4,  // activity records of a kind or size we do not know
  bad_timestamp = 5,  // GPU times that are zero, reversed or impossible (the record is kept,
                      // flagged)
  write_error = 6,    // dump chunks that could not be written
  step_log_full = 7,
  unfinished_gpu = 8,  // launches whose GPU record had not come when the window was closed
  nvtx_depth = 9,      // ranges deeper than is tracked
  // 10 was never counted
  graph_untimed = 11,     // graph launches for which CUPTI has no records
  cupti_incomplete = 12,  // buffers of CUPTI's that could not be read to their end
  stack_table_full = 13,  // stacks
  operator_depth = 14,    // operators within more operators than are tracked
  sample_torn = 15,       // host samples whose frames changed while they were read
  memory_log_full = 16,   // allocations for which the memory log had no room
  heap_table_full = 17,   // sampled allocations whose release will not be seen
  gpu_unjoined = 18,      // GPU records of which the launch cannot be told
  name_cut = 19,          // names longer than StringTable::kMaxText, or than there was room for
  // Where GPU times are from CUDA events:
  event_captured = 20,  // launches that became part of a CUDA graph, which has one time as a whole
  event_untimed = 21    // launches without events: none was free, or the driver refused one
};

// Calls `count(Loss)` for each loss that a record tells of by itself. Who puts the record into a
// dump counts them: what CUPTI hands over at its end may be work of after the window, half done.
template <typename Count>
void count_losses_of(const Record& record, Count count) {
  // A record of an event has a time only where CUPTI gives it.
  const bool is_timed = is_gpu_kind(record.kind) && record.kind != Kind::gpu_event;
  if (is_timed && record.flags & kFlagNoTime) count(Loss::bad_timestamp);
  if (is_stream_work(record.kind) && record.correlation == 0) count(Loss::gpu_unjoined);
}

// An allocation that failed for want of memory: the newest. Complete while `ticks` is not 0.
struct FailedAllocationRow {
  std::atomic<uint64_t> ticks;
  uint64_t bytes;   // asked for
  uint32_t number;  // how many have failed, with this one
  uint32_t thread_id;
  StringId stack;   // in the table `stacks`; 0: none
  ApiId api;        // kNoApi: a framework's allocator
  uint16_t device;  // 0xffff: of the host, or not known
};
static_assert(sizeof(FailedAllocationRow) == 32);

// What a framework's allocator says of its memory on a device; `peak`: the most that it had given
// out since the process began.
struct AllocatorRow {
  std::atomic<uint64_t> allocated, reserved, peak, peak_ticks;
};
inline constexpr uint32_t kMostAllocators = 16;  // devices

enum class SessionPhase : uint32_t {
  idle = 0,
  waiting = 1,
  warmup = 2,
  active = 3,
  closing = 4,
  done = 5
};

struct RingHeader {
  uint64_t magic;
  uint32_t version;
  uint32_t header_bytes;  // sizeof(RingHeader) of the writer
  uint32_t record_bytes;  // sizeof(Record)
  uint32_t chunk_bytes;
  uint32_t chunk_count;
  uint32_t clock_source;  // ClockSource
  uint32_t clock_shift;   // dump time unit = ticks >> clock_shift
  uint32_t process_id;
  uint64_t start_ticks;          // the library's constructor
  std::atomic<uint32_t> phase;   // SessionPhase
  std::atomic<uint32_t> window;  // current or last window, from 0
  std::atomic<uint64_t> window_begin_ticks;
  std::atomic<uint64_t> window_end_ticks;  // 0 while it is open
  std::atomic<uint32_t> window_first_step;
  std::atomic<uint32_t> window_last_step;  // last complete step in the window
  std::atomic<uint32_t> anchor_count;
  std::atomic<uint32_t>
      chosen_step_source;  // index into the settings' step source names; 0: none yet
  ClockAnchor anchors[kMaxAnchors];
  std::atomic<uint64_t> losses[kFirstLosses];
  std::atomic<uint64_t> next_sequence;
  std::atomic<uint64_t> first_free;  // free list head: low 32 bits index + 1, high 32 bits tag
  RingRegion identity;  // a serialized dump Header message (gpuprof.proto); `used` is its length
  // uint64_t ticks of boundaries: number i lies in slot i % (bytes / 8). `used` counts 8 for every
  // boundary of the run, so it can exceed `bytes`; those below steps_base are in the tail.
  RingRegion steps;
  RingRegion strings;                // StringTable
  RingRegion shapes;                 // ShapeTable
  RingRegion functions;              // FunctionName rows; `used` counts bytes
  RingRegion api_names;              // ApiName rows; `used` counts bytes
  RingRegion chunks;                 // RingChunk[chunk_count]
  uint64_t tail_offset;              // where appended dump chunks begin
  std::atomic<uint64_t> steps_base;  // number of the first boundary that `steps` still holds
  // What `gpuprof trigger` needs to know of a live process (control.h). Fields are only ever added
  // at the end: readers take those that they do not find as 0.
  uint64_t ticks_per_second;
  std::atomic<uint64_t> control_id;      // of the newest request that was read
  std::atomic<uint32_t> control_result;  // ControlResult
  std::atomic<uint32_t> recording_off;
  uint32_t control_poll_ms;  // how often requests are looked for
  int32_t rank;              // -1: unknown
  // Stacks: a StringTable whose texts are return addresses, 8 bytes each, innermost first. Of size
  // 0, as `modules`, where no stacks were asked for.
  RingRegion stacks;
  RingRegion modules;  // ModuleRow rows; `used` counts bytes
  // GraphNodeRow i of the run in slot i % (bytes / sizeof(GraphNodeRow)); `used` counts the bytes
  // of all, those below graph_nodes_written are in the dump of the open window.
  RingRegion graph_nodes;
  std::atomic<uint64_t> graph_nodes_written;  // rows
  std::atomic<uint64_t> more_losses[kFirstTwoLosses - kFirstLosses];
  // The memory log (live_table.h); of size 0 where it is off. The two copies are LiveRow rows of
  // what was live when window `live_window` - 1 began, and when an allocation last failed.
  RingRegion live;
  RingRegion live_at_begin;
  RingRegion live_at_failure;
  std::atomic<uint64_t> live_begin_ticks;
  std::atomic<uint32_t> live_window;  // 0: of none
  uint32_t reserved;
  FailedAllocationRow failed;
  AllocatorRow allocators[kMostAllocators];
  std::atomic<uint64_t> latest_losses[kLatestLosses];
  // For workers of a DataLoader, which look for their process's ring: the path of its dumps, as
  // far as all windows have it in common. In a worker's own ring: the process it loads for.
  RingRegion stem;
  uint32_t parent_process;  // 0: this is no worker
  uint32_t reserved_2;
  // When the thread whose step opened the window went on with it; 0: it did not wait.
  std::atomic<uint64_t> window_ready_ticks;
  // StringTables of texts that only records of one window have: an id with kTextId is in
  // texts[id & kTextTurn ? 1 : 0]. They take turns: a window's texts go to one, and stay until the
  // window after the next one begins.
  RingRegion texts[2];
  std::atomic<uint32_t> texts_turn;  // which is in use
  uint32_t reserved_3;
};
inline constexpr uint64_t kRingHeaderPage = 4096;  // nothing else lies in it
static_assert(sizeof(RingHeader) <= kRingHeaderPage);
inline constexpr uint32_t kSmallestRingHeader = 800;  // of version 1 at first

// The counter of a cause in a header, const or not.
template <typename Header>
auto& loss_counter(Header& header, uint32_t cause) {
  if (cause < kFirstLosses) return header.losses[cause];
  return cause < kFirstTwoLosses ? header.more_losses[cause - kFirstLosses]
                                 : header.latest_losses[cause - kFirstTwoLosses];
}

}  // namespace gpuprof
