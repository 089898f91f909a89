// SPDX-License-Identifier: Apache-2.0
// gpuprof lib: the path for LD_PRELOAD.
#include <CLI/CLI.hpp>

#include "tools/command.h"
#include "tools/console.h"
#include "tools/library_path.h"

namespace gpuprof {

int run_lib(const Command& command, int count, char** arguments) {
  CLI::App app;
  int code = kExitDone;
  if (!parse_arguments(app, command, count, arguments, code)) return code;
  put_line("{}", find_preloadable_library());
  return kExitDone;
}

}  // namespace gpuprof
