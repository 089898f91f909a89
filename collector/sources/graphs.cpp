// SPDX-License-Identifier: Apache-2.0
#include "collector/sources/graphs.h"

#include <atomic>
#include <cstring>

#include "collector/base/fork.h"
#include "collector/base/libraries.h"
#include "collector/base/os.h"
#include "collector/record/collector.h"
#include "collector/record/recorder.h"
#include "collector/record/ring.h"
#include "collector/record/session.h"
#include "formats/core/graph_node.h"

namespace gpuprof {
namespace {

// A call that became a node of the graph under capture.
struct CapturedNode {
  uint64_t handle;  // the driver's; may be used again once the graph is destroyed. 0: it was
  CapturedCall call;
};

struct Exec {  // instantiated while CUPTI was on
  uint64_t handle;
  GraphContent content;
};

constexpr size_t kMaxCaptured = 1u << 18;    // 30 MB; the older half goes then
constexpr size_t kMaxCloned = 1u << 21;      // 130 MB
constexpr size_t kPieceBytes = 1024 * 1024;  // of a dump, for which the lock is held at a time

std::atomic<uint32_t> g_capturing{0};
Mutex g_lock;  // of the tables; nothing is called while it is held

struct Tables {
  PodVector<CapturedNode> captured;
  PodVector<uint32_t> by_handle;   // open addressing: index of the newest capture with a handle + 1
  PodVector<GraphNodeRow> cloned;  // nodes of executable graphs, by the ids of CUPTI's records
  PodVector<Exec> execs;
};
constinit Immortal<Tables> g;

using GetCaptureInfo = int (*)(uint64_t stream, int* status, uint64_t* id, void** graph,
                               const uint64_t** nodes, size_t* count);

// Of the driver: its _v2 has kept its signature since CUDA 11.3, while the runtime's function of
// this name has changed twice.
GetCaptureInfo capture_info(bool per_thread) {
  static std::atomic<GetCaptureInfo> found[2];
  std::atomic<GetCaptureInfo>& slot = found[per_thread];
  GetCaptureInfo function = slot.load(std::memory_order_acquire);
  if (function) return function;
  function = reinterpret_cast<GetCaptureInfo>(
      real_symbol(loaded_driver(),
                  per_thread ? "cuStreamGetCaptureInfo_v2_ptsz" : "cuStreamGetCaptureInfo_v2"));
  slot.store(function, std::memory_order_release);
  return function;
}

// Of a stream: the nodes that what comes next depends on, which the newest call has made.
struct Capture {
  uint64_t id;
  const uint64_t* nodes;
  size_t count;
};
// False: none is going on.
bool capture_of(uint64_t stream, bool per_thread, Capture& out) {
  if (stream == 0 && !per_thread) return false;  // the legacy stream cannot be captured
  const GetCaptureInfo ask = capture_info(per_thread);
  int status = 0;
  void* graph = nullptr;
  constexpr int kActive = 1;  // CU_STREAM_CAPTURE_STATUS_ACTIVE
  return ask && ask(stream, &status, &out.id, &graph, &out.nodes, &out.count) == 0 &&
         status == kActive;
}

// Where the handle is in by_handle, or where it would go. There is a free place.
uint32_t& slot_of(uint64_t handle) {
  const size_t slots = g->by_handle.size();
  size_t at = (handle * 0x9e3779b97f4a7c15ull >> 32) & (slots - 1);
  while (g->by_handle[at] && g->captured[g->by_handle[at] - 1].handle != handle) {
    at = (at + 1) & (slots - 1);
  }
  return g->by_handle[at];
}

// Handles may be used again once their graph is destroyed: the newest capture counts.
bool index_captured() {
  const size_t count = g->captured.size();
  if (g->by_handle.size() >= count * 2) {
    slot_of(g->captured[count - 1].handle) = static_cast<uint32_t>(count);
    return true;
  }
  size_t slots = 1024;
  while (slots < count * 4) slots *= 2;
  g->by_handle.clear();
  if (!g->by_handle.resize(slots)) return false;
  for (size_t i = 0; i < count; ++i) {
    const uint64_t handle = g->captured[i].handle;
    if (handle) slot_of(handle) = static_cast<uint32_t>(i + 1);
  }
  return true;
}

GraphNodeRow row_of(uint64_t id, const CapturedCall& call) {
  return {id,          call.record.begin, call.stream,     call.capture,
          call.thread, call.stack,        call.record.api, {}};
}

// A program may capture anew for as long as it runs. Graphs are instantiated, or compared with
// others, soon after their capture.
void drop_older_half() {
  const size_t kept = g->captured.size() / 2, gone = g->captured.size() - kept;
  for (size_t i = 0; i < kept; ++i) g->captured[i] = g->captured[gone + i];
  g->captured.truncate(kept);
  g->by_handle.clear();  // is made anew with the next one
}

// Nodes that the call in progress has made.
struct CreatedNodes {
  uint64_t node, graph;  // of the last one
  uint32_t count;
};
thread_local CreatedNodes t_created __attribute__((tls_model("initial-exec")));

// A handle has one entry at most: one that stayed behind would be found again once the newest is
// forgotten.
void keep_captured(uint64_t node, const CapturedCall& call) {
  const LockGuard guard(g_lock);
  if (g->captured.size() >= kMaxCaptured) drop_older_half();
  const uint32_t older = g->by_handle.empty() ? 0 : slot_of(node);
  if (!g->captured.push_back({node, call})) return;
  if (!index_captured()) return g->captured.truncate(0);  // without an index none can be forgotten
  if (older) g->captured[older - 1].handle = 0;
}

// Whether a call of the same capture has made this node. Ids of captures are "unique over the
// lifetime of the process" (cuStreamGetCaptureInfo).
bool is_kept(uint64_t node, uint64_t capture) {
  const LockGuard guard(g_lock);
  const uint32_t found = g->by_handle.empty() ? 0 : slot_of(node);
  return found && g->captured[found - 1].call.capture == capture;
}

// The handle is another node's now.
void forget_node(uint64_t node) {
  const LockGuard guard(g_lock);
  const uint32_t found = g->by_handle.empty() ? 0 : slot_of(node);
  if (found) g->captured[found - 1].handle = 0;
}

}  // namespace

void capture_began() {
  if (g_capturing.fetch_add(1, std::memory_order_acq_rel) == 0) refresh_hook_flags();
}

void capture_ended() {
  uint32_t before = g_capturing.load(std::memory_order_relaxed);
  // A capture that began before the hooks were there ends without having begun.
  while (before != 0 && !g_capturing.compare_exchange_weak(before, before - 1)) {
  }
  if (before == 1) refresh_hook_flags();
}

uint64_t stream_of(const Record& record) {
  switch (record.kind) {
    case Kind::launch: return record.launch.stream;
    case Kind::copy: return record.copy.stream;
    case Kind::set: return record.set.stream;
    case Kind::alloc:
    case Kind::dealloc: return record.memory.stream;
    default: return 0;
  }
}

int32_t result_of(const Record& record) {
  switch (record.kind) {
    case Kind::launch: return static_cast<int32_t>(record.launch.result);
    case Kind::copy: return record.copy.result;
    case Kind::set: return record.set.result;
    case Kind::alloc:
    case Kind::dealloc: return record.memory.result;
    default: return -1;
  }
}

bool has_own_stream(ApiId api) {
  const char* const name = api < api_count() ? api_rows()[api].name : "";
  const size_t length = std::strlen(name);
  const char* const end = length > 5 ? name + length - 5 : "";
  return std::strcmp(end, "_ptsz") == 0 || std::strcmp(end, "_ptds") == 0;
}

bool any_capture() { return g_capturing.load(std::memory_order_relaxed) != 0; }

bool is_captured(uint64_t stream, bool per_thread) {
  const ErrnoGuard keep_errno;
  const BlockedScope blocked;
  Capture capture{};
  return capture_of(stream, per_thread, capture);
}

void note_captured(Record& record, bool per_thread, StringId stack) {
  const uint64_t stream = stream_of(record);
  Capture capture{};
  if (!capture_of(stream, per_thread, capture)) return;
  record.flags |= kFlagCaptured;
  // A call that made no node finds the newest of those before it, or none.
  if (capture.count != 1 || result_of(record) != 0 || is_kept(capture.nodes[0], capture.id)) return;
  keep_captured(capture.nodes[0], {record, stream, capture.id, current_tid(), stack, Kind::none});
}

void note_captured_call(Record& record, StringId stack) {
  const ErrnoGuard keep_errno;
  const BlockedScope blocked;
  note_captured(record, has_own_stream(record.api), stack);
}

void forget_created_nodes() { t_created = {}; }

void note_created_node(uint64_t node, uint64_t graph) {
  ++t_created.count;
  t_created.node = node;
  t_created.graph = graph;
  forget_node(node);  // a call that has made it is noted at its end
}

void note_created_call(Record& record, StringId stack) {
  if (t_created.count == 0 || !makes_graph_node(record.kind)) return;
  record.flags |= kFlagCaptured;
  if (t_created.count != 1) return;
  keep_captured(t_created.node,
                {record, stream_of(record), t_created.graph, current_tid(), stack, Kind::none});
}

bool captured_call_of(uint64_t node, CapturedCall& out) {
  const LockGuard guard(g_lock);
  const uint32_t found = g->by_handle.empty() ? 0 : slot_of(node);
  if (found) out = g->captured[found - 1].call;
  return found != 0;
}

void graph_node_cloned(uint64_t original_handle, uint64_t node_id) {
  const LockGuard guard(g_lock);
  const uint32_t found = g->by_handle.empty() ? 0 : slot_of(original_handle);
  if (!found || g->cloned.size() >= kMaxCloned) return;
  const GraphNodeRow row = row_of(node_id, g->captured[found - 1].call);
  if (g->cloned.push_back(row)) store_graph_node_in_ring(row);
}

void graph_node_copied(uint64_t original_handle, uint64_t handle) {
  CapturedCall call{};
  forget_node(handle);
  if (captured_call_of(original_handle, call)) keep_captured(handle, call);
}

void graph_exec_created(uint64_t exec, const GraphContent& content) {
  const LockGuard guard(g_lock);
  (void)g->execs.push_back({exec, content});
}

void graph_exec_destroyed(uint64_t exec) {
  const LockGuard guard(g_lock);
  size_t kept = 0;
  for (const Exec& each : g->execs) {
    if (each.handle != exec) g->execs[kept++] = each;
  }
  g->execs.truncate(kept);
}

bool graphs_are_known() {
  const LockGuard guard(g_lock);
  return !g->execs.empty() || !g->by_handle.empty();
}

NodeRecords node_records_of(uint64_t exec, uint32_t& nodes) {
  nodes = 0;
  const LockGuard guard(g_lock);
  for (size_t i = g->execs.size(); i-- > 0;) {
    const Exec& each = g->execs[i];
    if (each.handle != exec) continue;
    if (each.content.conditionals) return NodeRecords::uncertain;
    nodes = each.content.timed;
    // Of a graph of which no node was told, anything may come.
    return each.content.nodes && !each.content.timed ? NodeRecords::nothing : NodeRecords::some;
  }
  return NodeRecords::likely;
}

size_t encode_graph_nodes(ByteBuffer& out, uint32_t clock_shift, size_t from) {
  const LockGuard guard(g_lock);
  const size_t count = g->cloned.size();
  if (from >= count) return from;
  WireWriter wire(out);
  PythonCodes codes;
  size_t i = from;
  for (; i < count && out.size() < kPieceBytes; ++i) {
    const GraphNodeRow& row = g->cloned[i];
    if (!write_graph_node(wire, row, row.api < api_count() ? api_rows()[row.api].name : "",
                          ring()->stacks.get(row.stack), clock_shift, codes)) {
      return from;
    }
  }
  write_graph_codes(wire, codes, [](StringId id) { return ring()->strings.get(id); });
  return wire.ok() ? i : from;
}

namespace {
void forget_graphs() {
  g_lock.unlock();
  g_capturing = 0;
  g->captured.release();
  g->by_handle.release();
  g->cloned.release();
  g->execs.release();
}
GPUPROF_FORGET_IN_CHILD(forget_graphs);
}  // namespace

}  // namespace gpuprof
