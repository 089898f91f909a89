// SPDX-License-Identifier: Apache-2.0
// What a kernel's name tells of what it does.
#pragma once

#include <string_view>

namespace gpuprof::analysis {

// Whether it names a Tensor-core instruction, or a type that only they have.
bool uses_tensor_cores(std::string_view name);
// Whether it multiplies 32-bit numbers as the other cores do. (Of a kernel that neither is said of,
// it is not known.)
bool multiplies_without_tensor_cores(std::string_view name);

// "matrix product", "convolution", "attention", ..., "other": what libraries and frameworks call
// their kernels.
std::string_view kernel_family(std::string_view name);

}  // namespace gpuprof::analysis
