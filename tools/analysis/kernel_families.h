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

enum class TensorCores { used, none, not_known };
// Not known: of products, convolutions and attention whose names do not tell (XLA's
// gemm_fusion_dot, TorchInductor's triton_tem_...).
TensorCores tensor_cores_of(std::string_view name);

// "matrix product", "convolution", "attention", ..., "other": what libraries and frameworks call
// their kernels.
std::string_view kernel_family(std::string_view name);

}  // namespace gpuprof::analysis
