// SPDX-License-Identifier: Apache-2.0
// Whether a thread stands still in dlopen or dlsym, since another one holds the loader's lock: that
// runs constructors of a library which it opens, and may wait for the first.
#pragma once

#include <cstdint>

namespace gpuprof {

// Of a thread of this process. False also where the kernel does not tell.
bool waits_for_loader(uint32_t thread);

}  // namespace gpuprof
