// SPDX-License-Identifier: Apache-2.0
// Windows of this number and above are early ones: recorded from the program's start, in case that
// it ends before the window of its schedule.
#pragma once

#include <cstdint>

namespace gpuprof {

inline constexpr uint32_t kFirstEarlyWindow = 1u << 30;
constexpr bool is_early_window(uint32_t number) { return number >= kFirstEarlyWindow; }
// With fewer whole steps, a window that was cut says less than an early one with more of them.
inline constexpr uint32_t kFewSteps = 3;

}  // namespace gpuprof
