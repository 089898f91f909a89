// SPDX-License-Identifier: Apache-2.0
// What CUPTI tells about CUDA graphs: nodes as they are cloned into an executable graph, and
// whether a launch is timed node by node or as a whole (GRAPH_TRACE, which replaces node records).
//
// Whether CUPTI has records of the nodes of a graph that was instantiated while it was off is told
// both ways (for: https://github.com/lightseekorg/tokenspeed/pull/1348, CUDA 13.0). So it is asked:
// between attach and window launches of such graphs are noted, and a record of a node of one of
// them is the answer. Without one, launches are timed as a whole.
#pragma once

#include <cupti.h>

#include <atomic>

#include "collector/cupti/cupti_api.h"

namespace gpuprof {

// At attach, on the drain thread. Asks for the resource callbacks, and for GRAPH_TRACE where the
// settings want it.
void attach_graphs(const CuptiApi& api, CUpti_SubscriberHandle subscriber);
// As a window begins, on the drain thread: GRAPH_TRACE where the settings do not say, graphs are
// older than CUPTI's being on, and no record of their nodes has come.
void settle_graphs(const CuptiApi& api);
// Whether there is something to settle. Any thread.
bool graphs_are_open();
void detach_graphs(const CuptiApi& api);

// Whether the two below are to be told. Any thread.
inline constinit std::atomic<bool> g_asks_about_graphs{false};
inline bool asks_about_graphs() { return g_asks_about_graphs.load(std::memory_order_relaxed); }
// The subscriber's callback for a launch of an executable graph, on the launching thread.
void on_graph_launch(const void* exec, uint32_t correlation);
// A record of a graph's node, on the thread that delivers it.
void on_graph_node_record(uint32_t correlation);

// The subscriber's callback for the resource domain; on the thread that changes a graph.
void on_graph_callback(CUpti_CallbackId id, const void* data);

}  // namespace gpuprof
