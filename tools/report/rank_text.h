// SPDX-License-Identifier: Apache-2.0
// What a report for a terminal tells of several ranks: collectives, the ranks' speeds, pipelines.
// Each adds a title and its rows, or nothing where there is nothing to list.
#pragma once

#include "tools/report/text_lines.h"

namespace gpuprof {

// By what each rank recorded of its own calls, and who is in the groups.
void add_collectives(TextLines& out, const analysis::Report& report, const TextOptions& options);
// Of each call, and of each rank the mean.
void add_collective_times(TextLines& out, const analysis::Report& report,
                          const TextOptions& options);
void add_rank_speeds(TextLines& out, const analysis::Report& report);
void add_pipeline(TextLines& out, const analysis::Report& report);

}  // namespace gpuprof
