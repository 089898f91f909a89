// SPDX-License-Identifier: Apache-2.0
#include "tools/output_place.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

namespace gpuprof {

OutputPlace look_at_output(const std::string& path) {
  std::error_code ignored;
  std::filesystem::path folder = std::filesystem::absolute(path, ignored);
  while (folder.has_relative_path() && !std::filesystem::exists(folder, ignored)) {
    folder = folder.parent_path();
  }
  OutputPlace place{folder.string(), ""};
  if (!std::filesystem::is_directory(folder, ignored)) {
    place.reason = std::strerror(ENOTDIR);
  } else if (::access(folder.c_str(), W_OK | X_OK) != 0) {
    place.reason = std::strerror(errno);
  }
  return place;
}

}  // namespace gpuprof
