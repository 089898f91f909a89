// SPDX-License-Identifier: Apache-2.0
#include "tools/analysis/findings.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <span>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "formats/trace/heap.h"
#include "formats/views/impossible_times.h"
#include "formats/views/memory_curves.h"
#include "formats/views/slices.h"
#include "tools/analysis/code_place.h"
#include "tools/analysis/host_memory.h"
#include "tools/analysis/kernel_families.h"
#include "tools/analysis/live_owners.h"
#include "tools/analysis/recording_slowdown.h"
#include "tools/analysis/statistics.h"
#include "tools/analysis/timeline.h"
#include "tools/console.h"
#include "tools/describe.h"

namespace gpuprof::analysis {
namespace {

constexpr size_t kDriftSteps = 40;     // of the whole run, for a trend to mean something
constexpr double kDriftChance = 0.01;  // that two windows differ so by chance
constexpr double kMegabyte = 1e6;
constexpr size_t kHeapSteps = 6;
constexpr std::string_view kForwardSteps = "forward";

std::string who(const Process& process) {
  return process.header.rank() >= 0 ? fmt::format("rank {}", process.header.rank())
                                    : fmt::format("pid {}", process.header.pid());
}

// One process: its windows.
using Windows = std::vector<const Process*>;

void add_drift(const Process& process, const std::string& over, const std::vector<double>& early,
               const std::vector<double>& late, std::vector<Finding>& out) {
  const double from = quantile(early, 0.5), to = quantile(late, 0.5);
  const double change = from > 0 ? 100 * (to - from) / from : 0;
  if (std::abs(change) < finding_row(FindingKind::step_time_drift).limit.value) return;
  add_finding<FindingKind::step_time_drift>(out, change, who(process), std::abs(change),
                                            change > 0 ? "longer" : "shorter", over,
                                            format_us(from), format_us(to));
}

// Those of the step log that no window recorded: recording makes steps longer.
std::vector<Step> unrecorded_steps(const Process& process, const Windows& windows) {
  std::vector<std::pair<uint64_t, uint64_t>> recorded;  // first and last step, in order
  for (const Process* const window : windows) {
    const std::span<const Step> own = window->window_steps();
    if (!own.empty()) recorded.emplace_back(own.front().step, own.back().step);
  }
  std::sort(recorded.begin(), recorded.end());
  std::vector<Step> out;
  auto next = recorded.begin();
  for (const Step& step : process.steps) {
    while (next != recorded.end() && next->second < step.step) ++next;
    if (next == recorded.end() || step.step < next->first) out.push_back(step);
  }
  return out;
}

// By the step log, which is the longest in the last window: medians of the first and the last third
// of the run's steps, without the first tenth (warm-up). Where it does not reach back, by the first
// and the last window.
void step_time_drift(const Windows& windows, std::vector<Finding>& out) {
  const Process& longest = **std::max_element(
      windows.begin(), windows.end(),
      [](const Process* a, const Process* b) { return a->steps.size() < b->steps.size(); });
  if (is_bracketed(longest)) return;  // brackets and what lies between them
  std::vector<double> lengths = lengths_us(unrecorded_steps(longest, windows));
  if (10 * lengths.size() < longest.steps.size()) lengths = lengths_us(longest.steps);
  if (lengths.size() >= kDriftSteps) {
    lengths.erase(lengths.begin(), lengths.begin() + static_cast<int64_t>(lengths.size() / 10));
    const auto third = static_cast<int64_t>(lengths.size() / 3);
    const std::vector<double> early(lengths.begin(), lengths.begin() + third);
    const std::vector<double> late(lengths.end() - third, lengths.end());
    return add_drift(longest, "over the run", early, late, out);
  }
  if (windows.size() < 2) return;
  const Process &first = *windows.front(), &last = *windows.back();
  const std::vector<double> early = lengths_us(first.window_steps());
  const std::vector<double> late = lengths_us(last.window_steps());
  if (welch(early, late).p > kDriftChance) return;
  add_drift(last,
            fmt::format("from window {} to window {}", first.header.window(), last.header.window()),
            early, late, out);
}

// Of all windows of all processes the middle one: mostly all are alike.
void slower_recorded(const Trace& trace, std::vector<Finding>& out) {
  std::vector<std::pair<RecordingSlowdown, const Process*>> found;
  for (const Process& process : trace.processes) {
    if (process.is_data_worker()) continue;
    const auto slower = recording_slowdown(process);
    const double limit = finding_row(FindingKind::slower_recorded).limit.value;
    if (slower && slower->percent() >= limit) found.emplace_back(*slower, &process);
  }
  if (found.empty()) return;
  const auto middle = found.begin() + static_cast<int64_t>(found.size() / 2);
  std::nth_element(found.begin(), middle, found.end(), [](const auto& a, const auto& b) {
    return a.first.percent() < b.first.percent();
  });
  const auto& [slower, process] = *middle;
  std::string whose = who(*process);
  if (found.size() > 1) whose += fmt::format(" (the median of {} windows)", found.size());
  add_finding<FindingKind::slower_recorded>(
      out, slower.percent(), whose, slower.percent(), slower.steps_before,
      format_duration(1000 * slower.window_us), format_duration(1000 * slower.before_us));
}

// GPU times that cannot be right.
void wrong_times(const Trace& trace, const Process& process, std::vector<Finding>& out) {
  const ImpossibleTimes times = impossible_times(trace, process);
  if (times.works == 0) return;
  const double percent =
      100 * static_cast<double>(times.count()) / static_cast<double>(times.works);
  if (percent < finding_row(FindingKind::impossible_times).limit.value) return;
  add_finding<FindingKind::impossible_times>(out, percent, who(process), percent,
                                             describe_impossible(times));
}

// GPU times that mean something else than CUPTI's.
void event_times(const Process& process, std::vector<Finding>& out) {
  if (process.summary.gpu_times_from() != "events") return;
  const auto error = static_cast<double>(process.summary.gpu_time_error_ns());
  add_finding<FindingKind::event_times>(out, error, who(process), format_duration(error));
}

// What a framework's allocator holds of a GPU, where it says so.
const TensorCurve* tensors_of(const MemoryCurves& curves) {
  for (const TensorCurve& curve : curves.tensors) {
    if (is_gpu_memory(curve.device_type) && !curve.points.empty()) return &curve;
  }
  return nullptr;
}

// By how much memory grows in each step, if what is held at the end of a step is more in (almost)
// every one; else 0.
template <typename Point, typename Level>
double growth_a_step(const Process& process, const std::vector<Point>& points,
                     Level Point::*level) {
  const auto steps = process.window_steps();
  if (steps.size() < 4) return 0;
  size_t at = 0, grown = 0;
  double held = 0, before = 0, first = 0;
  for (size_t i = 0; i < steps.size(); ++i) {
    for (; at < points.size() && points[at].time < steps[i].end; ++at) {
      held = static_cast<double>(points[at].*level);
    }
    if (i == 0) first = held;
    if (i > 0 && held > before) ++grown;
    before = held;
  }
  if (grown + 1 < steps.size() - steps.size() / 10) return 0;
  return (held - first) / static_cast<double>(steps.size() - 1);
}

void memory_growth(const Report& report, const Process& process, const MemoryCurves& curves,
                   std::vector<Finding>& out) {
  const TensorCurve* const tensors = tensors_of(curves);
  const double each =
      growth_a_step(process, tensors ? tensors->points : curves.device, &MemoryPoint::total);
  if (each <= 0) return;
  std::string most;
  const auto kept = report.operators.kept_memory.find(&process);
  if (kept != report.operators.kept_memory.end() && !kept->second.empty()) {
    const OwnerRow& row = kept->second.front();
    int64_t all = 0;
    for (const OwnerRow& each : kept->second) all += each.bytes;
    most = fmt::format("; {} by {} ({} in {} blocks)",
                       2 * row.bytes > all ? "most of it" : "the largest part", row.name,
                       format_bytes(static_cast<uint64_t>(row.bytes)), row.count);
    if (!row.at_line) most += ". GPUPROF_STACKS=alloc names the line of code";
  }
  const std::string bytes = format_bytes(static_cast<uint64_t>(each));
  if (process.step_source == kForwardSteps) {
    return add_finding<FindingKind::growing_cache>(out, each, who(process), bytes, most);
  }
  add_finding<FindingKind::memory_growth>(out, each, who(process), bytes, most);
}

// Samples of a few allocations may come to grow by chance.
void host_memory_growth(const Process& process, std::vector<Finding>& out) {
  if (process.heap.empty() || process.window_steps().size() < kHeapSteps) return;
  const double each = growth_a_step(process, heap_curve(process), &HeapPoint::held_bytes);
  const double all = each * static_cast<double>(process.window_steps().size() - 1);
  const double intervals = all / static_cast<double>(process.heap.front().interval);
  if (intervals < finding_row(FindingKind::host_memory_growth).limit.value) return;
  std::vector<HeapSite> sites = heap_sites(process);
  const auto most = std::max_element(
      sites.begin(), sites.end(),
      [](const HeapSite& a, const HeapSite& b) { return a.held_bytes < b.held_bytes; });
  double held = 0;
  for (const HeapSite& site : sites) held += site.held_bytes;
  const char* const how_much = 2 * most->held_bytes > held ? "most of it" : "the largest part";
  const std::string place = host_memory_place(process.stacks, most->stack);
  add_finding<FindingKind::host_memory_growth>(
      out, each, who(process), format_bytes(static_cast<uint64_t>(whole_number(each))),
      place.empty() ? "" : fmt::format("; {} is allocated at {}", how_much, place));
}

// Calls that CUDA refused. A framework may free what it keeps and ask again: they end no program.
void failed_allocations(const Trace& trace, const Process& process, std::vector<Finding>& out) {
  constexpr int32_t kOutOfMemory = 2;  // cudaErrorMemoryAllocation, CUDA_ERROR_OUT_OF_MEMORY
  const LiveMemory* const live = process.live_at(LiveMoment::out_of_memory);
  if (live && !live->failed.empty()) return;  // that says more
  uint32_t last = 0;
  size_t count = 0;
  for (uint32_t i = 0; i < process.events.size(); ++i) {
    const Shape& shape = trace.shapes[process.events.shape_of(i)];
    if (shape.kind != Kind::alloc || shape.result != kOutOfMemory) continue;
    last = i;
    ++count;
  }
  if (count == 0) return;
  const Event event = process.events[last];
  const EventExtra& extra = process.extra(event);
  const std::string place = memory_place(process.stacks, extra.stack).text;
  const std::string_view api = trace.text(trace.shape(event).name);
  const Refused refused{event.begin, extra.bytes, names_host_memory(api), false};
  add_finding<FindingKind::failed_allocations>(
      out, static_cast<double>(count), who(process), api, format_bytes(extra.bytes),
      place.empty() ? "" : ", " + place, count,
      got_later(trace, process, refused) ? "; it asked again and got as much" : "");
}

void near_out_of_memory(const Process& process, std::vector<Finding>& out) {
  for (const CounterSeries& series : process.counters) {
    if (series.counter != Counter::memory_used) continue;
    uint64_t most = 0, all = 0;
    for (const auto& point : series.points) most = std::max(most, point.value);
    for (const dump::Device& device : process.header.device()) {
      if (device.id() == series.device) all = device.total_memory_bytes();
    }
    const double percent = all ? 100 * static_cast<double>(most) / static_cast<double>(all) : 0;
    if (percent < finding_row(FindingKind::near_out_of_memory).limit.value) continue;
    add_finding<FindingKind::near_out_of_memory>(out, percent, series.device, format_bytes(most),
                                                 format_bytes(all), percent);
  }
}

// Whether the window captures CUDA graphs or launches them.
bool uses_graphs(const Trace& trace, const Process& process) {
  for (uint32_t i = 0; i < process.events.size(); ++i) {
    const Shape& shape = trace.shapes[process.events.shape_of(i)];
    if (shape.kind == Kind::gpu_graph || (shape.flags & kFlagCaptured)) return true;
    if (shape.kind == Kind::launch &&
        trace.text(shape.name).find("GraphLaunch") != std::string::npos)
      return true;
  }
  return false;
}

// Of what the allocator has reserved, part is in pieces that do not serve: at its fullest moment. A
// graph keeps a pool of its own, whose blocks are free between launches and given to nothing else
// (pytorch/pytorch issues 121932, 124673).
void fragmentation(const Trace& trace, const Process& process, const MemoryCurves& curves,
                   std::vector<Finding>& out) {
  const TensorCurve* const tensors = tensors_of(curves);
  if (!tensors || !tensors->totals_given) return;
  const auto peak = std::max_element(
      tensors->points.begin(), tensors->points.end(),
      [](const MemoryPoint& a, const MemoryPoint& b) { return a.total < b.total; });
  const EventExtra& extra = process.extra(process.event(peak->event));
  if (extra.value == EventExtra::kNotGiven || extra.value == 0) return;
  const auto reserved = static_cast<double>(extra.value);
  const double unused = reserved - static_cast<double>(peak->total);
  const double percent = 100 * unused / reserved;
  const FindingRow& row = finding_row(FindingKind::fragmentation);
  if (unused < row.other_limit.value * kMegabyte || percent < row.limit.value) return;
  add_finding<FindingKind::fragmentation>(
      out, percent, who(process), format_bytes(static_cast<uint64_t>(peak->total)),
      format_bytes(extra.value), percent,
      uses_graphs(trace, process) ? ", or kept for CUDA graphs, which share it with "
                                    "nothing else"
                                  : "");
}

// How much arithmetic is done, of what the device could do.
void arithmetic(const Report& report, std::vector<Finding>& out) {
  const Arithmetic& done = report.operators.arithmetic;
  if (done.flop_per_step <= 0) return;
  const std::string share =
      done.mfu_pct > 0 ? fmt::format(", {:.1f} % of what the GPU can do (MFU)", done.mfu_pct)
                       : std::string();
  const std::string speed = done.tflops >= 1 ? fmt::format("{:.1f} TFLOP/s", done.tflops)
                                             : fmt::format("{:.2g} GFLOP/s", 1000 * done.tflops);
  constexpr double kAlmostAll = 90;  // % of kernel time
  const std::string least = done.counted_time_pct < kAlmostAll ? "at least " : "";
  add_finding<FindingKind::achieved_flops>(out, done.tflops, least + speed, report.unit(), share,
                                           done.counted_time_pct);
}

// The GPU is busy, but its multiprocessors are not. (A kernel that fills each with few threads may
// be the fastest: matrix products are such.)
void small_grids(const Report& report, std::vector<Finding>& out) {
  double weighted = 0, time = 0, all = 0;
  for (const KernelRow& row : report.tables.kernels) {
    if (row.kind != WorkClass::compute) continue;
    all += row.total_us;
    if (row.multiprocessors_pct == 0) continue;
    weighted += row.total_us * row.multiprocessors_pct;
    time += row.total_us;
  }
  const double steps_us = report.step_time.mean_us * static_cast<double>(report.steps.size());
  const double any = report.breakdown_pct[static_cast<size_t>(Part::compute)] / 100 * steps_us;
  if (time <= 0 || any <= 0) return;
  // Those that run at the same time have their blocks on multiprocessors of their own.
  const double percent = std::min(100.0, weighted / time * std::max(1.0, all / any));
  const FindingRow& row = finding_row(FindingKind::low_gpu_efficiency);
  if (percent > row.limit.value || report.gpu_utilization_pct < row.other_limit.value) return;
  add_finding<FindingKind::low_gpu_efficiency>(out, percent, report.gpu_utilization_pct, percent);
}

// What Tensor cores of these types ask of the program; empty: there are none.
std::string_view tensor_core_advice(TensorTypes types) {
  switch (types) {
    case TensorTypes::none: return {};
    case TensorTypes::not_known: return "Whether the GPU has any is not known";
    case TensorTypes::fp16:
      return "With less exact products these can be used: fp16 by autocast, with a GradScaler in "
             "training";
    case TensorTypes::tf32: break;
  }
  return "With less exact products these can be used: TF32 "
         "(torch.set_float32_matmul_precision(\"high\"), torch.backends.cudnn.allow_tf32), or bf16 "
         "by autocast";
}

// Products that Tensor cores could do, as far as names tell.
void without_tensor_cores(const Report& report, std::vector<Finding>& out) {
  double all = 0, without = 0;
  const KernelRow* most = nullptr;
  for (const KernelRow& row : report.tables.kernels) {
    if (row.kind != WorkClass::compute) continue;
    all += row.total_us;
    if (!multiplies_without_tensor_cores(row.name)) continue;
    without += row.total_us;
    if (!most || row.total_us > most->total_us) most = &row;
  }
  const double percent = all > 0 ? 100 * without / all : 0;
  if (!most || percent < finding_row(FindingKind::without_tensor_cores).limit.value) return;
  const std::string_view advice = tensor_core_advice(report.tables.tensor_types);
  if (advice.empty()) return;
  add_finding<FindingKind::without_tensor_cores>(out, percent, percent, most->short_name, advice);
}

// What ran in them is not known: where it was communication, the verdict cannot say so.
void whole_graphs(const Report& report, std::vector<Finding>& out) {
  const double steps_us = report.step_time.mean_us * static_cast<double>(report.steps.size());
  const double percent = steps_us > 0 ? 100 * report.tables.whole_graph_us / steps_us : 0;
  if (percent < finding_row(FindingKind::whole_graphs).limit.value) return;
  const bool events = 2 * report.tables.event_graph_us > report.tables.whole_graph_us;
  const char* const why = events ? "CUDA events tell nothing of their kernels"
                                 : "CUPTI gave no times of their kernels (captured before the "
                                   "window), or graph:trace was asked for";
  add_finding<FindingKind::whole_graphs>(out, percent, percent, report.unit(), why,
                                         events ? "With GPUPROF_GPU_TIMES=cupti, a" : "A");
}

// What comes back from the GPU in pieces of the same sizes as what goes there.
void copies_undone(const Report& report, std::vector<Finding>& out) {
  const CopiesBack& back = report.tables.copies_back;
  const double both = report.per_unit(back.bytes);
  if (both < finding_row(FindingKind::copies_undone).limit.value * kMegabyte) return;
  add_finding<FindingKind::copies_undone>(out, both, both / kMegabyte, report.unit(),
                                          report.per_unit(static_cast<double>(back.count)));
}

}  // namespace

std::vector<Finding> find(const Trace& trace, const Report& report) {
  std::vector<Finding> out;
  std::map<std::tuple<int32_t, std::string_view, uint32_t>, Windows> runs;
  for (const Process& process : trace.processes) {
    if (process.is_data_worker()) continue;
    const dump::Header& h = process.header;
    runs[{h.rank(), h.host(), h.pid()}].push_back(&process);
  }
  for (const auto& [id, windows] : runs) step_time_drift(windows, out);
  for (const Process& process : trace.processes) {
    if (process.is_data_worker()) continue;
    wrong_times(trace, process, out);
    event_times(process, out);
    const MemoryCurves curves = memory_curves(trace, process);
    memory_growth(report, process, curves, out);
    host_memory_growth(process, out);
    fragmentation(trace, process, curves, out);
    near_out_of_memory(process, out);
    out_of_memory(trace, process, out);
    failed_allocations(trace, process, out);
  }
  slower_recorded(trace, out);
  small_grids(report, out);
  without_tensor_cores(report, out);
  arithmetic(report, out);
  copies_undone(report, out);
  whole_graphs(report, out);
  return out;
}

}  // namespace gpuprof::analysis
