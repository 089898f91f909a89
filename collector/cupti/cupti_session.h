// SPDX-License-Identifier: Apache-2.0
// CUPTI: found, attached at warm-up, detached after the window. Its own buffer callback copies its
// records into the ring. Its API callbacks give the correlation id of the call in progress, and
// record calls that no hook saw (static CUDA runtimes).
//
// Joining: the callback on the traced API writes the correlation id into the thread's state, where
// the hook around it picks it up. Exact, also for nested and repeated calls, and no extra record.
#pragma once

#include <cstdint>

#include "formats/core/ring_file.h"

namespace gpuprof {

// Drain thread. Finds libcupti (once) and switches on what the settings ask for; where these ask
// for times by CUDA events, readies these instead (collector/sources/event_times.h). False: GPU
// times will be missing; gpu_times_missing() says why.
bool cupti_attach();
// Drain thread, or in the subscriber's callback. Asks for finished records; `forced` also for those
// not finished (at exit).
void cupti_flush(bool forced);
// Drain thread. Everything off, subscription given back.
void cupti_detach();
// Drain thread. The program wants CUPTI for itself: everything off, and as it expects to find it.
void cupti_yield();
// Drain thread, while a window is near or open: takes CUPTI again once its other user has finished.
void cupti_try_again();
// Drain thread. Where calls have no correlation ids: asks for what makes CUPTI give them.
void cupti_ask_for_ids();
// Drain thread, in a window: no callbacks of calls that are left out (record/shed.h), and theirs
// back once they are not.
void cupti_leave_out_shed_calls();
void cupti_take_back_shed_calls();
// A window opens while CUPTI is still being attached. Any thread, before the next.
void cupti_window_opens_without();
// Drain thread, once it is open. `end_ticks`: 0, or when it has ended already.
void cupti_window_begins(uint64_t end_ticks);
bool cupti_is_attached();
uint64_t cupti_attached_ticks();  // since when, while it is. Drain thread
// Attached, or not to be had in this process. Any thread.
bool cupti_is_settled();
// cupti_attach() is running. Any thread.
bool cupti_is_attaching();
// It is attached, and until the program waits for the GPU launches of CUDA graphs lack their work
// (cupti_graph_order.h). Any thread.
bool cupti_awaits_wait();
uint64_t cupti_attach_ns();  // how long the newest attach took; 0: there was none. Any thread

// Whether graph launches have one record for the whole graph, and none for nodes. Any thread.
bool cupti_times_graphs();
// Neither graphs as a whole nor their nodes: GRAPH_TRACE was on before.
bool cupti_has_no_graph_times();
uint32_t cupti_version();  // 0: not loaded
// Drain thread. Which functions of CUPTI the newest session has used, and beside whom: "V1",
// "V2 beside NAME"; "": there was none.
const char* cupti_api_in_use();
// CUPTI refuses to have several subscribers even where there is none (drivers before R610). Any
// thread.
bool cupti_serves_one();
// CUPTI has refused the program's own profiler: said once, if our use of it may be why. Any thread.
void cupti_refused_host(int error);
const char* gpu_times_missing();  // "": none are, or no window is open or being closed
uint64_t cupti_overhead_ticks();  // of records of what CUPTI itself took, since attach
void forget_cupti();              // in the child after fork

}  // namespace gpuprof
