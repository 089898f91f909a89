// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace gpuprof {

// Absolute path of libgpuprof.so: beside this executable, where a build leaves it, or where it is
// installed. Throws Failure when it is in none of them.
std::string find_library();

}  // namespace gpuprof
