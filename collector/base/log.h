// SPDX-License-Identifier: Apache-2.0
// Lines on stderr, each prefixed `gpuprof: `, written by one write(2): no stdio, no allocation.
// Information comes from local rank 0 only; warnings and errors from any rank, naming it.
#pragma once

#include "formats/core/settings.h"

namespace gpuprof {

void log_set(LogLevel level, int rank, int local_rank);
[[gnu::format(printf, 2, 3)]] void log_line(LogLevel level, const char* format, ...);

}  // namespace gpuprof
