// SPDX-License-Identifier: Apache-2.0
// What a fix saves beyond the time of its own cause: whose time that is, for the evidence.
#pragma once

#include <optional>

#include "tools/analysis/report.h"

namespace gpuprof::analysis {

// Adds lines to the evidence. `own`: the part that is the cause's, if it has one. `has_streams`:
// work may run beside other work. `waited_pct`: in collectives for other ranks. The slow rank
// itself does not wait, so that what ranks wait for it, as a mean, is less than what it costs.
void add_hidden(const Report& report, std::optional<Part> own, bool has_streams, double waited_pct,
                Verdict& verdict);

}  // namespace gpuprof::analysis
