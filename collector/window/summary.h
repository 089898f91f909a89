// SPDX-License-Identifier: Apache-2.0
// What a window came to: the dump's Summary, the profiler's own cost, and the closing line of a
// run.
#pragma once

#include <cstdint>

#include "collector/record/session.h"
#include "collector/window/dump_file.h"
#include "collector/window/losses.h"
#include "formats/core/byte_buffer.h"

namespace gpuprof {

// Calibrated at session start on the drain thread: what one record costs the calling thread.
struct HookCost {
  double ns_per_record;
};
HookCost measure_hook_cost();

struct WindowTotals {
  uint64_t events;
  uint64_t left_out;  // that were recorded, and had to make room
  uint64_t hook_records;
  uint64_t hook_cost_ns;       // of the program's threads (own_costs.h)
  uint64_t drain_cpu_ns;       // spent by the drain thread, on another core if there is one
  uint64_t cupti_overhead_ns;  // as CUPTI reports it
  uint64_t samples_cpu_ns;     // spent by the sampling thread
  uint64_t process_cpu_ns;     // by all of a DataLoader's worker; else 0
};

bool encode_summary(ByteBuffer& out, const Window& window, const WindowTotals& totals,
                    const LossCounts& losses);

struct WindowDump {
  DumpOutcome outcome;
  int error;         // errno of what failed first; 0: nothing
  const char* path;  // when it is complete
};
// The closing line counts what is on disk.
void note_window_totals(const Window& window, const WindowTotals& totals, const WindowDump& dump);
// The dump of a failed allocation that was in no window.
void note_memory_dump(const char* path);
// Says what the run came to: steps, cost, where to go on; what is missing, and why; or that no
// window was reached.
void print_closing_line();

}  // namespace gpuprof
