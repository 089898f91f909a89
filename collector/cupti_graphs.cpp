// SPDX-License-Identifier: Apache-2.0
#include "collector/cupti_graphs.h"

#include <atomic>

#include "collector/cupti_session.h"
#include "collector/graphs.h"
#include "collector/log.h"
#include "collector/session.h"

namespace gpuprof {
namespace {

constexpr CUpti_CallbackIdResource kCallbacks[] = {
    CUPTI_CBID_RESOURCE_GRAPHNODE_CLONED,
    CUPTI_CBID_RESOURCE_GRAPHEXEC_CREATED,
    CUPTI_CBID_RESOURCE_GRAPHEXEC_DESTROY_STARTING,
};

std::atomic<bool> g_whole{false};
std::atomic<decltype(&cuptiGetGraphNodeId)> g_node_id{nullptr};

bool whole_wanted() {
  const GraphTimes wanted = session().config.graph_times;
  return wanted == GraphTimes::whole || (wanted == GraphTimes::automatic && graphs_captured() != 0);
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
  bool whole = activity_on(Activity::kernel) && whole_wanted();
  if (whole && api.ActivityEnable(CUPTI_ACTIVITY_KIND_GRAPH_TRACE) != CUPTI_SUCCESS) {
    log_line(LogLevel::warn, "this libcupti cannot time CUDA graphs as a whole");
    whole = false;
  }
  g_whole.store(whole, std::memory_order_release);
}

void detach_graphs(const CuptiApi& api) {
  if (g_whole.load()) api.ActivityDisable(CUPTI_ACTIVITY_KIND_GRAPH_TRACE);
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
