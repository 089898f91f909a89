// SPDX-License-Identifier: Apache-2.0
#include "tools/otlp/export.h"

#include <algorithm>
#include <vector>

#include "formats/io/file_bytes.h"
#include "formats/io/output_folder.h"
#include "formats/io/unfinished.h"
#include "tools/console.h"
#include "tools/exported.h"
#include "tools/otlp/metrics.h"
#include "tools/otlp/spans.h"

namespace gpuprof::otlp {
namespace {

int64_t begin_of(const Trace& trace) {
  int64_t begin = INT64_MAX;
  for (const Process& process : trace.processes) begin = std::min(begin, process.window_begin);
  return begin;
}

template <typename Write>
void write_file(const std::string& path, Links links, const char* kind, const Write& write) {
  if (path.empty()) return;
  OutputFile file(path, Compression::none, links);
  LineWriter lines(file, kind);
  write(lines);
  if (!file.commit()) throw Failure(file.error());
}

}  // namespace

Written write_files(const Trace& trace, const analysis::Report& report,
                    const analysis::ReportParts& parts, const std::string& ranks,
                    const Paths& paths) {
  const std::vector<Exported> sources = exported_of(trace, parts, ranks);
  Written out;
  std::string error;
  WholeOutput whole;
  if (!paths.folder.empty() && !make_folder(paths.folder, error)) throw Failure(error);
  write_file(paths.traces, paths.links, "Spans", [&](LineWriter& lines) {
    const SpanCount count = write_spans(sources, begin_of(trace), lines);
    out.spans = count.spans, out.impossible = count.impossible;
  });
  write_file(paths.metrics, paths.links, "Metrics", [&](LineWriter& lines) {
    out.points = write_metrics(sources, exported_of(trace, parts, ""), report, lines);
  });
  if (!whole.keep(error)) throw Failure(error);
  return out;
}

}  // namespace gpuprof::otlp
