// SPDX-License-Identifier: Apache-2.0
#include "tools/analysis/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <utility>

#include "formats/trace/activities.h"
#include "formats/trace/process_key.h"
#include "tools/analysis/evidence.h"
#include "tools/analysis/findings.h"
#include "tools/analysis/gpu_shares.h"
#include "tools/analysis/processor_time.h"
#include "tools/analysis/ranks/clocks.h"
#include "tools/analysis/ranks/rank_speeds.h"
#include "tools/analysis/ranks/slow_gpus.h"
#include "tools/analysis/replay/replay.h"
#include "tools/analysis/side_by_side.h"
#include "tools/analysis/stalled_work.h"
#include "tools/analysis/statistics.h"
#include "tools/analysis/step_findings.h"
#include "tools/analysis/thread_states.h"
#include "tools/analysis/verdict.h"
#include "tools/console.h"
#include "tools/describe.h"

namespace gpuprof::analysis {
namespace {

StepTime step_time_of(const std::vector<StepRow>& steps) {
  std::vector<double> lengths;
  double sum = 0;
  for (const StepRow& row : steps) {
    lengths.push_back(static_cast<double>(row.anatomy.end - row.anatomy.begin) / 1000);
    sum += lengths.back();
  }
  if (lengths.empty()) return {};
  return {quantile(lengths, 0.5), sum / static_cast<double>(lengths.size()),
          nearest_rank(lengths, 0.95)};
}

void sum_up(Report& report) {
  double wall = 0, device_idle = 0;
  std::array<double, kParts> parts{}, no_processor{};
  std::array<double, 2> overlapped{};
  for (const StepRow& row : report.steps) {
    wall += static_cast<double>(row.anatomy.end - row.anatomy.begin);
    for (size_t i = 0; i < kParts; ++i) parts[i] += static_cast<double>(row.anatomy.parts[i]);
    for (size_t i = 0; i < kParts; ++i) {
      no_processor[i] += static_cast<double>(row.anatomy.no_processor[i]);
    }
    for (size_t i = 0; i < 2; ++i) overlapped[i] += static_cast<double>(row.anatomy.overlapped[i]);
    device_idle += static_cast<double>(row.anatomy.device_idle);
  }
  if (wall <= 0 || !report.gpu_timed) return;
  for (size_t i = 0; i < kParts; ++i) report.breakdown_pct[i] = 100 * parts[i] / wall;
  for (size_t i = 0; i < kParts; ++i) report.no_processor_pct[i] = 100 * no_processor[i] / wall;
  for (size_t i = 0; i < 2; ++i) report.overlapped_pct[i] = 100 * overlapped[i] / wall;
  for (size_t i = 0; i < kBusyParts; ++i) report.gpu_utilization_pct += report.breakdown_pct[i];
  report.device_idle_pct = 100 * device_idle / wall;
}

uint32_t window_of(const Timeline& timeline) { return timeline.process->header.window(); }

std::vector<Timeline> timelines_by_window(const Trace& trace) {
  std::vector<Timeline> out = make_timelines(trace);
  std::stable_sort(out.begin(), out.end(), [](const Timeline& a, const Timeline& b) {
    return window_of(a) < window_of(b);
  });
  look_at_whole_windows(out);
  return out;
}

void add_once(std::vector<std::string>& texts, const std::string& text) {
  if (!text.empty() && std::find(texts.begin(), texts.end(), text) == texts.end()) {
    texts.push_back(text);
  }
}

Program program_of(const Trace& trace) {
  constexpr size_t kLongest = 400;  // bytes of a command line
  Program out;
  for (const Process& process : trace.processes) {
    if (process.is_data_worker()) continue;
    add_once(out.hosts, process.header.host());
    for (const dump::Device& device : process.header.device()) add_once(out.gpus, device.name());
    if (!out.command.empty()) continue;
    for (const std::string& word : process.header.command()) {
      out.command += (out.command.empty() ? "" : " ") + word;
    }
    if (out.command.size() > kLongest) out.command = out.command.substr(0, kLongest) + "...";
  }
  return out;
}

bool any_whole_window(const std::vector<Timeline>& timelines) {
  return std::any_of(timelines.begin(), timelines.end(),
                     [](const Timeline& timeline) { return timeline.whole_window; });
}

// Of processes that say it, for their steps.
void add_processor_waits(const std::vector<Timeline>& timelines, Report& report) {
  double waited = 0, steps = 0;
  for (const Timeline& timeline : timelines) {
    if (timeline.main_thread == kNone || timeline.steps.empty()) continue;
    const ProcessorTime processor(*timeline.process, timeline.threads[timeline.main_thread].id);
    if (!processor.known()) continue;
    waited += static_cast<double>(
        processor.waited(timeline.steps.front().begin, timeline.steps.back().end));
    steps += static_cast<double>(timeline.steps.size());
  }
  if (steps > 0) report.processor_wait_us = waited / 1000 / steps;
}

// Where no verdict says it.
void add_machine_busy(Report& report) {
  if (!report.processor_wait_us || report.step_time.mean_us <= 0) return;
  for (const Verdict& verdict : report.verdict) {
    if (verdict.cause == Cause::machine_busy) return;
  }
  const double percent = 100 * *report.processor_wait_us / report.step_time.mean_us;
  if (percent < finding_row(FindingKind::machine_busy).limit.value) return;
  std::string text = machine_busy_text(report);
  if (!report.pauses.empty()) text += "; " + pauses_text(report);
  add_finding<FindingKind::machine_busy>(report.findings, percent, text);
}

// What the profiler took of steps, and for which of its works most.
void add_profiler_time(const std::vector<Timeline>& timelines, Report& report) {
  constexpr auto kOwn = static_cast<size_t>(Part::profiler);
  // Without what it waited for a processor: that is the machine's.
  const double percent = report.breakdown_pct[kOwn] - report.no_processor_pct[kOwn];
  if (percent < finding_row(FindingKind::profiler_time).limit.value) return;
  std::map<std::string_view, int64_t> works;
  for (const Timeline& timeline : timelines) {
    for (const Lane& lane : timeline.process->lanes) {
      if (lane.type != LaneType::overhead) continue;
      for (uint32_t i = lane.first_event; i < lane.first_event + lane.event_count; ++i) {
        const bool profiling = is_profiling(timeline.shape(i).cupti_type);
        if (!profiling || !timeline.step_at(timeline.events().begin_of(i))) continue;
        works[timeline.trace->text(timeline.shape(i).label)] +=
            timeline.events().end_of(i) - timeline.events().begin_of(i);
      }
    }
  }
  const auto most = std::max_element(
      works.begin(), works.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  const std::string name =
      most == works.end() ? "" : fmt::format(", most of it for {}", most->first);
  add_finding<FindingKind::profiler_time>(report.findings, percent, percent, report.unit(), name,
                                          report.unit());
}

void add_slow_ranks(Report& report) {
  for (const SlowRank& slow : report.slow_ranks) {
    add_finding<FindingKind::slow_rank>(report.findings, slow.excess_us, describe(slow));
  }
}

// Of a process that drives several.
void add_slow_gpus(const std::vector<Timeline>& timelines, Report& report) {
  for (const Timeline& timeline : timelines) {
    for (const SlowGpu& slow : find_slow_gpus(timeline)) {
      add_finding<FindingKind::slow_gpu>(report.findings, slow.excess_us, describe(slow));
    }
  }
}

// What each GPU of a process with several does: some of them always work where they work in turn.
void add_gpus_in_turn(const std::vector<Timeline>& timelines, Report& report) {
  double sum = 0, length = 0;
  for (const Timeline& timeline : timelines) {
    if (timeline.steps.empty() || timeline.works == 0) continue;
    const GpuShares shares = gpu_shares_of(timeline);
    const auto wall = static_cast<double>(timeline.steps.back().end - timeline.steps.front().begin);
    sum += shares.busiest_pct * wall;
    length += wall;
    const double apart = shares.any_pct - shares.busiest_pct;
    const FindingRow& row = finding_row(FindingKind::gpus_in_turn);
    if (apart < row.limit.value || shares.at_once > row.other_limit.value) continue;
    const int32_t rank = timeline.process->header.rank();
    add_finding<FindingKind::gpus_in_turn>(
        report.findings, apart, rank < 0 ? "the process" : fmt::format("rank {}", rank),
        shares.gpus, shares.any_pct, report.unit(), shares.busiest_pct);
  }
  if (length > 0) report.busiest_gpu_pct = sum / length;
}

// Steps that end on the host long before the GPU has done what they issued.
void add_host_ahead(const std::vector<Timeline>& timelines, Report& report) {
  for (const Timeline& timeline : timelines) {
    if (timeline.steps.empty()) continue;
    const auto steps = static_cast<double>(timeline.steps.size());
    double length = 0;
    for (const Step& step : timeline.steps) length += static_cast<double>(step.end - step.begin);
    const double issued = stream_shares_of(timeline).computes_ns;
    const double percent = length > 0 ? 100 * issued / length : 0;
    if (percent < finding_row(FindingKind::host_ahead).limit.value) continue;
    const int32_t rank = timeline.process->header.rank();
    add_finding<FindingKind::host_ahead>(report.findings, percent,
                                         rank < 0 ? "the process" : fmt::format("rank {}", rank),
                                         format_us(issued / steps / 1000), report.unit(),
                                         format_us(length / steps / 1000), report.unit());
    return;
  }
}

// Figures that compare ranks are no better than their clocks.
void add_clocks(const Trace& trace, Report& report) {
  const std::vector<HostClock> clocks = clocks_of(trace);
  double error = 0;
  for (const HostClock& clock : clocks) error = std::max(error, clock.error_us);
  const std::string text = describe_clocks(clocks);
  if (!text.empty()) add_finding<FindingKind::host_clocks>(report.findings, error, text);
}

void add_own_cost(const std::vector<Timeline>& timelines, Report& report) {
  double cost = 0, length = 0;
  for (const Timeline& timeline : timelines) {
    const Process& process = *timeline.process;
    if (!own_cost_known(process)) continue;
    const auto window = static_cast<double>(process.window_end - process.window_begin);
    cost += own_cost(process).percent * window;
    length += window;
  }
  if (length > 0) report.own_cost_pct = cost / length;
}

// The first recorded work waited, perhaps for work of a host that is ahead of the GPU.
void add_work_of_before(Report& report) {
  const double percent = report.unknown_pct();
  if (percent < finding_row(FindingKind::work_of_before).limit.value) return;
  add_finding<FindingKind::work_of_before>(report.findings, percent, percent, report.unit());
}

// A job that stands says so in the verdict's place, where one is looked for.
void add_standstill(Report& report, bool has_verdict) {
  if (!report.standstill) return;
  const double seconds = static_cast<double>(report.standstill->silent_ns) / 1e9;
  const std::string text = describe(*report.standstill);
  if (report.standstill->over()) {
    add_finding<FindingKind::job_stood>(report.findings, seconds, text);
  } else if (!has_verdict) {
    add_finding<FindingKind::job_stands>(report.findings, seconds, text);
  }
}

// All ranks in one window: windows of the same number are of the same time.
struct Window {
  std::span<const Timeline> timelines;
  RankComparison comparison{};
  std::optional<Replay> replay{};
};

std::vector<Window> windows_of(const std::vector<Timeline>& all) {
  std::vector<Window> out;
  for (auto begin = all.begin(), end = begin; begin != all.end(); begin = end) {
    end = std::find_if(begin, all.end(), [&](const Timeline& timeline) {
      return window_of(timeline) != window_of(*begin);
    });
    out.push_back({{begin, end}});
    out.back().comparison = compare_ranks(out.back().timelines);
  }
  return out;
}

// Of those with steps, in order.
void number_processes(const std::vector<Timeline>& timelines, Report& report) {
  std::map<ProcessKey, size_t> numbers;
  for (size_t i = 0; i < timelines.size(); ++i) {
    if (timelines[i].steps.empty()) continue;
    const Process& process = *timelines[i].process;
    const auto [at, fresh] = numbers.emplace(key_of(process), numbers.size());
    report.curves[i].process = at->second;
    if (!fresh) continue;
    const dump::Header& header = process.header;
    report.processes.push_back({header.rank(), header.host(), header.pid()});
  }
}

void add_process(const Timeline& timeline, const std::vector<StepAnatomy>& steps, size_t number,
                 Report& report) {
  const dump::Header& header = timeline.process->header;
  for (const StepAnatomy& step : steps) {
    report.steps.push_back({header.rank(), header.window(), step, number});
  }
  const Process& process = *timeline.process;
  for (size_t i = 0; i < kLossKinds; ++i) report.losses[i] += process.losses[i];
  report.losses_known = report.losses_known && losses_known(*timeline.trace, process);
  for (const Activity activity : kGpuWorkActivities) {
    const std::string name = activity_name(activity);
    if (!is_left_out(process, activity) || report.unrecorded.find(name) != std::string::npos) {
      continue;
    }
    report.unrecorded += (report.unrecorded.empty() ? "" : ", ") + name;
  }
}

size_t world_size_of(const std::vector<Timeline>& timelines) {
  int32_t size = 0;
  for (const Timeline& timeline : timelines) {
    size = std::max(size, timeline.process->header.world_size());
  }
  return static_cast<size_t>(size);
}

size_t ranks_of(const std::vector<Timeline>& timelines) {
  std::set<int32_t> ranks;
  for (const Timeline& timeline : timelines) ranks.insert(timeline.process->header.rank());
  return ranks.size();
}

// Where no verdict says it: of a program without GPU work, or with other causes that matter more.
void add_late_data(Report& report) {
  if (!report.loading) return;
  // Where the GPU has work meanwhile, its steps are no longer for it.
  const double idle_pct = report.breakdown_pct[static_cast<size_t>(Part::data_loading)];
  if (report.gpu_timed && idle_pct < kWorthNamingPct) return;
  const double share = 100 * report.loading->waited_us / report.loading->steps_us;
  for (const Verdict& verdict : report.verdict) {
    if (verdict.cause == Cause::data_loading) return;
  }
  if (share < finding_row(FindingKind::late_data).limit.value) return;
  add_finding<FindingKind::late_data>(report.findings, share, share, describe(*report.loading),
                                      worker_line_text(report.worker_lines),
                                      advice_for(*report.loading));
}

// Where no verdict says it: the line of code that ran while the host did something of its own.
void add_python_line(Report& report) {
  for (const Verdict& verdict : report.verdict) {
    if (verdict.cause == Cause::host_work) return;
  }
  const auto other = static_cast<size_t>(Part::other);
  const double idle_pct =
      report.breakdown_pct[other] - report.device_idle_pct - report.no_processor_pct[other];
  double all = 0;
  uint32_t samples = 0;
  const HostLine* most = nullptr;
  for (const HostLine& line : report.host_samples.lines) {
    all += line.part_us[other];
    samples += line.part_samples[other];
    if (!most || line.part_us[other] > most->part_us[other]) most = &line;
  }
  if (idle_pct < finding_row(FindingKind::python_line).limit.value || all <= 0) return;
  const double percent = 100 * most->part_us[other] / all;
  add_finding<FindingKind::python_line>(
      report.findings, percent, idle_pct, report.unit(), most->place(), percent,
      of_that_time(report.sampled_share(Part::other)),
      most->calls().empty() ? std::string() : ", " + most->calls(), few_samples(samples));
}

using Tasks = std::vector<std::function<void()>>;

// What each depth has.
void add_table_tasks(const Trace& trace, const std::vector<Timeline>& all, Report& report,
                     Tasks& tasks) {
  for (const Timeline& timeline : all) report.curves.push_back(empty_curves(timeline, all.size()));
  number_processes(all, report);
  const auto add_curves = [&](void (*part)(const Timeline&, Curves&)) {
    for (size_t i = 0; i < all.size(); ++i) {
      tasks.push_back([&, i, part] { part(all[i], report.curves[i]); });
    }
  };
  add_curves(add_queues);
  tasks.push_back([&] { report.operators = make_operator_tables(all, report.grouping); });
  tasks.push_back([&] { report.tables = make_tables(all); });
  add_curves(add_utilization);
  add_curves(add_memory);
  tasks.push_back([&] { report.host_memory = host_memory(trace); });
}

// What ends a program first; else in the order in which they were found.
void urgent_first(Report& report) {
  std::stable_partition(report.findings.begin(), report.findings.end(),
                        [](const Finding& finding) { return ends_program(finding.kind); });
}

void keep_parts(std::vector<Timeline> timelines, std::vector<std::vector<StepAnatomy>> steps,
                ReportParts& out) {
  std::sort(out.collectives.begin(), out.collectives.end(), [](auto& a, auto& b) {
    return a.timeline != b.timeline ? a.timeline < b.timeline : a.event < b.event;
  });
  out.timelines = std::move(timelines);
  out.steps = std::move(steps);
}

Report make_tables_alone(const Trace& trace, Grouping grouping) {
  Report report;
  report.depth = Depth::tables;
  note_left_out_kinds(trace, report);
  report.grouping = grouping;
  report.program = program_of(trace);
  const std::vector<Timeline> all = timelines_by_window(trace);
  report.whole_windows = any_whole_window(all);
  Tasks tasks;
  add_table_tasks(trace, all, report, tasks);
  side_by_side(std::move(tasks));
  for (size_t i = 0; i < all.size(); ++i) {
    std::vector<StepAnatomy> steps;
    for (const Step& step : all[i].steps) steps.push_back({step.step, step.begin, step.end});
    add_process(all[i], steps, report.curves[i].process, report);
  }
  add_own_cost(all, report);
  report.ranks = ranks_of(all);
  report.world_size = world_size_of(all);
  report.gpu_timed =
      std::any_of(all.begin(), all.end(), [](const Timeline& t) { return t.gpu_timed; });
  report.step_time = step_time_of(report.steps);
  add_left_out_kinds(report);
  report.standstill = standstill_of(trace);
  add_standstill(report, false);
  add_clocks(trace, report);
  add_step_findings(all, report);
  urgent_first(report);
  return report;
}

}  // namespace

bool Report::ranked() const {
  return std::all_of(processes.begin(), processes.end(),
                     [](const ProcessRow& process) { return process.rank >= 0; });
}

double Report::sampled_share(Part part) const {
  const auto index = static_cast<size_t>(part);
  double all = 0, sampled = 0;
  for (const StepRow& row : steps) all += static_cast<double>(row.anatomy.parts[index]) / 1000;
  for (const HostLine& line : host_samples.lines) sampled += line.part_us[index];
  return all > 0 ? std::min(1.0, sampled / all) : 1;
}

double Report::sampled_share() const {
  double all = 0;
  for (const StepRow& row : steps) {
    for (size_t i = kBusyParts; i < kParts; ++i) {
      if (static_cast<Part>(i) == Part::unknown) continue;
      all += static_cast<double>(row.anatomy.parts[i]) / 1000;
    }
  }
  return all > 0 ? std::min(1.0, host_samples.idle_us / all) : 1;
}

Report make_report(const Trace& trace, Depth depth, Grouping grouping, ReportParts* parts) {
  if (depth == Depth::tables) return make_tables_alone(trace, grouping);
  Report report;
  report.grouping = grouping;
  report.program = program_of(trace);
  std::vector<Timeline> all = timelines_by_window(trace);
  report.whole_windows = any_whole_window(all);
  std::vector<Window> windows = windows_of(all);
  std::vector<std::vector<StepAnatomy>> steps(all.size());
  std::vector<IdleTimes> idle(all.size());  // of processes with host samples
  std::vector<Intervals> device_idle(all.size());
  Tasks tasks;
  for (Window& window : windows) {
    tasks.push_back([&] { window.replay.emplace(window.timelines, window.comparison); });
  }
  CollectiveTimesMaker collectives(parts ? &parts->collectives : nullptr);
  for (const Window& window : windows) {
    collectives.add_window(window.timelines, window.comparison);
  }
  report.collective_times = collectives.take();
  for (size_t i = 0; i < all.size(); ++i) {
    tasks.push_back([&, i] {
      const bool sampled = !all[i].process->samples.empty();
      steps[i] = dissect(all[i], sampled ? &idle[i] : nullptr, &device_idle[i]);
    });
  }
  add_table_tasks(trace, all, report, tasks);
  side_by_side(std::move(tasks));

  HostSampleSums samples;
  StalledWork stalled;
  for (size_t i = 0; i < all.size(); ++i) {
    add_process(all[i], steps[i], report.curves[i].process, report);
    samples.add(all[i], idle[i]);
    stalled.add(all[i], device_idle[i]);
  }
  add_own_cost(all, report);
  report.ranks = ranks_of(all);
  report.world_size = world_size_of(all);
  report.gpu_timed =
      std::any_of(all.begin(), all.end(), [](const Timeline& t) { return t.gpu_timed; });
  Judge judge;
  SpeedsOfWindows speeds;
  for (const Window& window : windows) {
    judge.add_window(window.timelines, window.comparison, *window.replay);
    speeds.add(window.timelines, window.comparison);
    if (!window.comparison.comparable) continue;
    report.slow_ranks.insert(report.slow_ranks.end(), window.comparison.slow.begin(),
                             window.comparison.slow.end());
  }
  report.speeds = speeds.take();
  report.step_time = step_time_of(report.steps);
  report.host_samples = samples.take();
  sum_up(report);
  add_processor_waits(all, report);
  report.thread_states = thread_states(all);
  report.worker_lines = worker_lines_of(trace);
  report.loading = data_loading_of(all, report.worker_lines);
  note_left_out_kinds(trace, report);
  report.findings = find(trace, report);
  report.standstill = standstill_of(trace);
  add_standstill(report, true);
  add_clocks(trace, report);
  add_step_findings(all, report);
  add_work_of_before(report);
  add_gpus_in_turn(all, report);
  add_host_ahead(all, report);
  stalled.report(report);
  judge.decide(report);
  add_left_out_kinds(report);
  add_slow_ranks(report);
  add_slow_gpus(all, report);
  if (const auto job = pipeline_job(trace)) {
    report.pipeline = analyse(*job);
    judge_pipeline(report);
  }
  add_machine_busy(report);
  add_profiler_time(all, report);
  add_python_line(report);
  add_late_data(report);
  urgent_first(report);
  if (parts) keep_parts(std::move(all), std::move(steps), *parts);
  return report;
}

}  // namespace gpuprof::analysis
