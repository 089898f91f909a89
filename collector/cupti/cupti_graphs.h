// SPDX-License-Identifier: Apache-2.0
// What CUPTI tells about CUDA graphs: nodes as they are cloned into an executable graph, and which
// launch a node's record belongs to. A launch is timed node by node, or as a whole (GRAPH_TRACE,
// which replaces node records).
//
// Node by node unless the settings say otherwise. A graph instantiated before GRAPH_TRACE was
// enabled has no record as a whole. Its nodes have theirs (CUPTI user's guide, 2.3.7.5 "Late
// attach limitations"; for nodes: https://github.com/lightseekorg/tokenspeed/pull/1348, CUDA
// 13.0).
#pragma once

#include <cupti.h>

#include <atomic>

#include "collector/cupti/cupti_api.h"
#include "collector/cupti/cupti_records.h"

namespace gpuprof {

// At attach, on the drain thread, before any activity is enabled: asks for the resource callbacks,
// and for GRAPH_TRACE where the settings want it. `ordered`: correlation ids of graph launches are
// wrong in this session; callbacks of graph launches and waits must be on already.
void attach_graphs(const CuptiActivities& activities, CUpti_SubscriberHandle subscriber,
                   bool ordered);
// All activities are enabled: graphs launched from now on are surely recorded.
void graphs_are_recorded();
void detach_graphs(const CuptiActivities& activities);
// Says, once all records have come, how often CUPTI's own ids were right where they need not be.
void report_graph_order();

// Whether correlation ids of graph launches are wrong in this session (GraphOrder). Any thread.
inline constinit std::atomic<bool> g_graphs_are_ordered{false};
inline bool graphs_are_ordered() { return g_graphs_are_ordered.load(std::memory_order_relaxed); }
// Whether the launch of no record can be told before the program waits for the GPU, and there are
// graphs. Any thread.
bool graph_order_awaits_wait();
// The subscriber's callback for calls that order the launches of graphs, on the calling thread. Of
// contexts, streams (GraphOrder) and events 0 is one that is not known. At a launch's entry and
// exit; the number goes from one to the other:
uint32_t on_graph_launch(const void* exec, uint64_t context, uint64_t stream, uint32_t correlation);
void on_graph_launched(uint32_t number, uint32_t correlation, bool succeeded);
// At the exit of a launch whose entry was not told: the call began before the attach.
void on_unseen_graph_launch(const void* exec, uint64_t context, uint64_t stream,
                            uint32_t correlation, bool succeeded);
// At the entry; stream 0: the event is destroyed.
void on_event_record(uint64_t event, uint64_t stream, uint64_t now);
void on_stream_end(uint64_t stream);
// Where and when an event was recorded last.
void where_event_is(uint64_t event, uint64_t& stream, uint64_t& time);
// The call that began then has waited for what was there.
void on_context_wait(uint64_t context, uint64_t begin);
void on_stream_wait(uint64_t stream, uint64_t begin);
// Writes into all records of graph nodes in a buffer which launch they belong to; 0 where that
// cannot be told. On the thread that delivers the buffer.
void order_graph_records(const CuptiActivities& activities, const CuptiRecordContext& context,
                         uint8_t* buffer, size_t valid);
// Records are missing.
void lose_graph_order();

// The subscriber's callback for the resource domain; on the thread that changes a graph.
void on_graph_callback(CUpti_CallbackId id, const void* data);

// GRAPH_TRACE was enabled, by us or the program: graphs' nodes have no records any more. Any
// thread.
void graph_trace_enabled();
void graph_trace_forgotten();  // CUPTI was taken down

void forget_cupti_graphs();  // in the child after fork

}  // namespace gpuprof
