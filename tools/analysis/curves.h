// SPDX-License-Identifier: Apache-2.0
// What changes over a window: how busy the GPU is, how much work waits for it, how much memory is
// held. Thinned out to what a chart can show.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tools/analysis/timeline.h"

namespace gpuprof::analysis {

struct MemorySample {
  double time_us;  // since Curves::begin_ns
  int64_t bytes;
};

// Of the work that was issued to one stream and had not begun.
struct QueueRow {
  StreamName stream;
  uint64_t most = 0;
  double mean = 0;  // over the time of the steps
};

// One process in one window: from its first step's begin to its last one's end.
struct Curves {
  int32_t rank;
  size_t process;  // in Report::processes
  uint32_t window;
  int64_t begin_ns;  // since the Unix epoch
  size_t bins = 0;
  double bin_us = 0;                        // 0: no steps
  std::vector<double> utilization_pct;      // of each bin: some GPU of the process works
  std::vector<double> queue_length;         // of each bin: mean over all streams together
  std::vector<QueueRow> queues;             // of each stream that had work
  std::vector<MemorySample> device_memory;  // each stretch's highest level; what the driver gave
  std::vector<MemorySample> tensor_memory;  // likewise; what a framework's allocator gave out
};

// As many bins and samples as can be told apart on a screen; fewer where many ranks share it. The
// parts, empty yet, may be made side by side.
Curves empty_curves(const Timeline& timeline, size_t processes);
void add_utilization(const Timeline& timeline, Curves& curves);
void add_queues(const Timeline& timeline, Curves& curves);
void add_memory(const Timeline& timeline, Curves& curves);

}  // namespace gpuprof::analysis
