// SPDX-License-Identifier: Apache-2.0
// What `gpuprof export` writes of: processes, with what the report knows of each.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "tools/analysis/report.h"

namespace gpuprof {

// A process in one window. Valid as long as the trace and the report's parts.
struct Exported {
  const Trace* trace;
  const Process* process;
  const analysis::Timeline* timeline;               // null: a worker of a data loader
  const std::vector<analysis::StepAnatomy>* steps;  // of the timeline; null where that is
  std::span<const analysis::CollectiveCall> collectives;
  int64_t id;  // process_id()
};

// Those of `ranks` (as is_of_ranks() takes them, empty: all), in the trace's order. Throws Failure
// where the input has none of them.
std::vector<Exported> exported_of(const Trace& trace, const analysis::ReportParts& parts,
                                  const std::string& ranks);

// Of a process in one window: the same whatever else is exported with it. Never negative: engines
// without unsigned numbers read it.
int64_t process_id(const Process& process);

}  // namespace gpuprof
