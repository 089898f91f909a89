// SPDX-License-Identifier: Apache-2.0
// gpuprof export: runs for systems that keep many of them. Another program writes tables, since
// this one links nothing that big.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "tools/command.h"
#include "tools/console.h"
#include "tools/export_request.h"
#include "tools/inputs.h"
#include "tools/library_path.h"
#include "tools/otlp/export.h"
#include "tools/program_file.h"
#include "tools/standard_output.h"

namespace gpuprof {
namespace {

namespace fs = std::filesystem;

constexpr const char* kWriter = "gpuprof-parquet";

std::string find_writer() {
  std::string found = find_tool_beside(kWriter);
  if (found.empty()) found = find_program(kWriter);
  if (!found.empty()) return found;
  throw Failure(
      fmt::format("export --to parquet starts {}, which is neither beside gpuprof nor in PATH; "
                  "build it against Apache Arrow (docs/PARQUET.md)",
                  kWriter));
}

[[noreturn]] void start_writer(int count, char** arguments) {
  const std::string writer = find_writer();
  std::vector<char*> words(arguments, arguments + count);
  words.push_back(nullptr);
  flush_output();
  ::execv(writer.c_str(), words.data());
  throw Failure(fmt::format("{}: cannot be started: {}", writer, std::strerror(errno)));
}

// The one file of --signal, and whether the user gave its name.
std::pair<std::string, Links> file_of_signal(const ExportRequest& request) {
  std::error_code error;
  if (request.output == "-") {
    if (::isatty(STDOUT_FILENO) == 1) {
      throw Failure("export: standard output is a terminal: give -o a file, or pipe it");
    }
    return {"/dev/stdout", Links::followed};
  }
  if (!fs::is_directory(request.output, error)) return {request.output, Links::followed};
  return {(fs::path(request.output) / (request.signal + ".jsonl")).string(), Links::replaced};
}

// A file of OTLP has spans alone, or metrics alone.
otlp::Paths paths_of(const ExportRequest& request) {
  if (!request.signal.empty()) {
    const auto [path, links] = file_of_signal(request);
    return request.signal == "traces" ? otlp::Paths{path, "", "", links}
                                      : otlp::Paths{"", path, "", links};
  }
  std::error_code error;
  const fs::path folder = request.output;
  if (request.output == "-" || (fs::exists(folder, error) && !fs::is_directory(folder, error))) {
    throw Failure(fmt::format(
        "-o {}: a file of OTLP has traces or metrics alone; give --signal traces, --signal "
        "metrics, or a directory for both",
        request.output));
  }
  return {(folder / "traces.jsonl").string(), (folder / "metrics.jsonl").string(), request.output,
          Links::replaced};
}

void say(const otlp::Written& out, const ExportRequest& request, const otlp::Paths& paths) {
  if (out.impossible > 0) {
    print_note(
        fmt::format("left out {} step{}: OTLP has no span that begins before 1970 or ends "
                    "before it begins",
                    out.impossible, out.impossible == 1 ? "" : "s"));
  }
  if (request.output == "-") return;
  if (!paths.traces.empty()) put_line("{}: {} spans", paths.traces, out.spans);
  if (!paths.metrics.empty()) put_line("{}: {} points of metrics", paths.metrics, out.points);
}

int export_otlp(const Command& command, const ExportRequest& request) {
  const otlp::Paths paths = paths_of(request);
  Input input = load_steps(request.inputs, request.choice);
  for (const std::string& path : {paths.traces, paths.metrics}) {
    if (!path.empty()) refuse_overwriting_inputs(command.name, input, path);
  }
  analysis::ReportParts parts;
  const analysis::Report report =
      analysis::make_report(input.trace, analysis::Depth::all, analysis::Grouping::name, &parts);
  try {
    say(otlp::write_files(input.trace, report, parts, request.ranks, paths), request, paths);
  } catch (const Failure&) {
    if (request.output == "-") end_if_reader_is_gone();
    throw;
  }
  return kExitDone;
}

// What one format alone has.
void check_use(const CLI::App& app, const ExportRequest& request) {
  if (request.format != "otlp" && !request.signal.empty()) {
    throw Failure(fmt::format("--signal {}: for --to otlp; tables have all", request.signal));
  }
  if (request.format != "otlp" && request.output == "-") {
    throw Failure("-o -: tables are a directory: give -o a name for it");
  }
  if (request.format == "otlp" && app.count("--debug-dir") > 0) {
    throw Failure(fmt::format("--debug-dir {}: for --to parquet; spans and metrics have no stacks",
                              request.symbols.debug_dirs.front()));
  }
}

}  // namespace

int run_export(const Command& command, int count, char** arguments) {
  CLI::App app;
  ExportRequest request;
  add_export_options(app, request);
  int code = kExitDone;
  if (!parse_arguments(app, command, count, arguments, code)) return code;
  check_use(app, request);
  if (request.format == "otlp") return export_otlp(command, request);
  start_writer(count, arguments);
}

}  // namespace gpuprof
