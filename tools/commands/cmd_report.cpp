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
#include "tools/report/report_html.h"
#include "tools/report/report_json.h"
#include "tools/report/report_text.h"
#include "tools/symbols/symbol_options.h"

namespace gpuprof {
namespace {

std::string text_of(const analysis::Report& report, const std::string& format, bool terminal) {
  if (format == "json") return dump_json(report_json(report), 2) + "\n";
  if (format == "html") return report_html(report_json(report));
  return report_text(report, terminal);
}

}  // namespace

int run_report(const Command& command, int count, char** arguments) {
  CLI::App app;
  std::vector<std::string> inputs;
  std::string format = "text", output;
  bool tables = false;
  app.add_option("INPUT", inputs,
                 "dumps, what killed processes left, Kineto (torch.profiler) JSON traces, or "
                 "directories of "
                 "them")
      ->required();
  JobChoice choice;
  add_job_choice(app, choice);
  app.add_option("--format", format, "text, json or html")
      ->capture_default_str()
      ->check(CLI::IsMember({"text", "json", "html"}));
  app.add_flag(
      "--tables", tables,
      "the tables and curves alone, in a third of the time: no parts of steps, no verdict, "
      "no findings");
  SymbolOptions symbols;
  add_debug_dirs(app, symbols);
  app.add_option("-o,--output", output, "file to write")->default_str("standard output");
  int code = kExitDone;
  if (!parse_arguments(app, command, count, arguments, code)) return code;

  const bool terminal = output.empty() && isatty(STDOUT_FILENO) != 0;
  if (format == "html" && terminal) {
    throw Failure("--format html is a page for a browser: name a file for it with -o");
  }
  Input input = load_steps(inputs, choice);
  symbolize(input.trace, symbols);
  const analysis::Depth depth = tables ? analysis::Depth::tables : analysis::Depth::all;
  put_to(output, text_of(analysis::make_report(input.trace, depth), format, terminal),
         format == "json" ? Escaping::needed : Escaping::ready);
  return kExitDone;
}

}  // namespace gpuprof
