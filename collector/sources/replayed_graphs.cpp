// SPDX-License-Identifier: Apache-2.0
#include "collector/sources/replayed_graphs.h"

#include <atomic>

#include "collector/base/clock.h"
#include "collector/base/fork.h"
#include "collector/base/libraries.h"
#include "collector/base/os.h"
#include "collector/record/collector.h"
#include "collector/record/ring.h"
#include "collector/record/session.h"
#include "collector/sources/graphs.h"
#include "formats/core/graph_node.h"

namespace gpuprof {
namespace {

constexpr size_t kMaxCalls = 1u << 20;       // of all graphs: 100 MB
constexpr size_t kMaxNodes = 1u << 16;       // of one
constexpr size_t kPieceBytes = 1024 * 1024;  // of a dump, for which the lock is held at a time

// What an executable graph replays since it was instantiated or updated.
struct Version {
  uint64_t exec, since;  // ticks
  uint64_t number;       // from 1 on, in order
  size_t first, count;   // in `calls`, in the order of the graph's nodes
  bool complete;  // false: some of its work is made by other nodes (child graphs, conditions)
  bool replaced;  // by another one of the graph, for windows that begin later
  bool destroyed;
};

Mutex g_lock;  // of the tables; nothing is called while it is held
struct Tables {
  PodVector<Version> versions;
  PodVector<CapturedCall> calls;
  PodVector<uint64_t> live;  // handles of all executable graphs, whatever is known of them
  bool more_live = false;    // there was no memory for some of these
  size_t unused = 0;         // calls of destroyed graphs
  uint64_t newest = 0;
};
constinit Immortal<Tables> g;
std::atomic<bool> g_cupti_tells{false};
std::atomic<size_t> g_most_live{0};  // `live` at its longest

// Of the driver, whose signatures these have had since CUDA 10.
using GetNodes = int (*)(uint64_t graph, uint64_t* nodes, size_t* count);
using GetType = int (*)(uint64_t node, int* type);

template <typename Function>
Function driver_function(const char* name) {
  return reinterpret_cast<Function>(real_symbol(loaded_driver(), name));
}

// CUgraphNodeType.
enum NodeType : int {
  kKernelNode = 0,
  kCopyNode = 1,
  kSetNode = 2,
  kChildGraphNode = 4,
  kConditionalNode = 13
};

Kind kind_of_node(int type) {
  switch (type) {
    case kKernelNode: return Kind::gpu_kernel;
    case kCopyNode: return Kind::gpu_copy;
    case kSetNode: return Kind::gpu_set;
    default: return Kind::none;
  }
}

// The calls that a graph's nodes were captured from: of those that CUPTI has records of. False:
// the driver does not say.
bool calls_of(uint64_t graph, PodVector<CapturedCall>& calls, bool& complete) {
  const auto get_nodes = driver_function<GetNodes>("cuGraphGetNodes");
  const auto get_type = driver_function<GetType>("cuGraphNodeGetType");
  size_t count = 0;
  if (!get_nodes || !get_type || get_nodes(graph, nullptr, &count) != 0) return false;
  PodVector<uint64_t> nodes;
  if (count == 0 || count > kMaxNodes || !nodes.resize(count)) return false;
  if (get_nodes(graph, &nodes[0], &count) != 0 || count > nodes.size()) return false;
  complete = true;
  for (size_t i = 0; i < count; ++i) {
    int type = 0;
    if (get_type(nodes[i], &type) != 0) return false;
    if (type == kChildGraphNode || type == kConditionalNode) complete = false;
    CapturedCall call{};
    if (kind_of_node(type) == Kind::none) continue;
    if (!captured_call_of(nodes[i], call)) call.record.kind = Kind::none;
    call.node_kind = kind_of_node(type);
    if (!calls.push_back(call)) return false;
  }
  return calls.size() != 0;
}

// Those of graphs that are gone leave once they are most.
void make_room() {
  if (g->unused < 4096 || g->unused * 2 < g->calls.size()) return;
  size_t kept_versions = 0, kept_calls = 0;
  for (Version version : g->versions) {
    if (version.destroyed) continue;
    for (size_t i = 0; i < version.count; ++i) {
      g->calls[kept_calls + i] = g->calls[version.first + i];
    }
    version.first = kept_calls;
    kept_calls += version.count;
    g->versions[kept_versions++] = version;
  }
  g->versions.truncate(kept_versions);
  g->calls.truncate(kept_calls);
  g->unused = 0;
}

void give_up(Version& version) {
  version.destroyed = true;
  g->unused += version.count;
}

// A program may update its graphs for as long as it runs. Of each only the newest version is not
// replaced; an open window needs the others, too.
void replace(uint64_t exec) {
  for (size_t i = g->versions.size(); i-- > 0;) {
    Version& version = g->versions[i];
    if (version.exec != exec || version.destroyed) continue;
    version.replaced = true;
    break;
  }
  if (window_is_open()) return;
  for (Version& version : g->versions) {
    if (version.replaced && !version.destroyed) give_up(version);
  }
  make_room();
}

void keep(uint64_t exec, uint64_t since, bool complete, const PodVector<CapturedCall>& calls) {
  const LockGuard guard(g_lock);
  replace(exec);
  if (g->calls.size() + calls.size() > kMaxCalls) return;
  const size_t first = g->calls.size();
  if (!g->calls.append(&calls[0], calls.size())) return;
  const Version version{exec, since, g->newest + 1, first, calls.size(), complete, false, false};
  if (!g->versions.push_back(version)) return g->calls.truncate(first);
  ++g->newest;
}

void note_version(uint64_t exec, uint64_t graph) {
  if (exec == 0 || graph == 0 || g_cupti_tells.load(std::memory_order_acquire)) return;
  if (!graphs_are_known()) return;  // nothing was captured
  const ErrnoGuard keep_errno;
  const BlockedScope blocked;
  PodVector<CapturedCall> calls;
  bool complete = false;
  if (calls_of(graph, calls, complete)) keep(exec, now_ticks(), complete, calls);
}

// What CUPTI told of a graph of this handle is true no more, and CUPTI does not tell.
void leave_to_hooks(uint64_t exec) {
  if (!g_cupti_tells.load(std::memory_order_acquire)) graph_exec_destroyed(exec);
}

// Its index among the live ones; their number: it is none of them. The lock is held.
size_t live_index(uint64_t exec) {
  size_t i = 0;
  while (i < g->live.size() && g->live[i] != exec) ++i;
  return i;
}

// A call of the runtime may be seen once more as its call of the driver.
void note_live(uint64_t exec) {
  const ErrnoGuard keep_errno;
  const LockGuard guard(g_lock);
  if (live_index(exec) == g->live.size() && !g->live.push_back(exec)) g->more_live = true;
  if (g->live.size() > g_most_live.load(std::memory_order_relaxed)) g_most_live = g->live.size();
}

void forget_live(uint64_t exec) {
  const size_t i = live_index(exec), count = g->live.size();
  if (i == count) return;
  g->live[i] = g->live[count - 1];
  g->live.truncate(count - 1);
}

bool write_call(WireWriter& wire, const CapturedCall& call, uint32_t clock_shift,
                const NameResolver& names, PythonCodes& codes) {
  const Record& record = call.record;
  GraphNodeRow row{};
  ReplayedWork replayed{};
  replayed.kind = call.node_kind;
  if (record.kind == Kind::none) return write_replayed_call(wire, row, {}, {}, 0, codes, replayed);
  row = {0, record.begin, call.stream, call.capture, call.thread, call.stack, record.api, {}};
  if (record.kind == Kind::launch) {
    const LaunchPayload& launch = record.launch;
    replayed.name = record.flags & kFlagNamed ? names.string(static_cast<StringId>(launch.function))
                                              : names.function_name(launch.function);
    replayed.grid = {launch.grid_x, launch.grid_y, launch.grid_z};
    replayed.block = {launch.block_x, launch.block_y, launch.block_z};
  } else if (record.kind == Kind::copy) {
    replayed.bytes = record.copy.bytes;
  } else if (record.kind == Kind::set) {
    replayed.bytes = record.set.bytes;
  }
  return write_replayed_call(wire, row, names.api_name(record.api), names.stack(row.stack),
                             clock_shift, codes, replayed);
}

}  // namespace

void graph_instantiated(uint64_t exec, uint64_t graph) {
  leave_to_hooks(exec);
  note_live(exec);
  note_version(exec, graph);
}

void graph_updated(uint64_t exec, uint64_t graph) { note_version(exec, graph); }

void graph_destroyed(uint64_t exec) {
  leave_to_hooks(exec);
  const LockGuard guard(g_lock);
  forget_live(exec);
  for (Version& version : g->versions) {
    if (version.exec != exec || version.destroyed) continue;
    give_up(version);
  }
  make_room();
}

size_t live_graphs() {
  const LockGuard guard(g_lock);
  return g->live.size() + g->more_live;
}

size_t most_live_graphs() { return g_most_live.load(std::memory_order_relaxed); }

void cupti_tells_of_graphs(bool tells) { g_cupti_tells.store(tells, std::memory_order_release); }

uint64_t encode_replayed_graphs(ByteBuffer& out, uint32_t clock_shift, const NameResolver& names,
                                uint64_t after) {
  const LockGuard guard(g_lock);
  WireWriter wire(out);
  PythonCodes codes;
  uint64_t written = after;
  for (const Version& version : g->versions) {
    if (version.number <= after) continue;
    if (out.size() >= kPieceBytes) break;
    const size_t mark = wire.open(kReplayedGraphField);
    wire.uint(1, version.exec);
    wire.uint(2, version.since >> clock_shift);
    wire.uint(3, version.complete);
    for (size_t i = 0; i < version.count; ++i) {
      if (!write_call(wire, g->calls[version.first + i], clock_shift, names, codes)) return after;
    }
    wire.close(mark);
    written = version.number;
  }
  write_graph_codes(wire, codes, [](StringId id) { return ring()->strings.get(id); });
  return wire.ok() ? written : after;
}

namespace {
void forget_replayed_graphs() {
  g_lock.unlock();
  g_cupti_tells = false;
  g_most_live = 0;
  g->versions.release();
  g->calls.release();
  g->live.release();
  g->more_live = false;
  g->unused = 0;
  g->newest = 0;
}
GPUPROF_FORGET_IN_CHILD(forget_replayed_graphs);
}  // namespace

}  // namespace gpuprof
