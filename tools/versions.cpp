// SPDX-License-Identifier: Apache-2.0
#include "tools/versions.h"

#include <fmt/format.h>

namespace gpuprof {

std::string cuda_version(uint32_t version) {
  return version == 0 ? "unknown" : fmt::format("{}.{}", version / 1000, version % 1000 / 10);
}

std::string nccl_version(uint32_t version) {
  const uint32_t major = version >= 10000 ? version / 10000 : version / 1000;
  const uint32_t minor = version >= 10000 ? version / 100 % 100 : version / 100 % 10;
  return version == 0 ? "none" : fmt::format("{}.{}.{}", major, minor, version % 100);
}

}  // namespace gpuprof
