// SPDX-License-Identifier: Apache-2.0
#include "tools/library_path.h"

#include <unistd.h>

#include <filesystem>

#include "tools/console.h"

namespace gpuprof {

std::string find_library() {
  namespace fs = std::filesystem;
  std::error_code error;
  const fs::path folder = fs::read_symlink("/proc/self/exe", error).parent_path();
  for (const char* place : {".", "../preload", "../lib/gpuprof", "../lib"}) {
    const fs::path found = fs::canonical(folder / place / "libgpuprof.so", error);
    if (!error && access(found.c_str(), R_OK) == 0) return found.string();
  }
  throw Failure(
      fmt::format("libgpuprof.so is not in {}, nor in ../preload, ../lib/gpuprof or ../lib "
                  "from there; build or install it",
                  folder.string()));
}

}  // namespace gpuprof
