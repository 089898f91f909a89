// SPDX-License-Identifier: Apache-2.0
// Figures of each process's windows, and those of the report, as metrics. docs/METRICS.md lists
// them.
#pragma once

#include <span>

#include "tools/analysis/report.h"
#include "tools/exported.h"
#include "tools/otlp/json_lines.h"

namespace gpuprof::otlp {

// `sources`: whose windows are written; `all`: what `report` is of. Returns the number of data
// points.
size_t write_metrics(std::span<const Exported> sources, std::span<const Exported> all,
                     const analysis::Report& report, LineWriter& out);

}  // namespace gpuprof::otlp
