// SPDX-License-Identifier: Apache-2.0
// Processes with several copies of one of NVIDIA's libraries: a CUDA runtime for each of two
// versions, an NCCL that a wheel brings under a name of its own. What is linked to a copy is bound
// to it by version, or by the order of its own dependencies; interposed, all calls would reach one.
// So objects that are linked to another copy than hooks call are led past the hooks, to their own:
// they work as without this library, and CUPTI still tells of their calls and kernels. Only where
// has_libc().
#pragma once

#include "preload/api.h"

namespace gpuprof {

// What the object at `inside` (the address of a function or a datum of its) is to call instead of
// `name`; null: what hooks call. Leads the object past the hooks of that library. Any thread, also
// within constructors.
void* own_copys_function(Library library, const void* inside, const char* name);

// The same for all objects that were loaded since the last time: whenever a hook finds its
// function, and, once one has, before a library is opened.
void lead_copies_apart();
void lead_copies_apart_before_opening();

}  // namespace gpuprof
