// SPDX-License-Identifier: Apache-2.0
#include "tools/symbols/symbol_options.h"

#include <string>
#include <vector>

namespace gpuprof {

void add_debug_dirs(CLI::App& app, SymbolOptions& out) {
  app.add_option_function<std::vector<std::string>>(
         "--debug-dir",
         [&out](const std::vector<std::string>& given) {
           out.debug_dirs.insert(out.debug_dirs.begin(), given.begin(), given.end());
         },
         "folder with separate debug info (DIR/.build-id/ab/cdef.debug), besides /usr/lib/debug")
      ->option_text("DIR")
      ->check(CLI::ExistingDirectory)
      ->allow_extra_args(false);
}

}  // namespace gpuprof
