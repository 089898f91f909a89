// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

namespace gpuprof {

// Something wrong with an input, one line for the user.
struct Problem {
  std::string file;
  uint64_t offset = 0;  // bytes from the file's start
  std::string reason;
  bool sums_up = false;  // stands for all of its sort in the file: always shown

  std::string text() const;  // "FILE: offset N: REASON"
};

}  // namespace gpuprof
