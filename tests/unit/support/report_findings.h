// SPDX-License-Identifier: Apache-2.0
// What a report found, as tests ask.
#pragma once

#include <algorithm>

#include "tools/analysis/report.h"

namespace gpuprof::test {

inline bool has_finding(const analysis::Report& report, analysis::FindingKind kind) {
  return std::any_of(report.findings.begin(), report.findings.end(),
                     [kind](const analysis::Finding& finding) { return finding.kind == kind; });
}

}  // namespace gpuprof::test
