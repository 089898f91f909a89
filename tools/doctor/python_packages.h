// SPDX-License-Identifier: Apache-2.0
// Python's packages of an interpreter, found by looking at the disk: the interpreter is not
// started.
#pragma once

#include <string>
#include <vector>

namespace gpuprof {

// The interpreter that running the program in `path` starts: itself, or a script's. Empty: it is no
// Python.
std::string python_of(const std::string& path);

// Folders of packages in the order in which `interpreter` looks through them.
std::vector<std::string> package_folders(const std::string& interpreter);

struct PackagedCupti {
  std::string file;
  std::string of;  // the package that brings it: "torch", "nvidia/cu13", "nvidia/cuda_cupti"
};
// In the order in which a program of these packages comes to them.
std::vector<PackagedCupti> packaged_cupti(const std::vector<std::string>& folders);

}  // namespace gpuprof
