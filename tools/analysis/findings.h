// SPDX-License-Identifier: Apache-2.0
// What is worth knowing beside the verdict.
#pragma once

#include <vector>

#include "tools/analysis/report.h"

namespace gpuprof::analysis {

std::vector<Finding> find(const Trace& trace, const Report& report);

}  // namespace gpuprof::analysis
