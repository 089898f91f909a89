// SPDX-License-Identifier: Apache-2.0
// gpuprof-parquet: what `gpuprof export --to parquet` starts, with the same arguments.
#include <CLI/CLI.hpp>
#include <chrono>
#include <csignal>

#include "formats/io/unfinished.h"
#include "tools/analysis/report.h"
#include "tools/command.h"
#include "tools/console.h"
#include "tools/export_request.h"
#include "tools/guarded.h"
#include "tools/inputs.h"
#include "tools/parquet/export.h"

namespace gpuprof {
namespace {

class Stopwatch {
 public:
  // Seconds since it was made, or asked before.
  double lap() {
    const auto now = std::chrono::steady_clock::now();
    const std::chrono::duration<double> out = now - last_;
    last_ = now;
    return out.count();
  }

 private:
  std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
};

void say(const parquet_export::Written& out, const std::string& folder) {
  const auto windows = [](size_t count) {
    return fmt::format("{} window{}", count, count == 1 ? "" : "s");
  };
  if (out.there > 0) {
    print_note(
        fmt::format("{} has {} already; these stay as they are", folder, windows(out.there)));
  }
  if (out.changed > 0) {
    print_warning(
        fmt::format("{} had another number of records then, as of a process that ran; to export "
                    "anew, remove the job's part= directories in {}",
                    windows(out.changed), folder));
  }
  put_line("{}: {} rows of {} in {} files, {}", folder, out.rows, windows(out.windows), out.files,
           format_bytes(out.bytes));
}

int run(int count, char** arguments) {
  constexpr Command kCommand = {"export", "export INPUT... --to parquet -o DIR",
                                "tables of runs for DuckDB, Spark and others", nullptr};
  CLI::App app;
  ExportRequest request;
  add_export_options(app, request);
  int code = kExitDone;
  if (!parse_arguments(app, kCommand, count, arguments, code)) return code;
  if (request.format != "parquet") {
    throw Failure(
        fmt::format("--to {}: gpuprof-parquet writes parquet alone; gpuprof export "
                    "--to {} writes that",
                    request.format, request.format));
  }
  std::signal(SIGPIPE, SIG_IGN);
  remove_unfinished_on_signals();

  Stopwatch watch;
  Input input = load_steps(request.inputs, request.choice);
  symbolize(input.trace, request.symbols);
  const double read = watch.lap();
  analysis::ReportParts parts;
  const analysis::Report report =
      analysis::make_report(input.trace, analysis::Depth::all, analysis::Grouping::name, &parts);
  const double analysed = watch.lap();
  const parquet_export::Written out =
      parquet_export::write_tables(input.trace, report, parts, request.ranks, request.output);
  say(out, request.output);
  put_line("read in {:.2f} s, analysed in {:.2f} s, written in {:.2f} s", read, analysed,
           watch.lap());
  return kExitDone;
}

}  // namespace
}  // namespace gpuprof

int main(int count, char** arguments) {
  return gpuprof::run_guarded([&] { return gpuprof::run(count, arguments); });
}
