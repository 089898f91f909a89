// SPDX-License-Identifier: Apache-2.0
// What a process was told to record.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "formats/core/settings.h"
#include "formats/trace/trace.h"

namespace gpuprof {

// A bit per Activity, from the settings that a dump keeps. Nothing: it keeps none, or is no dump.
std::optional<uint32_t> activities_of(const Process& process);

// Whether that is known, and `activity` is not among them.
bool is_left_out(const Process& process, Activity activity);

// What a GPU's time goes by.
inline constexpr std::array kGpuWorkActivities = {Activity::kernel, Activity::memcpy,
                                                  Activity::memset};

// Whether Header.command has the program's arguments: it is a dump's, and GPUPROF_REDACT did not
// keep them out.
bool has_arguments(const Process& process);

}  // namespace gpuprof
