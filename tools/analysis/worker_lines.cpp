// SPDX-License-Identifier: Apache-2.0
#include "tools/analysis/worker_lines.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <tuple>
#include <utility>

#include "tools/analysis/code_place.h"

namespace gpuprof::analysis {
namespace {

// PyTorch's loop of a worker, and what makes a batch in it.
constexpr std::string_view kLoopFile = "torch/utils/data/_utils/worker.py";
constexpr std::string_view kFetchFile = "torch/utils/data/_utils/fetch.py";

class WorkerSums {
 public:
  void add(const Process& process) {
    const dump::Header& header = process.header;
    workers_.emplace(header.host(), header.pid(), header.os_start_time());
    const double each_us = static_cast<double>(process.sample_period) / 1000;
    for (const HostSample& sample : process.samples) {
      ++out_.samples;
      all_us_ += each_us;
      add_stack(process.stacks, sample.stack, each_us);
    }
    if (process.samples.empty()) return;
    const int64_t begin = std::max(process.window_begin, process.samples.front().time);
    lived_ns_ += static_cast<double>(std::max<int64_t>(0, process.window_end - begin));
    cpu_ns_ += static_cast<double>(process.summary.process_cpu_ns());
  }

  WorkerLines take() {
    out_.workers = static_cast<uint32_t>(workers_.size());
    if (all_us_ > 0) out_.busy_pct = 100 * busy_us_ / all_us_;
    if (lived_ns_ > 0) out_.cpu_pct = 100 * cpu_ns_ / lived_ns_;
    out_.lines = sums_.take();
    for (WorkerLine& line : out_.lines) line.busy_pct = 100 * line.busy_us / busy_us_;
    return std::move(out_);
  }

 private:
  // What lies outwards of the worker's loop is how it was started: in a forked one the script's
  // lines, too. Within, it waits for an index or hands a batch over, but for what makes a batch and
  // the program's own code.
  void add_stack(const StackTable& stacks, StackIndex stack, double us) {
    const Frame *innermost = nullptr, *own = nullptr;
    std::vector<std::string> within;
    bool fetches = false, loops = false;
    for (const uint64_t address : stacks[stack]) {
      for (const Frame& frame : stacks.frames(address)) {
        if (!frame.python || loops) continue;
        loops = frame.file.ends_with(kLoopFile);
        fetches = fetches || frame.file.ends_with(kFetchFile);
        if (!innermost) innermost = &frame;
        if (own) continue;
        if (!loops && !frame.file.ends_with(kFetchFile) && !is_library_file(frame.file)) {
          own = &frame;
        } else {
          within.push_back(frame.function);
        }
      }
    }
    if (!loops || (!own && !fetches)) return;
    if (!own) {
      own = innermost;
      within.clear();
    }
    CodeLine line;
    line.file = own->file;
    line.function = own->function;
    line.line = own->line;
    sums_.add(line, within, us);
    busy_us_ += us;
  }

  WorkerLines out_;
  std::set<std::tuple<std::string, uint32_t, uint64_t>> workers_;
  LineTimes<WorkerLine, &WorkerLine::busy_us> sums_;
  double all_us_ = 0, busy_us_ = 0, lived_ns_ = 0, cpu_ns_ = 0;
};

}  // namespace

WorkerLines worker_lines_of(const Trace& trace) {
  WorkerSums sums;
  for (const Process& process : trace.processes) {
    if (process.is_data_worker()) sums.add(process);
  }
  return sums.take();
}

std::string describe(const WorkerLine& line) {
  return fmt::format("Python line {} ran in {:.0f} % of the time in which they made batches{}",
                     line.place(), line.busy_pct,
                     line.within.empty() ? std::string() : fmt::format(", in {}", line.within));
}

std::string worker_line_text(const WorkerLines& lines) {
  return lines.lines.empty() ? std::string() : "; in the workers " + describe(lines.lines.front());
}

}  // namespace gpuprof::analysis
