// SPDX-License-Identifier: Apache-2.0
// What a report says of its steps and windows: where they are from, and which are left out.
#pragma once

#include <vector>

#include "tools/analysis/report.h"
#include "tools/analysis/timeline.h"

namespace gpuprof::analysis {

// Of the timelines that the report is made of, once its steps are there. There is one at least
// where Report::whole_windows is set.
void add_step_findings(const std::vector<Timeline>& timelines, Report& report);

}  // namespace gpuprof::analysis
