// SPDX-License-Identifier: Apache-2.0
// The report for a terminal of 80 columns.
#pragma once

#include <string>

#include "tools/analysis/report.h"

namespace gpuprof {

// `colours`: ANSI escapes for a terminal.
std::string report_text(const analysis::Report& report, bool colours);

}  // namespace gpuprof
