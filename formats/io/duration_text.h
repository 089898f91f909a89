// SPDX-License-Identifier: Apache-2.0
// Lengths of time for people.
#pragma once

#include <string>

namespace gpuprof {

// 1234567 -> "1.235 ms".
std::string format_duration(double nanoseconds);

}  // namespace gpuprof
