// SPDX-License-Identifier: Apache-2.0
// Requests of `gpuprof trigger`, as files (formats/core/trigger/request.h). Drain thread only.
#pragma once

#include <cstdint>

namespace gpuprof {

// Once, when the ring exists: what the ring's header tells those who make requests.
void control_begin();
// Looks for requests when it is time to, and, where the process is armed, tells other machines its
// step (live_state.h).
void control_tick(uint64_t now_ns);
void control_end();  // removes this process's own files; any thread

}  // namespace gpuprof
