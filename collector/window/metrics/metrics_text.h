// SPDX-License-Identifier: Apache-2.0
// Metrics of one process in Prometheus's text format, as node exporter's textfile collector reads
// it (https://prometheus.io/docs/instrumenting/exposition_formats/). docs/METRICS.md says what each
// is. No locale, no allocation but the buffer's own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "collector/window/losses.h"
#include "formats/core/byte_buffer.h"
#include "formats/core/shed.h"

namespace gpuprof {

// Seconds; those with `_at` since 1970.
struct Metrics {
  static constexpr size_t kQuantiles = 3;  // 0.5, 0.9, 0.99
  static constexpr size_t kMostGpus = 16;

  std::string_view run, job, version, mode, step_source;
  int64_t rank;  // -1: unknown, and left out
  uint64_t pid;
  double started_at, written_at;

  uint64_t steps;        // whole ones
  double steps_seconds;  // of all of them
  double last_step_at;   // 0: there was none
  bool quantiles_known;  // a step has ended since the last time
  double step_quantiles[kQuantiles];

  uint64_t windows_complete, windows_cut, windows_lost;
  double windows_seconds;
  uint64_t events;
  double hooks_seconds, cupti_seconds, writer_cpu_seconds;
  LossCounts losses;

  // Of the newest window. Shares are of its time, 0 to 1; what is not known is left out.
  struct Gpu {
    uint32_t index;
    double idle;
    bool communication_known;
    double exposed_communication;
  };
  bool has_window;
  double window_seconds, window_ended_at;
  double left_out[kShedKinds];  // by GPUPROF_BUDGET, by ShedKind; 0: nothing
  bool data_wait_known;
  double data_wait;
  size_t gpu_count;
  Gpu gpus[kMostGpus];
};

// Appends them all. False: there is no memory.
bool format_metrics(const Metrics& metrics, ByteBuffer& out);

}  // namespace gpuprof
