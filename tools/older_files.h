// SPDX-License-Identifier: Apache-2.0
// Traces that a directory of output held before, beside which new ones were written: viewers read
// them all as one run.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <vector>

namespace gpuprof {

class OlderFiles {
 public:
  // Looks at what is in `folder` now, and below. It need not be there.
  explicit OlderFiles(const std::filesystem::path& folder) : folder_(folder), before_(look()) {}

  // Traces of then that are still there, in directories that have new ones of that format by now.
  // In order.
  std::vector<std::filesystem::path> beside_new_ones() const;

 private:
  using Files = std::map<std::filesystem::path, uint64_t>;  // inode: a new file has another
  Files look() const;

  std::filesystem::path folder_;
  Files before_;
};

}  // namespace gpuprof
