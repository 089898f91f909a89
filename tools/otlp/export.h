// SPDX-License-Identifier: Apache-2.0
// Steps and figures of a run for OpenTelemetry: what `gpuprof export --to otlp` writes.
#pragma once

#include <string>

#include "formats/io/file_bytes.h"
#include "tools/analysis/report.h"

namespace gpuprof::otlp {

struct Paths {
  std::string traces, metrics;    // empty: not to be written
  std::string folder;             // of both, made where it is not there; empty: no such folder
  Links links = Links::replaced;  // of the files' names, which the user gave or the command chose
};

struct Written {
  size_t spans = 0, points = 0;  // points: of metrics
  size_t impossible = 0;         // steps with times that OTLP cannot state, which were left out
};

// `report`: of all of the input, `parts`: what it was made of. `ranks`: as is_of_ranks() takes
// them, empty: all. The files appear together, or none. Throws Failure.
Written write_files(const Trace& trace, const analysis::Report& report,
                    const analysis::ReportParts& parts, const std::string& ranks,
                    const Paths& paths);

}  // namespace gpuprof::otlp
