// SPDX-License-Identifier: Apache-2.0
// GPUPROF_WORKERS=1: this process as a worker of a PyTorch DataLoader. It records the Python stacks
// of its main thread in the windows of the process that it loads for. It knows these from that
// process's ring: inherited by fork, else found among the open files of its ancestors.
//
// What makes a process a worker: torch.utils.data.get_worker_info() has an answer. Looked for at
// audit events, with the GIL; where the setting is off nothing is looked for.
#pragma once

#include <atomic>
#include <cstdint>

#include "collector/python/python_api.h"
#include "formats/core/settings.h"

namespace gpuprof {

// PyTorch has been imported: reads whether workers are wanted, of this process's children, too.
void data_workers_possible();
// In the child after fork, before the session and its ring are forgotten. Keeps a view of the
// parent's ring.
void data_worker_forked();

extern std::atomic<bool> g_data_worker_due;
// From an audit event, with the GIL: whether this has become a worker. Starts a thread that waits
// for the parent's window.
void data_worker_look(const PythonApi& python);
inline bool data_worker_is_due() { return g_data_worker_due.load(std::memory_order_relaxed); }

// ---- of a process that is one ------------------------------------------------------------------

// Leaves of the settings what a worker records.
void limit_to_data_worker(Config& config);
uint32_t parent_process();  // 0: this is no worker, or the parent was not found
int parent_rank();
uint32_t parent_clock_source();
const char* parent_stem();      // path of the parent's dumps, without "_w<number>.gpuprof"
uint32_t data_worker_number();  // in its loader

struct ParentWindow {
  bool open;
  uint32_t number;
  uint64_t first_step, last_step;   // last_step: the last complete one
  uint64_t begin_ticks, end_ticks;  // end: 0 while it is open
};
// The parent's newest window. False: it changes at this moment.
bool read_parent_window(ParentWindow& out);

}  // namespace gpuprof
