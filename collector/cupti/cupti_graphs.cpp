// SPDX-License-Identifier: Apache-2.0
#include "collector/cupti/cupti_graphs.h"

#include <algorithm>
#include <atomic>
#include <iterator>

#include "collector/base/log.h"
#include "collector/cupti/cupti_session.h"
#include "collector/record/session.h"
#include "collector/sources/graphs.h"

namespace gpuprof {
namespace {

constexpr CUpti_CallbackIdResource kCallbacks[] = {
    CUPTI_CBID_RESOURCE_GRAPHNODE_CLONED,
    CUPTI_CBID_RESOURCE_GRAPHEXEC_CREATED,
    CUPTI_CBID_RESOURCE_GRAPHEXEC_DESTROY_STARTING,
};

std::atomic<bool> g_whole{false};
std::atomic<decltype(&cuptiGetGraphNodeId)> g_node_id{nullptr};

// The newest launches of graphs that CUPTI did not see instantiated, since it was attached.
std::atomic<uint32_t> g_launches[64];
std::atomic<uint32_t> g_launch_count{0};
constexpr uint32_t kMostLookedAt = 4096;
std::atomic<uint32_t> g_looked_at{0};
std::atomic<uint64_t> g_captured_before{0};

GraphTimes wanted_times() { return session().config.graph_times; }

void time_as_a_whole(const CuptiApi& api) {
  const bool granted = api.ActivityEnable(CUPTI_ACTIVITY_KIND_GRAPH_TRACE) == CUPTI_SUCCESS;
  if (!granted) log_line(LogLevel::warn, "this libcupti cannot time CUDA graphs as a whole");
  g_whole.store(granted, std::memory_order_release);
}

// Of the nodes that CUPTI has told the calling thread of since it last told it of an executable
// graph: instantiation makes the nodes first.
thread_local GraphContent t_content __attribute__((tls_model("initial-exec")));

void count_node(CUgraphNodeType type) {
  ++t_content.nodes;
  t_content.timed += type == CU_GRAPH_NODE_TYPE_KERNEL || type == CU_GRAPH_NODE_TYPE_MEMCPY ||
                     type == CU_GRAPH_NODE_TYPE_MEMSET;
  t_content.conditionals += type == CU_GRAPH_NODE_TYPE_CONDITIONAL;
}

uint64_t handle(const void* pointer) { return reinterpret_cast<uint64_t>(pointer); }

}  // namespace

void attach_graphs(const CuptiApi& api, CUpti_SubscriberHandle subscriber) {
  g_node_id.store(api.GetGraphNodeId, std::memory_order_release);
  for (const CUpti_CallbackIdResource id : kCallbacks) {
    api.EnableCallback(1, subscriber, CUPTI_CB_DOMAIN_RESOURCE, id);
  }
  g_whole.store(false, std::memory_order_release);
  g_launch_count = g_looked_at = 0;
  g_captured_before = graphs_captured();
  if (!activity_on(Activity::kernel)) return;
  if (wanted_times() == GraphTimes::whole) return time_as_a_whole(api);
  g_asks_about_graphs = !earlier_graphs_have_nodes();
}

void settle_graphs(const CuptiApi& api) {
  if (!graphs_are_open()) {
    // Graphs of the window are known; with `graph:node` nothing hangs on the answer but the wait.
    if (wanted_times() == GraphTimes::automatic) g_asks_about_graphs = false;
    return;
  }
  api.ActivityFlushAll(0);
  g_asks_about_graphs = false;
  if (!earlier_graphs_have_nodes()) time_as_a_whole(api);
}

bool graphs_are_open() {
  return asks_about_graphs() && wanted_times() == GraphTimes::automatic &&
         (g_captured_before != 0 || g_launch_count != 0);
}

void detach_graphs(const CuptiApi& api) {
  g_asks_about_graphs = false;
  if (g_whole.load()) api.ActivityDisable(CUPTI_ACTIVITY_KIND_GRAPH_TRACE);
}

void on_graph_launch(const void* exec, uint32_t correlation) {
  // No lock at each launch for as long as the question is open.
  if (g_looked_at.fetch_add(1, std::memory_order_relaxed) >= kMostLookedAt) return;
  uint32_t nodes = 0;
  if (node_records_of(handle(exec), nodes) != NodeRecords::none) return;
  const uint32_t number = g_launch_count.fetch_add(1);
  g_launches[number % std::size(g_launches)].store(correlation);
}

void on_graph_node_record(uint32_t correlation) {
  const size_t known = std::min<size_t>(g_launch_count.load(), std::size(g_launches));
  for (size_t i = 0; i < known; ++i) {
    if (g_launches[i].load() != correlation) continue;
    earlier_graph_had_nodes();
    g_asks_about_graphs = false;
    return;
  }
}

bool cupti_times_graphs() { return g_whole.load(std::memory_order_relaxed); }

void on_graph_callback(CUpti_CallbackId id, const void* data) {
  const void* const raw = static_cast<const CUpti_ResourceData*>(data)->resourceDescriptor;
  if (!raw) return;
  const auto& graph = *static_cast<const CUpti_GraphData*>(raw);
  if (id == CUPTI_CBID_RESOURCE_GRAPHEXEC_CREATED) {
    graph_exec_created(handle(graph.graphExec), t_content);
    t_content = {};
  }
  if (id == CUPTI_CBID_RESOURCE_GRAPHEXEC_DESTROY_STARTING) {
    graph_exec_destroyed(handle(graph.graphExec));
  }
  if (id != CUPTI_CBID_RESOURCE_GRAPHNODE_CLONED) return;
  count_node(graph.nodeType);
  const auto node_id = g_node_id.load(std::memory_order_acquire);
  uint64_t node = 0;
  if (node_id && node_id(graph.node, &node) == CUPTI_SUCCESS) {
    graph_node_cloned(handle(graph.originalNode), node);
  }
}

}  // namespace gpuprof
