// SPDX-License-Identifier: Apache-2.0
// The in-memory trace that tools and exporters work on: events of all processes, names and launch
// shapes interned over all of them.
//
// Times are int64 nanoseconds since the Unix epoch: CLOCK_MONOTONIC plus its distance to
// CLOCK_REALTIME at the start of the process's window. Durations stay true if the wall clock is set
// meanwhile. Process::monotonic() and Process::clock give the other clocks.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <deque>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "formats/core/counters.h"
#include "formats/core/live_memory.h"
#include "formats/core/record.h"
#include "formats/core/ring_file.h"
#include "formats/core/shed.h"
#include "formats/io/problem.h"
#include "formats/trace/clock_map.h"
#include "formats/trace/event_table.h"
#include "formats/trace/sparse_column.h"
#include "formats/trace/stacks.h"

namespace gpuprof {

enum class StringIndex : uint32_t { empty = 0 };
enum class LaneIndex : uint32_t {};  // in Process::lanes

// Interned texts; views stay valid as long as the pool lives.
class StringPool {
 public:
  StringPool();
  StringPool(const StringPool&) = delete;
  StringPool& operator=(const StringPool&) = delete;
  StringPool(StringPool&&) = default;
  StringPool& operator=(StringPool&&) = default;
  StringIndex intern(std::string_view text);
  std::string_view operator[](StringIndex index) const { return texts_[number(index)]; }
  size_t size() const { return texts_.size(); }

 private:
  std::deque<std::string> texts_;
  std::unordered_map<std::string_view, StringIndex> index_;
};

enum class ApiDomain : uint32_t { none = 0, runtime = 1, driver = 2, nccl = 3, other = 4 };

// What is constant over many events: see message Shape in gpuprof.proto for the fields. Fields that
// a kind does not have are 0; "+1" encodings of the file are undone, kAbsent stands for absent.
struct Shape {
  static constexpr uint32_t kAbsent = 0xffffffff;

  uint64_t stream_handle;
  uint64_t communicator;
  uint64_t pool;
  uint64_t function;
  uint64_t sample_interval;  // heap
  StringIndex name;          // as recorded: API name, mangled kernel, NVTX message
  StringIndex detail;  // launch: mangled kernel; nvtx: domain; outside gpu_kernel: its collective
  StringIndex label;  // for people: kernels demangled, copies "Memcpy HtoD (Pinned -> Device)", ...
  int32_t result;
  Dim3 grid, block;
  uint32_t dynamic_shared_bytes, static_shared_bytes, registers_per_thread, local_bytes_per_thread;
  uint32_t cluster_x, cluster_y, cluster_z;
  ApiDomain domain;
  uint32_t direction, source_kind, destination_kind;
  uint32_t value;       // sets: the value; host sync kinds: flags; instant: 'g', 'p': its scope
  uint32_t cupti_type;  // gpu_sync, gpu_event, gpu_memory (operation), overhead; else kAbsent
  uint32_t data_type, operation;    // NCCL's values; nvtx: type of the payload; kAbsent: none
  uint32_t peer, rank, rank_count;  // peer, rank: kAbsent if none
  uint32_t graph, category, color, memory_kind, context, channel, channel_type, depth;
  uint32_t stream;                         // gpu_sync, gpu_memory: CUPTI stream id, kAbsent: none
  uint32_t peer_source, peer_destination;  // device ids of a peer copy, else kAbsent
  uint32_t cupti_flags, object_kind;
  StringIndex input_dims,
      input_types;         // op, annotation: JSON arrays, as [[8,3],[]] and ["float",""]
  StringIndex call_stack;  // op: Python frames, innermost first, with ';' between
  StringIndex hierarchy;   // op: the modules it was called in
  StringIndex args;        // as EventExtra::args, of all its events: before theirs
  // collective: the process group by the program's name and description, the same on all its ranks;
  // a JSON array of these ranks in the job. Empty: not known. nvtx: `group` is the category's name.
  StringIndex group, group_description, group_ranks;
  uint32_t started_on, ended_on;    // nvtx_range: threads, where they differ; else 0
  uint32_t device_type, device_id;  // tensor: 0 CPU, 1 CUDA, ...; kAbsent: not given
  Kind kind;
  uint8_t flags;        // RecordFlags
  uint8_t reserved[2];  // keeps the struct free of padding: shapes are compared as bytes
};
static_assert(std::has_unique_object_representations_v<Shape>);

// Interned shapes; a label for people is made once for each.
class ShapePool {
 public:
  ShapeIndex intern(const Shape& shape);
  const Shape& operator[](ShapeIndex index) const { return shapes_[number(index)]; }
  size_t size() const { return shapes_.size(); }
  auto begin() const { return shapes_.begin(); }
  auto end() const { return shapes_.end(); }

 private:
  std::vector<Shape> shapes_;
  std::unordered_multimap<uint64_t, ShapeIndex> index_;
};

// The less common parts of an event. What frameworks say of themselves has, by kind ("+ 1": 0 is
// none):
//
//                            bytes               address              address2          value
//   op, annotation           number among ops+1  sequence number + 1  forward thread    external id
//   module, python_function  -                   parent's id + 1      module id + 1     own id + 1
//   tensor                   change (int64)      address              total allocated*  total
//   reserved* gpu_annotation           -                   -                    - external id
//
// An external id is the number by which a framework's trace names an operator. The sequence number
// joins a forward operator with those of its backward pass, which have the thread of the forward
// one (0 in the forward pass itself). *: kNotGiven where the trace does not say. Shape has their
// name, input_dims, input_types, call_stack, hierarchy, device_type, device_id, and, for instant
// and other, the category in `detail`.
struct EventExtra {
  static constexpr uint64_t kNotGiven = ~uint64_t{0};

  uint64_t bytes;    // sizes; collectives: element count
  uint64_t address;  // allocation, destination, handle of a call, NVTX range id, overhead object
  uint64_t
      address2;    // copies: source; sync kinds: event handle; gpu_sync: device time (Unix ns or 0)
  uint64_t value;  // collective sequence, graph node, CUPTI event id, NVTX payload
  // Arguments of an outside trace that have no field here: members of a JSON object, without its
  // braces, as "Record function id":0,"Concrete Inputs":["",""]. Valid JSON in UTF-8.
  StringIndex args;
  StackIndex stack;  // stack of a host call, in Process::stacks
};

// `other`: a row that is neither of a thread nor of a GPU: of an outside trace, or NVTX ranges that
// began on one thread and ended on another. thread_name is its name.
enum class LaneType : uint32_t { thread = 1, stream = 2, device = 3, overhead = 4, other = 5 };

struct Lane {
  static constexpr int64_t kUnsorted = INT64_MIN;

  LaneType type;
  uint32_t thread_id;       // thread; other: its number among them
  std::string thread_name;  // stream: only where it has a name, by NVTX or an outside trace
  uint32_t device, context, stream;
  uint32_t first_event, event_count;  // its events lie together in Process::events, in begin order
  int64_t sort_index = kUnsorted;     // where an outside trace wants the row
  uint64_t kinds = ~uint64_t{0};      // bit_of() each kind that its events may have

  // Of a value that no kind has (a damaged file) all of them.
  static constexpr uint64_t bit_of(Kind kind) {
    const auto value = static_cast<uint8_t>(kind);
    return value < 64 ? uint64_t{1} << value : ~uint64_t{0};
  }
  template <typename... Kinds>
  bool may_have(Kinds... kind) const {
    return kinds & (bit_of(kind) | ...);
  }
};

// The Python stack of a thread at a moment.
struct HostSample {
  int64_t time;
  uint32_t thread;
  StackIndex stack;  // in Process::stacks
};

// Host memory that the program's allocator or the kernel gave, or took back: one of many. What it
// stands for is heap_weight()'s (heap.h).
struct HeapSample {
  int64_t time;
  uint64_t address, bytes;
  uint64_t interval;  // bytes between two samples, on average
  uint32_t thread;
  StringIndex call;  // "malloc"
  StackIndex stack;  // in Process::stacks; none: a release, or not known
  bool released;     // of what was a sample
};

struct Step {
  uint64_t step;  // n: between boundaries n and n + 1
  int64_t begin, end;
};

// What the program passed as a stream, and the CUPTI stream it turned out to be.
struct StreamLink {
  uint64_t handle;
  uint32_t device, context, stream;
};

struct CollectiveKernel {
  EventIndex collective;  // Kind::collective
  EventIndex kernel;      // Kind::gpu_kernel; gpu_copy where NCCL makes do with a copy (one rank)
};

// What was sampled of one GPU beside its work.
struct CounterSeries {
  struct Point {
    int64_t time;  // ns
    uint64_t value;
  };
  uint32_t device;
  Counter counter;  // unit: kCounterTexts
  std::vector<Point> points;
};

// For how long a thread could run but had no processor: ns since it was born. Between two points
// the rest lies anywhere.
struct ProcessorWaits {
  uint32_t thread;
  std::vector<CounterSeries::Point> points;  // in order of time
};

// What a thread did, at moments of the window: ns since it was born in which it ran, and in which
// it could run but had no processor; the rest it was asleep.
struct ThreadTimes {
  struct Point {
    int64_t time;  // ns
    uint64_t running_ns, waiting_ns;
  };
  uint32_t thread;
  std::vector<Point> points;  // in order of time
};

// What was sampled of a process that loads data for this one.
struct Worker {
  struct Sample {
    int64_t time;                           // ns
    uint64_t cpu_ns, queue_ns, read_bytes;  // since it was born; queue: runnable, without a CPU
    char state;                             // 'D': waits for the disk; see proc(5)
  };
  uint32_t pid;
  int64_t born;  // ns
  std::vector<Sample> samples;
};

// A counter of an outside trace that is none of Counter.
struct NamedCounter {
  struct Point {
    int64_t time;  // ns
    double value;
  };
  std::string name, key;  // of the track, and of the value among several of one track
  std::string category;   // empty: none
  uint32_t device;        // whose row it was in; Shape::kAbsent: the process's
  std::vector<Point> points;
};

// An operator of the forward pass and one that its backward pass consists of.
struct ForwardBackward {
  EventIndex forward, backward;  // Kind::op
  uint64_t id;                   // as the outside trace numbers them
};

// The call that a node of an executable CUDA graph was captured from.
struct GraphNode {
  std::string api;
  int64_t captured;  // ns, mostly before the window
  uint32_t thread;
  uint64_t stream_handle;
  uint64_t capture;  // the driver's id of the capture
  StackIndex stack;  // of that call, in Process::stacks
};

// A call that an executable graph replays, and what CUPTI's record of its node is like.
struct ReplayedCall {
  Kind kind;           // of that record
  StringIndex kernel;  // mangled; empty: not known, or no kernel
  Dim3 grid, block;    // kernels
  uint64_t bytes;      // copies and sets
  bool known;          // false: nobody saw the call
  GraphNode node;
};
// An executable graph that was instantiated, or updated, while CUPTI was off.
struct ReplayedGraph {
  uint64_t exec;                    // handle
  int64_t since;                    // ns
  bool complete;                    // no other nodes make GPU work
  std::vector<ReplayedCall> calls;  // in the order of nodes
};

// Memory that was allocated at a moment: by CUDA, or a block that a framework's allocator had given
// out of that.
struct LiveAllocation {
  int64_t time;  // when it was given
  uint64_t address, bytes;
  StringIndex api;  // the call; empty: a framework's block
  uint32_t device;  // Shape::kAbsent: of the host, or not known
  uint32_t thread;
  StackIndex stack;  // in Process::stacks

  bool is_block() const { return api == StringIndex::empty; }
};

// An allocation that failed for want of memory.
struct FailedAllocation {
  int64_t time;
  uint64_t bytes;   // asked for
  StringIndex api;  // empty: a framework's allocator gave up
  uint32_t device;  // Shape::kAbsent: not known
  uint32_t thread;
  uint32_t number;  // how many have failed in the process, with this one
  StackIndex stack;
};

// What a framework's allocator had of a GPU's memory.
struct AllocatorTotals {
  uint32_t device;
  uint64_t allocated, reserved;
  uint64_t peak;  // most allocated since the process began
  int64_t peak_time;
};

// GPUPROF_MEMORY: what was allocated at a moment. Without it, where steps were taken out of a
// window: what the window's events until then tell.
struct LiveMemory {
  struct Released {
    uint64_t address;
    bool block;  // of a framework's allocator
  };

  LiveMoment moment;
  int64_t time;
  std::vector<LiveAllocation> allocations;  // in order of address
  std::vector<FailedAllocation> failed;     // the newest, or none
  std::vector<AllocatorTotals> allocators;
  // What is in no list of the memory log's is not allocated; of a part, only these are known to be
  // released.
  bool is_part = false;
  std::vector<Released> released = {};
};

// A run of consecutive steps in a trace of which only some were kept, and the memory that was
// allocated when it begins, as far as the whole trace told.
struct Stretch {
  struct TensorTotal {
    uint32_t device_type, device_id;  // as in Shape
    int64_t bytes;                    // the sum of the changes before
  };
  int64_t begin;                                        // of its first step
  std::unordered_map<uint64_t, uint64_t> device, host;  // bytes by address
  std::vector<TensorTotal> tensors;
};

enum class Source : uint8_t {
  dump,
  kineto,  // JSON of torch.profiler, or our own
};

enum class Completeness : uint8_t {
  complete,
  truncated,  // no Summary: the process was killed, or is still running, or the file was cut
  damaged,    // bytes were skipped
};

// One process in one window.
// GPUPROF_BUDGET: what recording was allowed to cost, and what it left out for that.
struct RecordingBudget {
  struct LeftOut {
    ShedKind kind;
    int64_t since;    // what begins later is missing
    double cost_pct;  // what it took of the time before; 0: it was left out in a window before
  };
  double allowed_pct = 0;         // of the window's time; 0: no budget was set
  std::vector<LeftOut> left_out;  // in order of time
  // What recording cost since then, or in the whole window. `until` 0: not known.
  int64_t since = 0, until = 0;
  uint64_t cost_ns = 0;

  double cost_pct() const {
    return until > since ? 100 * static_cast<double>(cost_ns) / static_cast<double>(until - since)
                         : 0;
  }
  // Null: it is there as far as it was asked for.
  const LeftOut* left_out_of(ShedKind kind) const {
    for (const LeftOut& each : left_out) {
      if (each.kind == kind) return &each;
    }
    return nullptr;
  }
};

struct Process {
  std::string path;  // the file it came from (the first, where there are several)
  Source source = Source::dump;
  Completeness completeness = Completeness::truncated;
  bool recovered = false;  // parts come from the ring of a killed process
  // When that ring was read, which its process may still have written to. 0: not known.
  int64_t looked_at = 0;
  bool has_header = false;
  bool has_summary = false;
  dump::Header header;
  dump::Summary summary;          // where it is missing: what is known without it
  std::string gpu_times_missing;  // why there are no GPU times; empty: there are
  std::string step_source;
  ClockMap clock;
  int64_t realtime_offset = 0;  // times here minus CLOCK_MONOTONIC
  int64_t window_begin = 0, window_end = 0;
  std::vector<Lane> lanes;  // threads in order of id, then streams, devices, overhead
  EventTable events;
  std::vector<EventExtra> extras;
  StackTable stacks;
  std::vector<HostSample> samples;  // in order of thread, then time
  std::vector<HeapSample> heap;     // in order of time
  int64_t sample_period = 0;        // ns, mostly between two of one thread
  std::vector<Step> steps;          // the step log of the whole run, in order
  std::vector<Stretch> stretches;   // in order; empty: the window is whole
  // Steps of the window are among the events, too (annotations ProfilerStep#N): not to be drawn
  // twice.
  bool steps_are_events = false;
  std::array<uint64_t, kLossKinds> losses{};
  std::vector<StreamLink> streams;
  std::map<uint32_t, std::string> gpu_names;  // that the program gave its GPUs by NVTX
  // Host events whose correlation id belongs to another host event (a driver call in a runtime
  // call), in order.
  std::vector<EventIndex> shadowed;
  std::vector<CollectiveKernel> collective_kernels;  // in order of collective
  std::vector<CounterSeries> counters;
  std::vector<ProcessorWaits> processor_waits;  // by thread; empty: not known
  std::vector<ThreadTimes> thread_times;        // by thread; empty: not known
  std::vector<NamedCounter> named_counters;
  RecordingBudget budget;
  std::vector<Worker> workers;          // of a DataLoader
  std::vector<LiveMemory> live_memory;  // one of each moment at most
  uint32_t usable_cpus = 0;             // 0: not known
  // By event: the op or annotation that called a host event, or that launched a GPU event if it is
  // not that of the launching call.
  SparseColumn<EventIndex, EventIndex::none> operators;
  std::vector<ForwardBackward> forward_backward;  // in order of forward
  // What an outside trace says of itself beside events and what `header` holds: members of a JSON
  // object, without its braces.
  std::string metadata;
  std::string distributed;  // likewise, of its distributedInfo without rank and world size
  std::unordered_map<uint64_t, GraphNode> graph_nodes;  // by node id
  std::vector<ReplayedGraph> replayed_graphs;           // in order of time for each handle

  // A worker of a DataLoader of another process: it makes no step, and is no rank.
  bool is_data_worker() const { return header.parent_pid() != 0; }

  EventTable::Range lane_events(const Lane& lane) const {
    return events.range(lane.first_event, lane.event_count);
  }
  Event event(EventIndex index) const { return events[number(index)]; }
  EventIndex index_of(const Event& event) const { return event.index; }
  const EventExtra& extra(const Event& event) const { return extras[event.extra]; }
  LaneIndex lane_index(const Event& event) const;
  const Lane& lane(const Event& event) const { return lanes[number(lane_index(event))]; }
  // None where not known. (What a call launched lies behind it: the lanes of threads come first.)
  EventIndex operator_of(const Event& event) const {
    const EventIndex own = operators[number(event.index)];
    const bool launched = event.partner < event.index;
    return own == EventIndex::none && launched ? operators[number(event.partner)] : own;
  }
  // Null where the memory log was off, or there was no such moment.
  const LiveMemory* live_at(LiveMoment moment) const;
  // The step that was under way; null where the step log does not reach there.
  const Step* step_at(int64_t time) const;
  int64_t monotonic(int64_t time) const { return time - realtime_offset; }
  // Steps that lie in the window (of a complete dump: those that its Summary names).
  std::span<const Step> window_steps() const;
  // Where a GPU event of a graph was captured; null: not from a graph, or not known.
  const GraphNode* graph_node(const Shape& shape, const EventExtra& extra) const;
  // The CUPTI stream behind a handle; null when no joined pair told.
  const StreamLink* stream_of(uint64_t handle) const;
};

struct Trace {
  StringPool strings;
  ShapePool shapes;
  std::vector<Process> processes;  // in order of rank, pid, window; data workers come last
  std::vector<Problem> problems;
  std::vector<std::string> notes;  // for the user: which of several runs was taken, and the like

  const Shape& shape(const Event& event) const { return shapes[event.shape]; }
  const Shape& shape_of(const Process& process, EventIndex event) const {
    return shapes[process.events.shape_of(number(event))];
  }
  std::string_view text(StringIndex index) const { return strings[index]; }
};

// Names of enum values, for messages.
std::string_view kind_name(Kind kind);
std::string_view moment_name(LiveMoment moment);
}  // namespace gpuprof
