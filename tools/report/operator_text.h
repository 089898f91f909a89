// SPDX-License-Identifier: Apache-2.0
// Tables of operators, layers and memory for a terminal.
#pragma once

#include <string>

#include "tools/report/report_text.h"

namespace gpuprof {

// Each with its title; "": there is nothing to list. Rows that do not match `options.filter` are
// left out, and said to be.
std::string operator_text(const analysis::Report& report, const TextOptions& options);
// What was not recorded, and what records it, if no operator has what Report::grouping tells them
// apart by; else empty.
std::string why_not_grouped(const analysis::Report& report);
// As a tree, by the paths of modules.
std::string layer_text(const analysis::Report& report, const TextOptions& options);
std::string memory_text(const analysis::Report& report, const TextOptions& options);

}  // namespace gpuprof
