// SPDX-License-Identifier: Apache-2.0
#include "collector/cupti/cupti_graphs.h"

#include <algorithm>
#include <utility>

#include "collector/base/log.h"
#include "collector/base/os.h"
#include "collector/cupti/cupti_graph_order.h"
#include "collector/cupti/cupti_session.h"
#include "collector/record/session.h"
#include "collector/sources/graphs.h"
#include "collector/sources/replayed_graphs.h"

namespace gpuprof {
namespace {

constexpr CUpti_CallbackIdResource kCallbacks[] = {
    CUPTI_CBID_RESOURCE_GRAPHNODE_CREATED,          CUPTI_CBID_RESOURCE_GRAPHNODE_CLONED,
    CUPTI_CBID_RESOURCE_GRAPHEXEC_CREATE_STARTING,  CUPTI_CBID_RESOURCE_GRAPHEXEC_CREATED,
    CUPTI_CBID_RESOURCE_GRAPHEXEC_DESTROY_STARTING,
};

std::atomic<bool> g_whole{false};
std::atomic<decltype(&cuptiGetGraphNodeId)> g_node_id{nullptr};
std::atomic<decltype(&cuptiGetGraphExecId)> g_exec_id{nullptr};
Mutex g_order_lock;  // nothing is called while it is held
constinit Immortal<GraphOrder> g_order;
uint64_t g_agreed = 0, g_differed = 0;  // records whose correlation id is that of their launch

bool g_whole_for_all = false;  // by us

// "Disabling the activity stops delivery of graph records but does not restore node level tracing
// of graph nodes" (cupti_activity.h of 13.5, GRAPH_TRACE).
std::atomic<bool> g_nodes_ended{false};

void time_as_a_whole(const CuptiActivities& activities) {
  const bool granted = activities.enable(CUPTI_ACTIVITY_KIND_GRAPH_TRACE) == CUPTI_SUCCESS;
  if (!granted) log_line(LogLevel::warn, "this libcupti cannot time CUDA graphs as a whole");
  if (granted) graph_trace_enabled();
  g_whole.store(granted, std::memory_order_release);
}

// With GRAPH_TRACE on, the launch of a graph that was instantiated before it ends the program
// (SIGSEGV, seen with CUPTI 13.0.1 and driver 580). Says so where there is one.
bool none_is_older() {
  const size_t older = live_graphs();
  if (older == 0) return true;
  log_line(LogLevel::warn,
           "graph:trace: CUPTI cannot time graphs of before the window as a whole, and %zu %s: %s",
           older, older == 1 ? "is" : "are",
           g_nodes_ended.load()
               ? "none has GPU times, since CUPTI has ended those of nodes for the process's life"
               : "all graphs are recorded node by node");
  return false;
}

// Where others record by now, CUPTI refuses that.
void withdraw_choice(const CuptiActivities& activities) {
  if (!std::exchange(g_whole_for_all, false)) return;
  activities.set_attribute(CuptiV2Attribute::multi_subscriber_graph_trace, 0);
}

// With several subscribers one choice is in force for all, from the first kind that any of them
// enables on.
void choose_with_others(const CuptiActivities& activities, bool whole) {
  constexpr auto kWhole = CuptiV2Attribute::multi_subscriber_graph_trace;
  uint8_t in_force = 0;
  if (activities.attribute(kWhole, &in_force) != CUPTI_SUCCESS) in_force = 0;
  if (whole && !in_force) {
    g_whole_for_all = activities.set_attribute(kWhole, 1) == CUPTI_SUCCESS;
    if (!g_whole_for_all) {
      log_line(LogLevel::warn,
               "graph:trace: another subscriber of CUPTI records graphs' nodes, so does gpuprof");
      return;
    }
    if (!none_is_older()) return withdraw_choice(activities);
  }
  if (!whole && in_force) {
    log_line(LogLevel::warn,
             "another subscriber of CUPTI has it time CUDA graphs as a whole: nodes have no times");
  }
  if (live_graphs() == 0 && (whole || in_force)) time_as_a_whole(activities);
}

// Of the nodes that CUPTI has told the calling thread of since an executable graph began to be
// made: instantiation makes the nodes first. Other nodes are cloned with cudaGraphClone, and with
// the graph of cudaGraphAddChildGraphNode.
struct ToldNodes {
  uint32_t nodes, timed;
  uint32_t conditionals : 31;
  uint32_t instantiates : 1;  // an executable graph is being made; static TLS is scarce
};
thread_local ToldNodes t_told __attribute__((tls_model("initial-exec")));

void count_node(CUgraphNodeType type) {
  ++t_told.nodes;
  t_told.timed += type == CU_GRAPH_NODE_TYPE_KERNEL || type == CU_GRAPH_NODE_TYPE_MEMCPY ||
                  type == CU_GRAPH_NODE_TYPE_MEMSET;
  t_told.conditionals += type == CU_GRAPH_NODE_TYPE_CONDITIONAL;
}

uint64_t handle(const void* pointer) { return reinterpret_cast<uint64_t>(pointer); }

// A record of a graph's node, or of a graph as a whole.
struct NodeRecord {
  uint32_t* correlation;
  uint32_t graph;
  uint64_t node, start;
};

template <typename Activity>
NodeRecord node_record(CUpti_Activity* raw) {
  auto* const in = reinterpret_cast<Activity*>(raw);
  return {&in->correlationId, in->graphId, in->graphNodeId, in->start};
}

bool read_node_record(CUpti_Activity* record, NodeRecord& out) {
  switch (record->kind) {
    case CUPTI_ACTIVITY_KIND_KERNEL:
    case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL:
      out = node_record<CUpti_ActivityKernel10>(record);
      break;
    case CUPTI_ACTIVITY_KIND_MEMCPY: out = node_record<CUpti_ActivityMemcpy6>(record); break;
    case CUPTI_ACTIVITY_KIND_MEMCPY2: out = node_record<CUpti_ActivityMemcpyPtoP4>(record); break;
    case CUPTI_ACTIVITY_KIND_MEMSET: out = node_record<CUpti_ActivityMemset4>(record); break;
    case CUPTI_ACTIVITY_KIND_GRAPH_TRACE: {
      auto* const in = reinterpret_cast<CUpti_ActivityGraphTrace2*>(record);
      out = {&in->correlationId, in->graphId, uint64_t{in->graphId} << 32, in->start};
      break;
    }
    default: return false;
  }
  return out.node != 0;
}

// 0: not known. What no launch is known of is not told (GraphOrder::launch_of).
uint32_t graph_id(const void* exec) {
  const auto exec_id = g_exec_id.load(std::memory_order_acquire);
  uint32_t graph = 0;
  const bool known = exec_id && exec_id(static_cast<CUgraphExec>(const_cast<void*>(exec)),
                                        &graph) == CUPTI_SUCCESS;
  return known ? graph : 0;
}

// A stream without a number is waited for with its context. Pointers are even.
GraphOrder::Place place_of(uint64_t context, uint64_t stream) {
  return {context, stream ? stream : context + 1};
}

}  // namespace

void attach_graphs(const CuptiActivities& activities, CUpti_SubscriberHandle subscriber,
                   bool ordered) {
  const CuptiApi& api = *activities.api;
  g_node_id.store(api.GetGraphNodeId, std::memory_order_release);
  g_exec_id.store(api.GetGraphExecId, std::memory_order_release);
  {
    const LockGuard guard(g_order_lock);
    g_order->clear();
  }
  g_graphs_are_ordered = ordered;
  for (const CUpti_CallbackIdResource id : kCallbacks) {
    api.EnableCallback(1, subscriber, CUPTI_CB_DOMAIN_RESOURCE, id);
  }
  cupti_tells_of_graphs(true);
  g_whole.store(false, std::memory_order_release);
  if (!activity_on(Activity::kernel)) return;
  const bool whole = session().config.graph_times == GraphTimes::whole;
  if (activities.subscriber) {
    choose_with_others(activities, whole);
  } else if (whole && none_is_older()) {
    time_as_a_whole(activities);
  }
}

void graphs_are_recorded() {
  const uint64_t now = now_ticks();
  const LockGuard guard(g_order_lock);
  g_order->begin_recording(now);
}

void detach_graphs(const CuptiActivities& activities) {
  cupti_tells_of_graphs(false);
  if (g_whole.load()) activities.disable(CUPTI_ACTIVITY_KIND_GRAPH_TRACE);
  withdraw_choice(activities);
}

void report_graph_order() {
  uint64_t agreed = 0, differed = 0;
  {
    const LockGuard guard(g_order_lock);
    std::swap(agreed, g_agreed);
    std::swap(differed, g_differed);
  }
  if (agreed + differed == 0) return;
  log_line(LogLevel::info,
           "CUPTI's ids of %llu graph records are those of their launches, of %llu they are not",
           static_cast<unsigned long long>(agreed), static_cast<unsigned long long>(differed));
}

uint32_t on_graph_launch(const void* exec, uint64_t context, uint64_t stream,
                         uint32_t correlation) {
  const uint32_t graph = graph_id(exec);
  if (graph == 0) return 0;
  uint32_t nodes = 0;
  const bool uncertain = node_records_of(handle(exec), nodes) == NodeRecords::uncertain;
  const LockGuard guard(g_order_lock);
  if (uncertain) g_order->exclude(graph);
  // Its work comes after this. A time of before the lock may lie before a wait that has been told
  // since.
  return g_order->add_launch(graph, place_of(context, stream), correlation, now_ticks());
}

void on_unseen_graph_launch(const void* exec, uint64_t context, uint64_t stream,
                            uint32_t correlation, bool succeeded) {
  const uint64_t now = now_ticks();
  const uint32_t graph = graph_id(exec);
  if (graph == 0) return;
  const LockGuard guard(g_order_lock);
  const uint32_t number = g_order->add_launch(graph, place_of(context, stream), correlation, 0);
  g_order->end_launch(number, correlation, now, succeeded);
}

void on_graph_launched(uint32_t number, uint32_t correlation, bool succeeded) {
  const uint64_t now = now_ticks();
  const LockGuard guard(g_order_lock);
  g_order->end_launch(number, correlation, now, succeeded);
}

void on_event_record(uint64_t event, uint64_t stream, uint64_t now) {
  const LockGuard guard(g_order_lock);
  g_order->add_event(event, {stream, now});
}

void on_stream_end(uint64_t stream) {
  const LockGuard guard(g_order_lock);
  g_order->end_stream(stream);
}

void where_event_is(uint64_t event, uint64_t& stream, uint64_t& time) {
  const LockGuard guard(g_order_lock);
  const GraphOrder::EventPlace place = g_order->event(event);
  stream = place.stream;
  time = place.time;
}

void on_context_wait(uint64_t context, uint64_t begin) {
  const uint64_t end = now_ticks();
  const LockGuard guard(g_order_lock);
  g_order->add_context_wait(context, begin, end);
}

void on_stream_wait(uint64_t stream, uint64_t begin) {
  const uint64_t end = now_ticks();
  const LockGuard guard(g_order_lock);
  g_order->add_stream_wait(stream, begin, end);
}

bool graph_order_awaits_wait() {
  if (!graphs_are_ordered()) return false;
  const bool known = graphs_are_known();
  const LockGuard guard(g_order_lock);
  return (!g_order->waited() || !g_order->counts_all()) && (known || g_order->has_launches());
}

void order_graph_records(const CuptiActivities& activities, const CuptiRecordContext& context,
                         uint8_t* buffer, size_t valid) {
  PodVector<NodeRecord> records;
  CUpti_Activity* raw = nullptr;
  while (valid && activities.next_record(buffer, valid, &raw) == CUPTI_SUCCESS) {
    NodeRecord record{};
    if (!read_node_record(raw, record)) continue;
    if (record.start != 0) record.start = context.clock.to_ticks(record.start);
    const bool timed = record.start > context.attach_ticks && record.start < context.now_ticks;
    if (timed && records.push_back(record)) continue;
    *record.correlation = 0;
    lose_graph_order();
  }
  std::sort(records.begin(), records.end(),
            [](const NodeRecord& a, const NodeRecord& b) { return a.start < b.start; });
  const LockGuard guard(g_order_lock);
  for (const NodeRecord& record : records) {
    const uint32_t told = g_order->launch_of(record.graph, record.node, record.start);
    if (told) (told == *record.correlation ? g_agreed : g_differed) += 1;
    *record.correlation = told;
  }
}

void lose_graph_order() {
  const uint64_t now = now_ticks();
  const LockGuard guard(g_order_lock);
  g_order->lose_count(now);
}

void graph_trace_enabled() { g_nodes_ended.store(true, std::memory_order_relaxed); }
void graph_trace_forgotten() { g_nodes_ended.store(false, std::memory_order_relaxed); }

bool cupti_has_no_graph_times() {
  return g_nodes_ended.load(std::memory_order_relaxed) && !cupti_times_graphs();
}

bool cupti_times_graphs() { return g_whole.load(std::memory_order_relaxed); }

void on_graph_callback(CUpti_CallbackId id, const void* data) {
  const void* const raw = static_cast<const CUpti_ResourceData*>(data)->resourceDescriptor;
  if (!raw) return;
  const auto& graph = *static_cast<const CUpti_GraphData*>(raw);
  if (id == CUPTI_CBID_RESOURCE_GRAPHNODE_CREATED) {
    note_created_node(handle(graph.node), handle(graph.graph));
  }
  if (id == CUPTI_CBID_RESOURCE_GRAPHEXEC_CREATED) {
    graph_exec_created(handle(graph.graphExec), {t_told.nodes, t_told.timed, t_told.conditionals});
  }
  if (id == CUPTI_CBID_RESOURCE_GRAPHEXEC_CREATE_STARTING ||
      id == CUPTI_CBID_RESOURCE_GRAPHEXEC_CREATED) {
    t_told = {};
    t_told.instantiates = id == CUPTI_CBID_RESOURCE_GRAPHEXEC_CREATE_STARTING;
  }
  if (id == CUPTI_CBID_RESOURCE_GRAPHEXEC_DESTROY_STARTING) {
    graph_exec_destroyed(handle(graph.graphExec));
  }
  if (id != CUPTI_CBID_RESOURCE_GRAPHNODE_CLONED) return;
  count_node(graph.nodeType);
  if (!t_told.instantiates) graph_node_copied(handle(graph.originalNode), handle(graph.node));
  const auto node_id = g_node_id.load(std::memory_order_acquire);
  uint64_t node = 0;
  if (node_id && node_id(graph.node, &node) == CUPTI_SUCCESS) {
    graph_node_cloned(handle(graph.originalNode), node);
  }
}

void forget_cupti_graphs() {
  g_order_lock.unlock();
  g_graphs_are_ordered = false;
  g_whole_for_all = false;
}

}  // namespace gpuprof
