// SPDX-License-Identifier: Apache-2.0
#include "tools/analysis/tensor_types.h"

#include <algorithm>
#include <iterator>
#include <string_view>

#include "tools/analysis/flops.h"

namespace gpuprof::analysis {

// Devices of compute capability 7.5 with a TU116 or TU117, which have no Tensor cores.
static bool is_small_turing(std::string_view name) {
  static constexpr std::string_view kParts[] = {"GTX 16", "MX450", "MX550", "T400",  "T500",
                                                "T550",   "T600",  "T1000", "T1200", "T2000"};
  return std::any_of(std::begin(kParts), std::end(kParts),
                     [&](std::string_view part) { return name.find(part) != name.npos; });
}

// From NVIDIA's CUDA C++ Programming Guide, "Compute Capabilities": Tensor cores from 7.0 on, bf16
// and TF32 from 8.0 on.
TensorTypes tensor_types(const dump::Device& device) {
  const std::string_view name = device.name();
  if (device.compute_major() >= 8) return TensorTypes::tf32;
  if (device.compute_major() == 7) {
    return is_small_turing(name) ? TensorTypes::none : TensorTypes::fp16;
  }
  if (device.compute_major() > 0) return TensorTypes::none;
  const double fp32 = peak_flops(name, Precision::fp32);
  if (fp32 <= 0) return TensorTypes::not_known;
  return peak_flops(name, Precision::tf32) > fp32 ? TensorTypes::tf32 : TensorTypes::fp16;
}

}  // namespace gpuprof::analysis
