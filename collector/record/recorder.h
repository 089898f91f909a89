// SPDX-License-Identifier: Apache-2.0
// The hot path: what a hook does on the calling thread. No lock and no allocation. A system call
// only on a thread's first record, on each 1,023rd (a fresh buffer from a lock-free list), and on
// one after a millisecond without any.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "collector/base/clock.h"
#include "formats/core/record.h"
#include "formats/core/ring_file.h"

namespace gpuprof {

// Libraries whose functions we intercept. A call made inside another call of the same library is
// part of that call, not an event of its own.
enum class Library : uint8_t { cudart, driver, nccl, cupti, count };

// As the dump names it: Shape.api_domain.
constexpr uint32_t domain_of(Library library) {
  return library == Library::nccl ? 3 : library == Library::driver ? 2 : 1;
}

// What a call is for: the last column of preload/apis.def.
enum class ApiRole : uint8_t {
  none,  // followed by hand
  call,  // traced, nothing more is known of it
  launch,
  graph_launch,
  copy,
  set,
  alloc,
  dealloc,
  host_alloc,  // of memory on the host: pinned, registered
  host_dealloc,
  sync,
  device_sync,  // waits for all work of a device
  end_context,  // of a context, and all that it has
  event,
  stream,
  graph,  // makes, changes or destroys a graph
  begin_capture,
  end_capture,
  profiler_start,
  profiler_stop,
  collective,
};

// The record that a call makes.
constexpr Kind kind_of(ApiRole role) {
  switch (role) {
    case ApiRole::none: return Kind::none;
    case ApiRole::call:
    case ApiRole::graph:
    case ApiRole::end_context:
    case ApiRole::begin_capture:
    case ApiRole::end_capture:
    case ApiRole::profiler_start:
    case ApiRole::profiler_stop: return Kind::call;
    case ApiRole::launch:
    case ApiRole::graph_launch: return Kind::launch;
    case ApiRole::copy: return Kind::copy;
    case ApiRole::set: return Kind::set;
    case ApiRole::alloc:
    case ApiRole::host_alloc: return Kind::alloc;
    case ApiRole::dealloc:
    case ApiRole::host_dealloc: return Kind::dealloc;
    case ApiRole::sync:
    case ApiRole::device_sync: return Kind::sync;
    case ApiRole::event: return Kind::event;
    case ApiRole::stream: return Kind::stream;
    case ApiRole::collective: return Kind::collective;
  }
  return Kind::none;
}

// One row of preload's table, as the collector needs it.
struct ApiRow {
  char name[40];  // in place: the dynamic linker has no address to write
  Library library;
  Kind kind;
  ApiRole role;
};
inline constexpr size_t kMaxApis = 512;

// What the hook of one API has to do just now. Written at session and phase changes only. 0, the
// state before our constructor, means: not decided, start a session. kHookSettled alone means off.
enum HookFlags : uint8_t {
  kHookRecord = 1,    // write a record
  kHookStep = 2,      // the call is a candidate for a step boundary
  kHookSettled = 4,   // the session is decided
  kHookCounter = 8,   // with kHookRecord: the clock is the processor's counter
  kHookStack = 16,    // some calls have their stack taken; without kHookRecord for later ones
  kHookCapture = 32,  // a CUDA graph is being captured: the call may become a node
  kHookMemory = 64,   // the call is kept track of, recorded or not: see memory_log.h
  kHookEvents = 128,  // CUDA events are recorded around the call: see event_times.h
};
inline constexpr uint8_t kHookFast = kHookSettled | kHookRecord | kHookCounter;
extern std::atomic<uint8_t> g_hook_flags[kMaxApis];

struct NvtxThread;
struct RangeThread;

// A few words of initial-exec TLS: this is carved out of every thread's stack.
struct ThreadState {
  Record* next;             // where the next record goes; null: no buffer yet
  Record* gpu_next;         // the same for CUPTI's records, where its callback runs on this thread
  uint32_t correlation;     // id that CUPTI's callback saw during the call in progress
  uint32_t blocked;         // > 0: one of our own threads or callbacks
  uint32_t runtime_call;    // id of a runtime call that no hook saw, while it runs; 0: none
  uint32_t claimed_call;    // the same, once a driver hook inside it has made the record
  int64_t heap_left;        // bytes to allocate until the next sample; 0: not drawn yet
  StringId callback_stack;  // of a call that no hook saw, while it runs; 0: none
  uint32_t callback_stack_ticks;
  // Frame address of the outermost hook running in each library; null: none. An address and not a
  // flag, because a longjmp or a cancelled thread leaves without clearing it. A later hook that is
  // not deeper in the stack knows that the mark is stale. Greater than any address while the thread
  // is blocked: then every hook finds itself nested.
  const void* inside[static_cast<size_t>(Library::count)];
  NvtxThread* nvtx;
  RangeThread* ranges;
};
// constinit: no dynamic initialisation, hence no wrapper function around each access.
extern constinit thread_local ThreadState t_state __attribute__((tls_model("initial-exec")));

// Marks that a hook of a library runs on this thread, between enter() and leave(). Not RAII: a hook
// leaves before it writes its record, and a call that throws or is cancelled leaves a stale mark.
template <Library L>
class HookScope {
 public:
  explicit HookScope(const void* frame) : frame_(frame) {}
  bool nested() const {
    // What the runtime does in the driver is part of the runtime's call.
    if constexpr (L == Library::driver) {
      if (frame_ < t_state.inside[static_cast<size_t>(Library::cudart)]) return true;
    }
    return frame_ < t_state.inside[kIndex];  // never below null
  }
  void enter() const { t_state.inside[kIndex] = frame_; }
  static void leave() { t_state.inside[kIndex] = nullptr; }

 private:
  static constexpr size_t kIndex = static_cast<size_t>(L);
  const void* const frame_;
};

// A hook records a driver call of a runtime that no hook sees (linked into the program or
// a library). The record stands for the runtime's call as well, which CUPTI's callback
// tells.
inline void claim_runtime_call() {
  t_state.claimed_call = t_state.runtime_call;
  if (t_state.correlation == 0) t_state.correlation = t_state.runtime_call;
}

// A scope of our own in which hooks and callbacks see nothing.
class BlockedScope {
 public:
  BlockedScope() {
    ++t_state.blocked;
    for (size_t i = 0; i < kLibraries; ++i) {
      before_[i] = t_state.inside[i];
      t_state.inside[i] = reinterpret_cast<const void*>(~uintptr_t{0});
    }
  }
  ~BlockedScope() {
    --t_state.blocked;
    for (size_t i = 0; i < kLibraries; ++i) t_state.inside[i] = before_[i];
  }
  BlockedScope(const BlockedScope&) = delete;
  BlockedScope& operator=(const BlockedScope&) = delete;

 private:
  static constexpr size_t kLibraries = static_cast<size_t>(Library::count);
  const void* before_[kLibraries];
};

// While CUPTI's buffer callback runs, records go to the thread's other buffer. Host and GPU records
// never share one: the drain thread reads all host records of a window first.
class GpuBufferScope {
 public:
  GpuBufferScope() { swap(); }
  ~GpuBufferScope() { swap(); }
  GpuBufferScope(const GpuBufferScope&) = delete;
  GpuBufferScope& operator=(const GpuBufferScope&) = delete;

 private:
  static void swap() {
    Record* const other = t_state.next;
    t_state.next = t_state.gpu_next;
    t_state.gpu_next = other;
  }
};

// The buffer a cursor points into (or just past). Buffers lie at multiples of their size in memory,
// so the one word in TLS tells buffer, place and fill: fewer dependent loads on the hot path.
inline RingChunk* chunk_of(Record* next) {
  return reinterpret_cast<RingChunk*>((reinterpret_cast<uintptr_t>(next) - 1) &
                                      ~uintptr_t{kChunkBytes - 1});
}

// Room for one record on this thread; null when there is none (counted as lost). The record counts
// only after commit_record() of it, called on the same thread with no other reserve between.
Record* reserve_record_slow();
// Null where this thread has no buffer yet, or a full one: its cursor is at a multiple of the size.
inline Record* try_reserve_record() {
  Record* const next = t_state.next;
  const bool room = (reinterpret_cast<uintptr_t>(next) & (kChunkBytes - 1)) != 0;
  return __builtin_expect(room, 1) ? next : nullptr;
}
inline Record* reserve_record() {
  Record* const record = try_reserve_record();
  return __builtin_expect(record != nullptr, 1) ? record : reserve_record_slow();
}
// The common part of a record that is of no row of preload's table.
inline void begin_record(Record* record, Kind kind, uint64_t begin, uint64_t end, uint8_t flags = 0,
                         uint32_t correlation = 0) {
  record->begin = begin;
  record->end = end;
  record->correlation = correlation;
  record->api = kNoApi;
  record->kind = kind;
  record->flags = flags;
}
// Release: a reader, also one after SIGKILL, that sees the new count sees the whole record. The
// header takes one record's room, hence record i lies at (i + 1) records, and that is the new
// count.
inline void commit_record(Record* record) {
  const uintptr_t place = reinterpret_cast<uintptr_t>(record);
  auto* const chunk = reinterpret_cast<RingChunk*>(place & ~uintptr_t{kChunkBytes - 1});
  // The drain thread has read these lines on another core: fetching them back in time is 2 % of a
  // call.
  __builtin_prefetch(record + 8, 1);
  t_state.next = record + 1;
  chunk->committed.store(static_cast<uint32_t>((place & (kChunkBytes - 1)) / sizeof(Record)),
                         std::memory_order_release);
}

// More than a millisecond without a record of the calling thread, [begin, end): how much of it the
// thread waited for a processor is read (samples/processor_waits.h). `begin` may be no time at all:
// 0, or that of a buffer's first record.
void note_silence(uint64_t begin, uint64_t end);
extern std::atomic<int64_t> g_silence_ticks;  // a millisecond; INT64_MAX: not wanted
inline bool is_silence(uint64_t begin, uint64_t end) {
  const auto ticks = static_cast<int64_t>(end - begin);
  return __builtin_expect(ticks > g_silence_ticks.load(std::memory_order_relaxed), 0);
}
// For a record about to be written at its place, which ends at `end`.
inline void look_for_silence(const Record* place, uint64_t end) {
  if (is_silence(place[-1].end, end)) note_silence(place[-1].end, end);
}

// A buffer's first record has none before it, but the full buffer has: to be asked before another
// one is taken. 0: the thread has none.
inline uint64_t newest_record_end() { return t_state.next ? t_state.next[-1].end : 0; }
inline void look_for_silence_in_new_buffer(uint64_t last, uint64_t end) {
  if (is_silence(last, end)) note_silence(last, end);
}
// reserve_record() for what the calling thread of the program did until `end`, not CUPTI or
// gpuprof.
inline Record* reserve_program_record(uint64_t end) {
  Record* record = try_reserve_record();
  if (__builtin_expect(record != nullptr, 1)) {
    look_for_silence(record, end);
    return record;
  }
  const uint64_t last = newest_record_end();
  if ((record = reserve_record_slow())) look_for_silence_in_new_buffer(last, end);
  return record;
}

// Calls that become a graph's node when their stream is being captured.
constexpr bool makes_graph_node(Kind kind) {
  return kind == Kind::launch || kind == Kind::copy || kind == Kind::set || kind == Kind::alloc ||
         kind == Kind::dealloc;
}
// With kHookCapture, after the call: see collector/sources/graphs.h. `record` is filled and not
// committed.
void note_captured_call(Record& record, StringId stack);
// Calls whose GPU work can have its time from CUDA events around them.
constexpr bool is_timed_by_events(Kind kind) {
  return kind == Kind::launch || kind == Kind::copy || kind == Kind::set;
}
// Calls that can have their stack recorded.
constexpr bool can_have_stack(Kind kind) {
  return kind == Kind::launch || kind == Kind::sync || kind == Kind::alloc ||
         kind == Kind::dealloc || kind == Kind::collective;
}
// The stack of a call that is about to be made.
struct TakenStack {
  StringId id = 0;     // in the ring's stack table; 0: none
  uint32_t ticks = 0;  // that it took
};
// None where it is not this call's turn. The first visit of each address on the way costs about a
// microsecond.
TakenStack take_stack(ApiId api);
TakenStack take_allocation_stack();  // likewise, of what no API row allocates
TakenStack take_heap_stack();        // of each sampled allocation on the host
// reserve_record() of a call with this stack: the stack's own record goes right before it, and
// commit_record() of the call's commits both.
Record* reserve_record_after(const TakenStack& stack, uint64_t begin, uint64_t end);

// Makes sure that what this thread holds (t_state) is given back when it ends.
void release_at_thread_exit();

void count_loss(Loss cause, uint64_t count = 1);

// Interns on any thread; 0 when the table is full (counted) or no ring exists.
StringId intern_string(std::string_view text);
// Of a text that only records of the open window have: forgotten after the window that follows.
StringId intern_text(std::string_view text);
uint32_t intern_shape(const LaunchShape& shape);

}  // namespace gpuprof
