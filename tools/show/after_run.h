// SPDX-License-Identifier: Apache-2.0
// What `gpuprof run` says and shows when its program has ended.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tools/child.h"

namespace gpuprof {

struct ProgramRun {
  std::vector<std::string> environment;  // NAME=VALUE, of the program
  bool preloadable;                      // false: a line has said why it is not
  int64_t started_ns;                    // no later than the program: CLOCK_REALTIME
  ChildEnd end;
};

// A line if the program was killed or ended by a bare system call, then the report in `format`
// (show_run.h; empty: none), then the page in the browser if `open`. Where nothing was recorded a
// line says so, and why as far as it is known. Does not throw: how the program ended stays what
// counts.
void after_run(const ProgramRun& run, const std::string& format, bool open);

}  // namespace gpuprof
