// SPDX-License-Identifier: Apache-2.0
// Version numbers of NVIDIA's libraries as people write them.
#pragma once

#include <cstdint>
#include <string>

namespace gpuprof {

// As cudaDriverGetVersion and cudaRuntimeGetVersion give it: 13000 is "13.0"; 0: "unknown".
std::string cuda_version(uint32_t version);

// As ncclGetVersion gives it: 22809 is "2.28.9", of before 2.9 2804 is "2.8.4"; 0: "none".
std::string nccl_version(uint32_t version);

}  // namespace gpuprof
