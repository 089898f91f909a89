// SPDX-License-Identifier: Apache-2.0
// The rows of which a job has few: processes, steps, and what the report says.
#pragma once

#include <span>
#include <vector>

#include "tools/analysis/report.h"
#include "tools/parquet/event_rows.h"
#include "tools/parquet/table_file.h"

namespace gpuprof::parquet_export {

void add_processes(std::span<const Exported> sources, TableFile& file);

// Sorted by step and begin.
void add_steps(std::span<const Exported> sources, TableFile& file);

// The report of all processes of the input.
void add_report(const Trace& trace, const analysis::Report& report, TableFile& file);
void add_verdicts(const analysis::Report& report, TableFile& file);
void add_findings(const analysis::Report& report, TableFile& file);

}  // namespace gpuprof::parquet_export
