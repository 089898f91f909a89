// SPDX-License-Identifier: Apache-2.0
// The report for a terminal.
#pragma once

#include <cstddef>
#include <string>

#include "tools/analysis/report.h"

namespace gpuprof {

// `colours`: ANSI escapes for a terminal.
std::string report_text(const analysis::Report& report, bool colours);
// Its first lines: the steps and the verdict, `most` at most.
std::string verdict_text(const analysis::Report& report, bool colours, size_t most);

}  // namespace gpuprof
