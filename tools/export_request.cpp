// SPDX-License-Identifier: Apache-2.0
#include "tools/export_request.h"

#include "tools/inputs.h"

namespace gpuprof {

void add_export_options(CLI::App& app, ExportRequest& request) {
  app.add_option("INPUT", request.inputs,
                 "dumps, what killed processes left, Kineto (torch.profiler) JSON traces, - for "
                 "standard input, or directories of them")
      ->required();
  add_job_choice(app, request.choice);
  app.add_option("--ranks", request.ranks,
                 "ranks and ranges of ranks whose rows are written, as in 0,8-15")
      ->default_str("all");
  app.add_option("--to", request.format,
                 "parquet: tables for DuckDB, Spark and others; otlp: spans and metrics for "
                 "OpenTelemetry, as lines of JSON")
      ->required()
      ->check(CLI::IsMember({"parquet", "otlp"}));
  app.add_option("-o,--output", request.output,
                 "parquet: directory of the tables; those of other runs stay in it. otlp: "
                 "directory of traces.jsonl and metrics.jsonl; with --signal also a file, or - for "
                 "standard output")
      ->required();
  app.add_option("--signal", request.signal, "otlp: what is written, traces or metrics")
      ->default_str("both")
      ->check(CLI::IsMember({"traces", "metrics"}));
  add_debug_dirs(app, request.symbols);
}

}  // namespace gpuprof
