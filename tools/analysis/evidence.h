// SPDX-License-Identifier: Apache-2.0
// What lets a reader check a cause of the verdict, and how busy the machine was beside the program.
#pragma once

#include "tools/analysis/report.h"

namespace gpuprof::analysis {

// Whether threads waited so long for a processor that pauses of the program tell nothing.
bool machine_was_busy(const Report& report);
// What was left out for that.
std::string pauses_text(const Report& report);

// "the machine was busy: ...", where it is known for how long threads had no processor.
std::string machine_busy_text(const Report& report);

// "of that time"; where host samples cover less than nearly all of it, how much they cover.
std::string of_that_time(double sampled_share);

// Lines that let a reader check a cause in the trace: which steps, calls, kernels, ranks.
void add_evidence(const Report& report, Verdict& verdict);

}  // namespace gpuprof::analysis
