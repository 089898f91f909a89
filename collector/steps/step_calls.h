// SPDX-License-Identifier: Apache-2.0
// Which calls are marks of which step source; what follows them is in session.h and collector.h.
#pragma once

#include <cstddef>

namespace gpuprof {

// Whether the calls of a row of preload's table may be marks now. Under step_lock.
bool is_step_call(size_t api);

}  // namespace gpuprof
