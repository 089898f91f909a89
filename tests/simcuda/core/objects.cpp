// SPDX-License-Identifier: Apache-2.0
// The core's tables of events and graphs: handles are addresses, looked up on every use.
#include "tests/simcuda/core/objects.h"

#include "tests/simcuda/core/core.h"

namespace gpuprof::simcuda {
namespace {

template <typename Map>
auto find(const Map& map, const void* handle) -> typename Map::mapped_type {
  const auto it = map.find(handle);
  return it == map.end() ? nullptr : it->second;
}

}  // namespace

std::shared_ptr<Event> Core::create_event(unsigned flags, int device) {
  auto event = std::make_shared<Event>();
  event->id = ++event_id_;
  event->flags = flags;
  event->device = device;
  const auto& current = thread_state().context;
  event->context_id = current != nullptr ? current->id : static_cast<uint32_t>(device) + 1;
  events_[event.get()] = event;
  return event;
}

std::shared_ptr<Event> Core::event(cudaEvent_t handle) { return find(events_, handle); }
bool Core::destroy_event(cudaEvent_t handle) { return events_.erase(handle) != 0; }

std::shared_ptr<Graph> Core::create_graph() {
  auto graph = std::make_shared<Graph>();
  graph->id = ++graph_id_;
  graphs_[graph.get()] = graph;
  return graph;
}

std::shared_ptr<Graph> Core::graph(cudaGraph_t handle) { return find(graphs_, handle); }
const Graph::Node* Core::graph_node(uint64_t id) const {
  for (const auto& [handle, graph] : graphs_) {
    for (const Graph::Node& node : graph->nodes) {
      if (node.id == id) return &node;
    }
  }
  return nullptr;
}
bool Core::destroy_graph(cudaGraph_t handle) { return graphs_.erase(handle) != 0; }

cudaGraphExec_t Core::add_graph_exec(std::shared_ptr<GraphExec> exec) {
  exec->id = ++graph_id_;
  graph_execs_[exec.get()] = exec;
  return reinterpret_cast<cudaGraphExec_t>(exec.get());
}

std::shared_ptr<GraphExec> Core::graph_exec(cudaGraphExec_t handle) {
  return find(graph_execs_, handle);
}

bool Core::destroy_graph_exec(cudaGraphExec_t handle) { return graph_execs_.erase(handle) != 0; }

}  // namespace gpuprof::simcuda
