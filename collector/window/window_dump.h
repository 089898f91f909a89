// SPDX-License-Identifier: Apache-2.0
// The dump of a window, from when it opens to when it is complete. Drain thread only.
#pragma once

#include <cstddef>
#include <cstdint>

#include "collector/window/batch.h"
#include "collector/window/budget.h"
#include "collector/window/dump_file.h"
#include "collector/window/early_dump.h"
#include "collector/window/step_log.h"
#include "collector/window/summary.h"
#include "formats/core/byte_buffer.h"

namespace gpuprof {

// All of the thread's state; in memory of its own, made anew for each session (fork).
struct Drain {
  WindowCollector collector;
  DumpFile file;
  StepLog steps;
  ByteBuffer body;
  HookCost hook_cost{};
  uint64_t last_flush = 0;
  uint64_t last_anchor = 0;
  uint64_t last_counters = 0;
  uint64_t last_lock_look = 0;
  uint64_t last_end_look = 0;  // whether the program has ended
  uint64_t cpu_at_begin = 0;
  uint64_t process_cpu_at_begin = 0;
  size_t modules_written = 0;     // of the window's dump
  size_t graph_nodes = 0;         // written to it
  uint64_t replayed_graphs = 0;   // number of the newest written to it
  uint64_t nvtx_names = 0;        // likewise
  uint32_t failures_written = 0;  // which failed allocation is in a dump
  uint32_t failures_before_early = 0;
  EarlyDump early{};
  Budget budget{};
  bool vendor_code_may_map = true;  // asked as a header is written
  bool awaits_cuda = false;         // it had not started when the window's header was written
  bool window_open = false;
  uint64_t left_out = 0;  // events of the open window that had to go
  uint64_t moved_to = 0;  // where its begin has to be then
  uint64_t last_module_look = 0;
  uint64_t last_look = 0;        // for GPU records
  bool said_no_records = false;  // in this window
};

// ---- a window (window_dump.cpp) ----------------------------------------------------------------

void open_dump(Drain& drain);
// No window needs CUPTI: off.
void detach_cupti();
// Waits for GPU records of the window's launches, 2 s at most. An early window is kept without a
// name.
void close_dump(Drain& drain);
// What is there so far becomes a complete dump: the program may be replaced the next moment.
void save_dump(Drain& drain);
// The dump of the whole program has grown too large: its oldest events go, half of what may be
// stays. False: that is not to be had.
bool keep_newest(Drain& drain);
// The process ends: without a better window, and with a failed allocation that is in no dump.
void leave_last_dumps(Drain& drain);

// ---- its parts (dump_parts.cpp) ----------------------------------------------------------------

// Reads both clocks; the ring keeps the first, the newest, and an even choice of those in between.
void add_anchor();
// A process that is killed before its first batch, or its first window, can be identified.
void keep_identity(const ByteBuffer& header);
void write_header(Drain& drain);
// What the header lacks, if CUDA has started since.
void write_cuda(Drain& drain);
void write_counters(Drain& drain);
// New modules go to the ring at once, and to the dump: each Modules message names all of them.
void keep_modules(Drain& drain);
// Those that are new since the last time.
void write_graph_nodes(Drain& drain);
// Those that may be launched in the window.
void write_replayed_graphs(Drain& drain);
void write_nvtx_names(Drain& drain);
// The newest failed allocation, if it is in no dump yet.
void write_failed_allocation(Drain& drain);

}  // namespace gpuprof
