// SPDX-License-Identifier: Apache-2.0
// gpuprof lib: the path for LD_PRELOAD.
#include <CLI/CLI.hpp>
#include <string>

#include "tools/command.h"
#include "tools/console.h"
#include "tools/describe.h"
#include "tools/library_path.h"

namespace gpuprof {

int run_lib(const Command& command, int count, char** arguments) {
  CLI::App app;
  std::string format = "text";
  app.add_option("--format", format, "text or json")
      ->capture_default_str()
      ->check(one_of({"text", "json"}));
  int code = kExitDone;
  if (!parse_arguments(app, command, count, arguments, code)) return code;
  const std::string path = find_preloadable_library();
  if (format == "json") {
    put(dump_json({{"schema", 1}, {"library", find_library()}, {"preload", path}}, 2) + "\n");
  } else {
    put_line("{}", path);
  }
  return kExitDone;
}

}  // namespace gpuprof
