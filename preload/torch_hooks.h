// SPDX-License-Identifier: Apache-2.0
// What libraries are to call instead of PyTorch's functions by which its allocators tell a profiler
// of each block, where this library was not preloaded (got_patch.h).
#pragma once

namespace gpuprof {

// By the mangled name; null: none of them. `real`: libc10's own, null where there is no libc10.so.
void* torch_hook(const char* name, void*& real);

}  // namespace gpuprof
