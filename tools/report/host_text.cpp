// SPDX-License-Identifier: Apache-2.0
#include "tools/report/host_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "formats/trace/heap.h"
#include "tools/report/text_table.h"

namespace gpuprof {

using namespace analysis;

namespace {

std::string line_text(const CodeLine& row) {
  return row.place() + (row.within.empty() ? "" : fmt::format(" (in {})", row.within));
}

// Estimates may fall below 0 by what was rounded.
std::string bytes_text(double bytes) {
  return format_bytes(static_cast<uint64_t>(std::max(int64_t{0}, whole_number(bytes))));
}

}  // namespace

void add_thread_states(TextLines& out, const Report& report) {
  ThreadStates mean;
  double threads = 0;
  for (const ThreadStates& row : report.thread_states) {
    if (!row.steps) continue;
    ++threads;
    mean.running_pct += row.running_pct;
    mean.waiting_pct += row.waiting_pct;
    mean.asleep_pct += row.asleep_pct;
    mean.covered_pct += row.covered_pct;
  }
  if (threads == 0) return;
  out.line("");
  std::string text = fmt::format(
      "The thread that steps run on: running {:.1f} %, waiting for a processor {:.1f} %, asleep "
      "{:.1f} %",
      mean.running_pct / threads, mean.waiting_pct / threads, mean.asleep_pct / threads);
  if (mean.covered_pct / threads < 99.5) {
    text += fmt::format(" of {:.1f} % of the steps' time, from the first look at it to the last",
                        mean.covered_pct / threads);
  }
  out.paragraph(text, 0);
}

void add_places(TextLines& out, const Report& report, const TextOptions& options) {
  const std::vector<PlaceRow>& all = report.operators.places;
  if (all.empty()) return;
  out.title("Lines of code that wait, allocate, copy or load data" +
            not_whole_text(report.left_out, ShedKind::stacks));
  TextTable rows({a_unit(report), "each", "what for", "line"}, options.width);
  for (size_t i = 0; i < std::min<size_t>(5, all.size()); ++i) {
    rows.row({count_per_unit(report, all[i].count), time_each(all[i].total_us, all[i].count),
              all[i].kind, all[i].place});
  }
  out.add(rows.text());
}

void add_python_lines(TextLines& out, const Report& report, const TextOptions& options) {
  const HostSamples& samples = report.host_samples;
  if (samples.lines.empty()) return;
  const double covered = 100 * report.sampled_share();
  out.title((report.gpu_timed ? "Code that ran while the GPU was idle"
                              : "Code that ran; when the GPU was idle is not known") +
            (covered < 90 ? fmt::format("; samples cover {:.0f} % of that time", covered) : "") +
            few_samples(samples.idle_samples) + not_whole_text(report.left_out, ShedKind::samples));
  TextTable rows({"share", a_unit(report), "line"}, options.width);
  for (size_t i = 0; i < std::min<size_t>(5, samples.lines.size()); ++i) {
    const HostLine& row = samples.lines[i];
    rows.row({fmt::format("{:.1f}%", 100 * row.idle_us / samples.idle_us),
              format_us(report.per_unit(row.idle_us)), line_text(row)});
  }
  out.add(rows.text());
}

void add_worker_lines(TextLines& out, const Report& report, const TextOptions& options) {
  const WorkerLines& workers = report.worker_lines;
  if (workers.workers == 0) return;
  out.title("Where data loader workers spend their time");
  out.line("  {} worker{}: make batches {:.0f} % of the time, on a CPU {:.0f} %", workers.workers,
           workers.workers == 1 ? "" : "s", workers.busy_pct, workers.cpu_pct);
  TextTable rows({"share", "line"}, options.width);
  for (size_t i = 0; i < std::min<size_t>(5, workers.lines.size()); ++i) {
    const WorkerLine& row = workers.lines[i];
    rows.row({fmt::format("{:.1f}%", row.busy_pct), line_text(row)});
  }
  if (!rows.empty()) out.add(rows.text());
}

void add_host_memory(TextLines& out, const Report& report, const TextOptions& options) {
  const HostMemory& memory = report.host_memory;
  if (memory.rows.empty()) return;
  out.title(fmt::format("Host memory allocated, by {} samples", memory.samples));
  TextTable rows({a_unit(report), "calls " + a_unit(report), "held", "by"}, options.width);
  for (size_t i = 0; i < std::min<size_t>(5, memory.rows.size()); ++i) {
    const HostMemoryRow& row = memory.rows[i];
    rows.row({bytes_text(report.per_unit(row.bytes)),
              fmt::format("{:.1f}", report.per_unit(row.count)), bytes_text(row.held_bytes),
              row.place});
  }
  out.add(rows.text());
}

}  // namespace gpuprof
