// SPDX-License-Identifier: Apache-2.0
#include "tools/analysis/data_workers.h"

#include <fmt/format.h>

#include <algorithm>

#include "tools/analysis/intervals.h"
#include "tools/console.h"

namespace gpuprof::analysis {
namespace {

struct LimitText {
  std::string_view name, what, advice;
};
constexpr LimitText kLimits[] = {
    {"no_workers", "the training thread loads them itself (num_workers=0)",
     "Give the DataLoader workers ({workers}, pin_memory=True), so that batches are made "
     "while the GPU works."},
    {"starting", "most of it for the first batch of workers that have just started",
     "Keep the workers from epoch to epoch (persistent_workers=True), and make their start cheap: "
     "large objects in the dataset and imports are paid for by each of them."},
    {"disk", "the workers wait for the disk",
     "The disk is the limit: put the data on a faster one or into memory, store samples in few "
     "large files (shards) instead of many small ones, or read them compressed. More workers help "
     "only as far as the disk takes more requests at once."},
    {"cpu", "the workers compute, and have no CPU for more",
     "The CPUs are the limit: make the preparation of a sample cheaper (decode once and store, "
     "smaller images, transforms on the GPU), or give the job more CPUs. More workers do not "
     "help."},
    {"few_workers", "the workers compute, and there are CPUs for more of them",
     "Give the DataLoader more workers ({workers}), pinned memory and prefetching "
     "(prefetch_factor)."},
    {"elsewhere", "the workers mostly sleep; what for is not recorded",
     "The workers mostly sleep. Record them too (GPUPROF_WORKERS=1): their lines tell whether they "
     "wait within the data set's code, or for the training thread to take a batch."},
    {"hand_over", "the workers wait to be asked, or hand batches over",
     "The workers spend little time on making batches, so more of them do not help: the cost is in "
     "handing batches over. For data in memory try fewer workers or none, larger pieces of it at a "
     "time (a batch sampler, slices of a tensor), or keep the data on the GPU."},
};
const LimitText& text_of(LoadingLimit limit) { return kLimits[static_cast<size_t>(limit)]; }

// What may be asked for: no more workers than CPUs, one of which the training thread has.
std::string workers_text(const DataLoading& loading) {
  constexpr uint32_t kUsual = 4;
  if (loading.usable_cpus == 0) return "num_workers, fewer than the CPUs that this process may use";
  const uint32_t free = std::max(1U, loading.usable_cpus - 1);
  const std::string cpus = fmt::format("this process may use {} CPU{}", loading.usable_cpus,
                                       loading.usable_cpus == 1 ? "" : "s");
  if (loading.workers == 0) return fmt::format("num_workers={}; {}", std::min(kUsual, free), cpus);
  return fmt::format("num_workers, up to {}; {}", std::max(free, loading.workers + 1), cpus);
}

// Half of workers' time is enough to be what they mostly do.
constexpr double kMostly = 50;
// Of the time that their own samples cover: less is not what a step waits for.
constexpr double kHardlyBusyPct = 25;

bool loads_by_itself(const Trace& trace) {
  return std::any_of(trace.shapes.begin(), trace.shapes.end(), [&](const Shape& shape) {
    return trace.text(shape.label).find("_SingleProcessDataLoaderIter") != std::string_view::npos;
  });
}

// The share of [begin, end) that lies in `waits`.
double overlap(const Intervals& waits, int64_t begin, int64_t end) {
  if (end <= begin) return 0;
  return static_cast<double>(total(intersect(waits, {{begin, end}}))) /
         static_cast<double>(end - begin);
}

class Loader {
 public:
  Loader(const Timeline& timeline, const Intervals& waits)
      : process_(*timeline.process), waits_(waits) {}

  DataLoading weigh() {
    DataLoading out;
    out.waited_us = static_cast<double>(total(waits_)) / 1e3;
    out.usable_cpus = process_.usable_cpus;
    for (const Worker& worker : process_.workers) add(worker, out);
    out.starting_us = starting_ns() / 1e3;
    if (lived_ > 0) {
      out.on_cpu_pct = 100 * on_cpu_ / lived_;
      out.queued_pct = 100 * queued_ / lived_;
      out.disk_pct = 100 * disk_ / lived_;
    }
    return out;
  }

 private:
  void add(const Worker& worker, DataLoading& out) {
    const double before = lived_;
    for (size_t i = 1; i < worker.samples.size(); ++i) {
      const Worker::Sample &from = worker.samples[i - 1], &to = worker.samples[i];
      const double share = overlap(waits_, from.time, to.time);
      if (share == 0 || to.cpu_ns < from.cpu_ns || to.queue_ns < from.queue_ns) continue;
      const auto length = static_cast<double>(to.time - from.time);
      const double on_cpu = std::min(length, static_cast<double>(to.cpu_ns - from.cpu_ns));
      const double queued =
          std::min(length - on_cpu, static_cast<double>(to.queue_ns - from.queue_ns));
      const int of_disk = (from.state == 'D') + (to.state == 'D');
      lived_ += share * length;
      on_cpu_ += share * on_cpu;
      queued_ += share * queued;
      disk_ += share * (length - on_cpu - queued) * of_disk / 2;
      out.read_mb +=
          share * (static_cast<double>(to.read_bytes) - static_cast<double>(from.read_bytes)) / 1e6;
    }
    out.workers += lived_ > before;
  }

  // The first wait that ends after a worker was born is for its first batch, or another new one's.
  double starting_ns() const {
    Intervals first;
    for (const Worker& worker : process_.workers) {
      const auto wait = std::find_if(waits_.begin(), waits_.end(),
                                     [&](const Interval& each) { return each.end > worker.born; });
      if (wait != waits_.end() && wait->begin - worker.born < kStartNs) first.push_back(*wait);
    }
    return static_cast<double>(total(cover(std::move(first))));
  }

  static constexpr int64_t kStartNs = 60'000'000'000;  // later it was not waited for

  const Process& process_;
  const Intervals& waits_;
  double lived_ = 0, on_cpu_ = 0, queued_ = 0, disk_ = 0;
};

}  // namespace

LoadingLimit limit_of(const DataLoading& loading) {
  if (loading.workers == 0) return LoadingLimit::no_workers;
  if (100 * loading.starting_us > kMostly * loading.waited_us) return LoadingLimit::starting;
  const double computing = loading.on_cpu_pct + loading.queued_pct;
  if (computing + loading.disk_pct < 100 - kMostly) return LoadingLimit::elsewhere;
  const double slept = 100 - computing - loading.disk_pct;
  if (loading.disk_pct > computing && loading.disk_pct > slept) return LoadingLimit::disk;
  const bool full = loading.usable_cpus && loading.workers >= loading.usable_cpus;
  return full || loading.queued_pct > loading.on_cpu_pct ? LoadingLimit::cpu
                                                         : LoadingLimit::few_workers;
}

std::string_view limit_name(LoadingLimit limit) { return text_of(limit).name; }
std::string advice_for(const DataLoading& loading) {
  constexpr std::string_view kPlace = "{workers}";
  std::string text(text_of(loading.limit).advice);
  const size_t at = text.find(kPlace);
  return at == std::string::npos ? text : text.replace(at, kPlace.size(), workers_text(loading));
}

std::optional<DataLoading> data_loading_of(std::span<const Timeline> timelines,
                                           const WorkerLines& lines) {
  std::optional<DataLoading> longest;
  for (const Timeline& timeline : timelines) {
    if (timeline.main_thread == kNone || timeline.steps.empty()) continue;
    const Intervals steps{{timeline.steps.front().begin, timeline.steps.back().end}};
    const Intervals waits = intersect(timeline.threads[timeline.main_thread].data_loading, steps);
    if (waits.empty()) continue;
    if (timeline.process->workers.empty() && !loads_by_itself(*timeline.trace)) continue;
    DataLoading loading = Loader(timeline, waits).weigh();
    if (loading.workers == 0 && !timeline.process->workers.empty()) continue;
    loading.steps_us = static_cast<double>(total(steps)) / 1e3;
    if (!longest || loading.waited_us > longest->waited_us) longest = loading;
  }
  if (longest) longest->limit = limit_of(*longest);
  if (longest && longest->limit == LoadingLimit::elsewhere && lines.samples > 0 &&
      lines.busy_pct < kHardlyBusyPct) {
    longest->limit = LoadingLimit::hand_over;
  }
  return longest;
}

std::string describe(const DataLoading& loading) {
  std::string out = fmt::format("batches: {}", text_of(loading.limit).what);
  if (loading.workers == 0) return out;
  out += fmt::format(
      "; while it waited, {} worker{} {:.0f} % on a CPU, {:.0f} % without one, {:.0f} % "
      "for the disk",
      loading.workers, loading.workers == 1 ? "" : "s", loading.on_cpu_pct, loading.queued_pct,
      loading.disk_pct);
  if (loading.usable_cpus) out += fmt::format("; {} CPUs", loading.usable_cpus);
  return out;
}

}  // namespace gpuprof::analysis
