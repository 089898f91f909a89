// SPDX-License-Identifier: Apache-2.0
// Look-ups over what hooks registered (collector.h): kernel names.
#pragma once

#include <string_view>

namespace gpuprof {

// Mangled kernel name of a host function pointer or cudaKernel_t; empty when unknown. It stays,
// also when its library is closed, and ends with NUL. Any thread.
std::string_view lookup_function(const void* function);

// Copies the names of kernel handles known so far into the ring. Drain thread, once.
void store_known_kernels();

}  // namespace gpuprof
