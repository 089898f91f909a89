// SPDX-License-Identifier: Apache-2.0
// What a report for a terminal tells of the host: threads, lines of code, workers that load data,
// memory. Each adds a title and its rows, or nothing where there is nothing to list.
#pragma once

#include "tools/report/text_lines.h"

namespace gpuprof {

// Of the threads that steps run on, the mean over ranks.
void add_thread_states(TextLines& out, const analysis::Report& report);
void add_places(TextLines& out, const analysis::Report& report, const TextOptions& options);
void add_python_lines(TextLines& out, const analysis::Report& report, const TextOptions& options);
void add_worker_lines(TextLines& out, const analysis::Report& report, const TextOptions& options);
void add_host_memory(TextLines& out, const analysis::Report& report, const TextOptions& options);

}  // namespace gpuprof
