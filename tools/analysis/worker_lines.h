// SPDX-License-Identifier: Apache-2.0
// Which lines the workers of data loaders spend their time in, by the host samples of their dumps
// (GPUPROF_WORKERS=1).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "formats/trace/trace.h"
#include "tools/analysis/line_times.h"

namespace gpuprof::analysis {

struct WorkerLine : CodeLine {
  double busy_us = 0;   // with this line running
  double busy_pct = 0;  // of the time in which workers made batches
};

struct WorkerLines {
  uint32_t workers = 0;  // distinct processes
  uint64_t samples = 0;
  double busy_pct = 0;            // of the samples: they made a batch; else they waited to be asked
  double cpu_pct = 0;             // CPU time of the time since they were first sampled
  std::vector<WorkerLine> lines;  // most time first
};

WorkerLines worker_lines_of(const Trace& trace);
std::string describe(const WorkerLine& line);
// "; in the workers ..." of the first line, for a sentence; empty: there is none.
std::string worker_line_text(const WorkerLines& lines);

}  // namespace gpuprof::analysis
