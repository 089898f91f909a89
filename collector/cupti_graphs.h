// SPDX-License-Identifier: Apache-2.0
// What CUPTI tells about CUDA graphs: nodes as they are cloned into an executable graph, and
// whether a launch is timed node by node or as a whole (GRAPH_TRACE, which replaces node records).
#pragma once

#include <cupti.h>

#include "collector/cupti_api.h"

namespace gpuprof {

// At attach, on the drain thread. Asks for the resource callbacks, and for GRAPH_TRACE where the
// settings want it, or do not say and graphs were captured before CUPTI was on.
void attach_graphs(const CuptiApi& api, CUpti_SubscriberHandle subscriber);
void detach_graphs(const CuptiApi& api);

// The subscriber's callback for the resource domain; on the thread that changes a graph.
void on_graph_callback(CUpti_CallbackId id, const void* data);

}  // namespace gpuprof
