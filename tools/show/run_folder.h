// SPDX-License-Identifier: Apache-2.0
// Which folder of the output is that of a program that has ended. Others may record there, too.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace gpuprof {

struct EndedProgram {
  int64_t started_ns;  // no later than the program: CLOCK_REALTIME
  uint32_t pid;        // that it had
  uint32_t starter;    // the process that started it
};

struct RunFolder {
  std::string path;  // empty: none is known to be the program's
  bool sure = false;
  std::vector<std::string> others;  // if several may be the program's
};

// `named`: what GPUPROF_RUN or the job calls the run, or empty; `only_named`: it can have no other
// name. Only folders count in which a session began since the program was started. First `named`,
// then the folder that the program's own files are in, or that is named after it or its starter.
// What is left may be of a process further below: a run that nobody goes on with, and whose name
// does not say that somebody else started it. If there is one such run, it is taken.
RunFolder find_run_folder(const std::string& output, const std::string& named, bool only_named,
                          const EndedProgram& program);

// Whether a ring is there whose session began since then: its process was killed, or lives. `pid`:
// only of that one; 0: of any.
bool has_ring_since(const std::string& folder, int64_t started_ns, uint32_t pid = 0);

}  // namespace gpuprof
