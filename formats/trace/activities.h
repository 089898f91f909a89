// SPDX-License-Identifier: Apache-2.0
// What a process was told to record.
#pragma once

#include <cstdint>
#include <optional>

#include "formats/core/settings.h"
#include "formats/trace/trace.h"

namespace gpuprof {

// A bit per Activity, from the settings that a dump keeps. Nothing: it keeps none, or is no dump.
std::optional<uint32_t> activities_of(const Process& process);

// Whether that is known, and `activity` is not among them.
bool is_left_out(const Process& process, Activity activity);

}  // namespace gpuprof
