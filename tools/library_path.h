// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace gpuprof {

// Absolute path of libgpuprof.so: beside this executable, where a build leaves it, or where it is
// installed. Throws Failure when it is in none of them.
std::string find_library();

// As find_library(), in a form that LD_PRELOAD can name. A blank or a colon would end the name
// there. Then it is the path of a symbolic link to the library, in this user's directory below /tmp
// or the like, made if missing. Throws Failure.
std::string find_preloadable_library();

// Whether a path leads to that very library.
bool is_our_library(const std::string& path);

// Absolute path of another program of ours in the same places; empty: it is in none of them.
std::string find_tool_beside(const char* name);

// Absolute path of gpuprof-probe, which looks at CUDA's libraries for `doctor`; in the same places.
// Throws Failure.
std::string find_probe();

}  // namespace gpuprof
