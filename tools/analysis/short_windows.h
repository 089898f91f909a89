// SPDX-License-Identifier: Apache-2.0
// Windows that a limit of the schedule ended before they had two whole steps, as a step takes
// longer than the limit allows for.
#pragma once

#include <optional>
#include <string>

#include "formats/trace/trace.h"

namespace gpuprof::analysis {

struct ShortWindow {
  std::string why;   // "max_s=2 ended the window, where a step takes 3.427 s"
  std::string what;  // "a longer window (GPUPROF_SCHEDULE=active=3,max_s=12)", to be recorded
};

// By the step log of the whole run. Nothing: no limit ended it, it has two steps or more, or steps
// are not known to take as long.
std::optional<ShortWindow> short_window(const Process& process);

}  // namespace gpuprof::analysis
