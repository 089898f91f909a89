// SPDX-License-Identifier: Apache-2.0
// The files of a run's folder, known by their names: <host>_r<rank>_<pid>_<begun> and a suffix.
#pragma once

#include <cstdint>
#include <string_view>

namespace gpuprof {

enum class RunFileKind : uint8_t {
  dump,     // of a window; complete, ".part" or ".new"
  ring,     // or a link to one in another directory
  control,  // what `gpuprof trigger` asks for, and what an armed process answers
};

struct RunFile {
  RunFileKind kind;
  uint32_t pid;       // of the process that wrote it; 0: it is of the whole run
  uint64_t begun_ns;  // when its session began: CLOCK_REALTIME
};

// False: no name that gpuprof gives to a file.
bool parse_run_file(std::string_view name, RunFile& file);

}  // namespace gpuprof
