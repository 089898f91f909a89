// SPDX-License-Identifier: Apache-2.0
// Kineto's category of an event, which Perfetto's slices have, too.
#pragma once

#include <string_view>

#include "formats/trace/trace.h"

namespace gpuprof {

// "cuda_runtime", "kernel", ...; of an event of an outside trace without a kind of its own the one
// that it had there.
std::string_view category_of(const Trace& trace, const Shape& shape);

}  // namespace gpuprof
