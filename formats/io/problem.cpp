// SPDX-License-Identifier: Apache-2.0
#include "formats/io/problem.h"

#include <fmt/format.h>

namespace gpuprof {

std::string Problem::text() const {
  return offset ? fmt::format("{}: offset {}: {}", file, offset, reason)
                : fmt::format("{}: {}", file, reason);
}

}  // namespace gpuprof
