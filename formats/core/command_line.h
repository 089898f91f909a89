// SPDX-License-Identifier: Apache-2.0
// GPUPROF_ON_TRACE_READY: words between blanks, '...' and "..." keep blanks in a word, and nothing
// else is special; `{}` anywhere in a word stands for the dump's path. No shell sees it.
#pragma once

#include <cstddef>
#include <string_view>

namespace gpuprof {

inline constexpr size_t kMostWords = 64;

struct CommandLine {
  char* words[kMostWords + 1];  // into `memory`; the last is null
  size_t count;
  char memory[8192];
};

// False: `problem` says why, after the setting's name and value.
bool split_command(std::string_view text, std::string_view path, CommandLine& out,
                   const char** problem);

}  // namespace gpuprof
