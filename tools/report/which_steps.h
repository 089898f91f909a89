// SPDX-License-Identifier: Apache-2.0
// Which steps a report is of, for its heading. Thread-safe.
#pragma once

#include <cstdint>
#include <set>
#include <string>

namespace gpuprof {

// "step 4", "steps 0 to 9", "6 of the steps 0 to 9"; of no number: "no steps".
std::string which_steps(const std::set<uint64_t>& numbers);

// Behind them, where nobody is to take them for iterations.
inline constexpr const char* kClockSteps = " (stretches of wall time, not iterations)";

}  // namespace gpuprof
