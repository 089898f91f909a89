// SPDX-License-Identifier: Apache-2.0
// Lines on stderr, each prefixed `gpuprof: `, written by one write(2): no stdio, no allocation.
// Information comes from one rank of each host; warnings and errors from any rank, naming it.
#pragma once

#include "formats/core/settings.h"

namespace gpuprof {

// `informs`: whether this rank is the one of its host that gives information.
void log_set(LogLevel level, int rank, bool informs);
[[gnu::format(printf, 2, 3)]] void log_line(LogLevel level, const char* format, ...);

}  // namespace gpuprof
