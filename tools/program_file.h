// SPDX-License-Identifier: Apache-2.0
// What can be known of a program before it is started.
#pragma once

#include <string>
#include <vector>

namespace gpuprof {

// The file that running `command` would execute, looked for as execvp does; empty when there is
// none.
std::string find_program(const std::string& command);

// Why the program in `path` cannot be profiled by preloading ("it is linked statically, so ...");
// empty when nothing speaks against it. Of a script, its interpreter is looked at.
std::string why_not_preloadable(const std::string& path);

// What the program in `path` (not a script) brings of CUDA.
struct CudaUse {
  std::vector<std::string> linked;  // libcudart, libcuda, libnccl as it names them
  bool runtime_inside = false;      // a CUDA runtime linked into it
  bool own_namespaces = false;      // it calls dlmopen
};
CudaUse cuda_use_of(const std::string& path);

}  // namespace gpuprof
