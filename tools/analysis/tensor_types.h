// SPDX-License-Identifier: Apache-2.0
// Which types a device's Tensor cores multiply, by its compute capability or its name.
#pragma once

#include <cstdint>

#include "formats/trace/trace.h"

namespace gpuprof::analysis {

// In order: the least of several devices is what all of them can.
enum class TensorTypes : uint8_t {
  none,       // it has no Tensor cores
  not_known,  // neither capability nor name tells
  fp16,       // no TF32 and no bf16: compute capability 7
  tf32,       // and bf16, fp16: from compute capability 8.0 on
};

TensorTypes tensor_types(const dump::Device& device);

}  // namespace gpuprof::analysis
