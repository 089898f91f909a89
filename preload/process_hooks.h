// SPDX-License-Identifier: Apache-2.0
// What we stand in front of in libc: ways a process ends or becomes another program, and getenv.
#pragma once

namespace gpuprof {

// Our function of that name; null where there is none.
void* process_hook(const char* name);

}  // namespace gpuprof
