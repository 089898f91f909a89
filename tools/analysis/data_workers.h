// SPDX-License-Identifier: Apache-2.0
// Why the training thread waited for its data loader: what the loader's workers did meanwhile.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "tools/analysis/timeline.h"
#include "tools/analysis/worker_lines.h"

namespace gpuprof::analysis {

enum class LoadingLimit : uint8_t {
  no_workers,   // the training thread loads itself
  starting,     // most of the time is that for the first batch of new workers
  disk,         // workers wait for it, longer than they compute or could
  cpu,          // workers compute, and have no CPU left to do more
  few_workers,  // workers compute, but there are CPUs for more of them
  elsewhere,    // workers mostly sleep: a network, a lock, a time, or nobody asks them
  hand_over,    // by their own samples: nobody asks them, or they hand batches over
};
std::string_view limit_name(LoadingLimit limit);

// Of the process that waited longest.
struct DataLoading {
  uint32_t workers = 0;      // that lived while it waited
  uint32_t usable_cpus = 0;  // by the process's affinity and its control group; 0: not known
  double steps_us = 0, waited_us = 0;
  double starting_us = 0;  // of waited_us: waits for the first batch after a worker was born
  // Of the time in which workers lived while the thread waited; for the rest of it they slept.
  // `queued`: they could have run, but had no CPU.
  double on_cpu_pct = 0, queued_pct = 0, disk_pct = 0;
  double read_mb = 0;  // from disk, in that time
  LoadingLimit limit = LoadingLimit::elsewhere;
};

// By all but `limit`. Never hand_over, which their own samples tell.
LoadingLimit limit_of(const DataLoading& loading);

// Nothing: no thread waited for a data loader, or the trace does not say what workers did.
std::optional<DataLoading> data_loading_of(std::span<const Timeline> timelines,
                                           const WorkerLines& lines);

// One line each, for people.
std::string describe(const DataLoading& loading);
std::string advice_for(const DataLoading& loading);

}  // namespace gpuprof::analysis
