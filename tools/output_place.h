// SPDX-License-Identifier: Apache-2.0
// Whether dumps can be written where they are to go.
#pragma once

#include <string>

namespace gpuprof {

struct OutputPlace {
  std::string folder;  // the one of `path` that is there
  std::string reason;  // why nothing can be made in it; empty: it can
};

OutputPlace look_at_output(const std::string& path);

}  // namespace gpuprof
