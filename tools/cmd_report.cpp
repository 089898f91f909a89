// SPDX-License-Identifier: Apache-2.0
// gpuprof report: what is slow, why, and what fixing it would give.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "tools/analysis/report.h"
#include "tools/command.h"
#include "tools/console.h"
#include "tools/inputs.h"
#include "tools/report/report_json.h"
#include "tools/report/report_text.h"

namespace gpuprof {

int run_report(const Command& command, int count, char** arguments) {
  CLI::App app;
  std::vector<std::string> inputs;
  std::string format = "text", output;
  app.add_option("INPUT", inputs, "dumps, what killed processes left, or directories of them")
      ->required();
  app.add_option("--format", format, "how to say it")->check(CLI::IsMember({"text", "json"}));
  app.add_option("-o,--output", output, "file to write; standard output when not given");
  int code = kExitDone;
  if (!parse_arguments(app, command, count, arguments, code)) return code;

  const Input input = load_inputs(inputs);
  const analysis::Report report = analysis::make_report(input.trace);
  const bool terminal = output.empty() && isatty(STDOUT_FILENO) != 0;
  const std::string text =
      format == "json" ? dump_json(report_json(report), 2) + "\n" : report_text(report, terminal);
  put_to(output, text);
  return kExitDone;
}

}  // namespace gpuprof
