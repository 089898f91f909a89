// SPDX-License-Identifier: Apache-2.0
// The verdict as paragraphs, before they are laid out for a terminal. Thread-safe.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "tools/analysis/report.h"

namespace gpuprof {

struct VerdictPart {
  size_t cause;  // from 1; 0: of none
  std::string text;
  size_t indent;       // columns
  std::string before;  // in front of the first line
  bool loud;           // bold on a terminal
};

// Cause by cause: its shares, evidence, advice. Without a verdict: the reason why.
std::vector<VerdictPart> verdict_parts(const analysis::Report& report);

}  // namespace gpuprof
