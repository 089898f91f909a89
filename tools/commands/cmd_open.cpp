// SPDX-License-Identifier: Apache-2.0
// gpuprof open: the report's page in the browser, or the trace in Perfetto's.
#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "tools/command.h"
#include "tools/console.h"
#include "tools/show/page_server.h"
#include "tools/show/show_run.h"

namespace gpuprof {

int run_open(const Command& command, int count, char** arguments) {
  CLI::App app;
  std::vector<std::string> inputs;
  std::string output;
  bool perfetto = false;
  uint16_t port = kPagePort;
  app.add_option("INPUT", inputs,
                 "dumps, what killed processes left, Kineto (torch.profiler) JSON traces, - for "
                 "standard input, or directories of them")
      ->required();
  CLI::Option* const perfetto_option = app.add_flag(
      "--perfetto", perfetto,
      "the trace in ui.perfetto.dev, which fetches it once from 127.0.0.1; nothing is uploaded");
  app.add_option("-o,--output", output, "file for the page")
      ->default_str("beside the input")
      ->excludes(perfetto_option);
  app.add_option("--port", port,
                 "of 127.0.0.1, for --perfetto (whose page allows 9001 alone) and over ssh")
      ->capture_default_str()
      ->check(number_between(0, 65535, true));
  int code = kExitDone;
  if (!parse_arguments(app, command, count, arguments, code)) return code;
  if (output == "-") {
    throw Failure(
        "open: -o -: a browser opens a file; give -o its name, or pipe the page of gpuprof report "
        "--format html");
  }
  if (perfetto) {
    show_in_perfetto(inputs, port);
  } else {
    show_page(write_page(inputs, output), port);
  }
  return kExitDone;
}

}  // namespace gpuprof
