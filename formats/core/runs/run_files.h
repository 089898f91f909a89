// SPDX-License-Identifier: Apache-2.0
// The names of a run's folder, and of the files in it: <host>_r<rank>_<pid>_<begun> and a suffix.
#pragma once

#include <cstddef>
#include <cstdint>
#include <ctime>
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

// Whether it is the name that `report`, `open` or `convert` give by themselves to a file which they
// make of a run, or of a dump of it. Others may give such names, too.
bool is_made_of_run(std::string_view name);

// A run that neither GPUPROF_RUN nor a job names is called <UTC start>-<pid> of the process that
// started its own.
inline constexpr size_t kUtcStartBytes = 17;  // 20260131T235959Z, and a null
void format_utc_start(time_t started, char (&out)[kUtcStartBytes]);
void format_started_run(time_t started, uint32_t parent, char* out, size_t size);
// That process; 0: the folder is called otherwise.
uint32_t parent_of_started_run(std::string_view folder);

// Any other name, as a folder may be called.
void make_folder_name(char* name);

}  // namespace gpuprof
