// SPDX-License-Identifier: Apache-2.0
// The report for a terminal.
#pragma once

#include <cstdint>
#include <optional>
#include <regex>
#include <string>

#include "tools/analysis/report.h"

namespace gpuprof {

// What rows of operators and layers are sorted by; all but names the greatest first.
enum class SortBy : uint8_t { gpu, gpu_self, cpu, cpu_self, count, memory, memory_self, name };

struct TextOptions {
  bool colours = false;              // ANSI escapes for a terminal
  size_t width = 80;                 // columns
  bool full_names = false;           // of kernels: as they are, on one line
  size_t top = 8;                    // rows of a table; 0: all
  std::optional<SortBy> sort;        // nothing: operators by gpu_self, layers by gpu
  std::optional<std::regex> filter;  // of names: only rows that match
  bool tables_alone = false;         // of kernels, operators, layers and memory; nothing else
};

std::string report_text(const analysis::Report& report, const TextOptions& options);
// The steps and the verdict. Of what needs more than `most` lines the first sentences are shown,
// and a last line says how many causes are left and that `more`, a command, has them.
std::string verdict_text(const analysis::Report& report, const TextOptions& options, size_t most,
                         std::string_view more);

}  // namespace gpuprof
