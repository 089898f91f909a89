// SPDX-License-Identifier: Apache-2.0
// What a call of CUDA's, HIP's or an XPU's runtime or driver is, by its name.
#pragma once

#include <string_view>

#include "formats/core/record.h"

namespace gpuprof::kineto {

// Agrees with preload's table of intercepted functions; Kind::call where nothing else fits.
Kind kind_of_call(std::string_view name);

}  // namespace gpuprof::kineto
