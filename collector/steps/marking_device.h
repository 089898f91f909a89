// SPDX-License-Identifier: Apache-2.0
// The GPU that is current on the calling thread, as CUDA's driver says.
#pragma once

#include <cstdint>

namespace gpuprof {

// kUnknownDevice where the process has no driver or the thread no context. Any thread, in a
// BlockedScope.
int32_t marking_device();

}  // namespace gpuprof
