// SPDX-License-Identifier: Apache-2.0
// GPUPROF_METRICS=prometheus:DIRECTORY: a file of this process's metrics there, replaced as a whole
// every 15 s, for node exporter's textfile collector. It goes when the process ends; of a killed
// one it stays, and tells when it was written. Drain thread only.
#pragma once

#include <cstdint>

#include "collector/window/budget.h"
#include "collector/window/metrics/window_use.h"
#include "collector/window/summary.h"

namespace gpuprof {

inline constexpr uint64_t kMetricsPeriodNs = 15'000'000'000;

bool metrics_wanted();
// The session starts. A directory in which nothing can be made gets one line. Files in it of this
// user's processes that ended on this host without taking theirs along go after an hour.
void metrics_begin();
void metrics_tick(uint64_t now_ns);
// A window of the schedule has ended. `budget`: of it.
void metrics_note_window(const Window& window, const WindowTotals& totals, const LossCounts& losses,
                         DumpOutcome outcome, const Budget& budget, WindowUse& use);
// The process ends, or is about to become another program.
void metrics_end();
// It did not.
void metrics_go_on();

}  // namespace gpuprof
