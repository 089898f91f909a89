// SPDX-License-Identifier: Apache-2.0
#include "tools/analysis/step_findings.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <string>

#include "formats/core/early_window.h"
#include "formats/trace/activities.h"
#include "tools/analysis/findings.h"
#include "tools/analysis/intervals.h"
#include "tools/analysis/short_windows.h"
#include "tools/analysis/walks.h"

namespace gpuprof::analysis {
namespace {

// Why a window's own steps are not those that are shown.
std::string no_own_steps(const Process& process) {
  if (is_bracketed(process)) {
    return "the program brackets what is recorded (cudaProfilerStart, cudaProfilerStop)";
  }
  if (process.step_source.empty() || process.step_source == "auto") return "no step is marked";
  if (goes_by_clock(process)) return fmt::format("{} is wall time", process.step_source);
  return fmt::format("no whole step ({}) was recorded", process.step_source);
}

// Steps of a window that come from marks inside it.
void add_nested_steps(const std::vector<Timeline>& timelines, Report& report) {
  const Timeline* first = nullptr;
  double count = 0;
  std::set<std::string> others;
  for (const Timeline& timeline : timelines) {
    if (timeline.nested_source.empty() || timeline.period_confidence > 0) continue;
    if (timeline.joined_waits > 0) continue;
    if (!first) first = &timeline;
    if (timeline.nested_source != first->nested_source) others.insert(timeline.nested_source);
    count += static_cast<double>(timeline.steps.size());
  }
  if (!first) return;
  add_finding<FindingKind::nested_steps>(
      report.findings, count,
      is_bracketed(*first->process) ? no_own_steps(*first->process) : "no whole step was recorded",
      first->nested_source,
      others.empty() ? "" : fmt::format(", in other windows of {}", fmt::join(others, ", ")));
}

void add_joined_waits(const std::vector<Timeline>& timelines, Report& report) {
  uint32_t waits = 0;
  for (const Timeline& timeline : timelines) waits = std::max(waits, timeline.joined_waits);
  if (waits > 0) add_finding<FindingKind::joined_waits>(report.findings, waits, waits, waits);
}

// Steps that nobody marked are to be known as such.
void add_period(const std::vector<Timeline>& timelines, Report& report) {
  double least = 0, share = 1, time_share = 1;
  const Process* process = nullptr;
  for (const Timeline& timeline : timelines) {
    const double own = timeline.period_confidence;
    if (own <= 0) continue;
    least = least > 0 ? std::min(least, own) : own;
    share = std::min(share, timeline.found_share);
    time_share = std::min(time_share, timeline.found_time_share);
    process = timeline.process;
  }
  if (least == 0) return;
  std::string of_window;
  if (100 * time_share < finding_row(FindingKind::steps_found).other_limit.value) {
    of_window = fmt::format(
        ", and {:.0f} % of the window's time: GPU busy, causes and tables are of the steps alone",
        100 * time_share);
  }
  add_finding<FindingKind::steps_found>(report.findings, least, no_own_steps(*process), least,
                                        100 * share, of_window);
}

// What marks the steps that are shown, as GPUPROF_STEP names it.
std::string step_source_of(const std::vector<Timeline>& timelines) {
  std::set<std::string_view> sources;
  for (const Timeline& timeline : timelines) {
    if (timeline.steps.empty() || timeline.whole_window) continue;
    sources.insert(timeline.period_confidence > 0 ? "period" : timeline.step_source());
  }
  sources.erase("");
  return fmt::format("{}", fmt::join(sources, ", "));
}

// Nobody is to take a stretch of the clock for an iteration.
void add_clock_steps(const std::vector<Timeline>& timelines, Report& report) {
  double count = 0;
  std::string_view source;
  for (const Timeline& timeline : timelines) {
    if (!timeline.has_clock_steps()) continue;
    count += static_cast<double>(timeline.steps.size());
    source = timeline.step_source();
  }
  if (count > 0) add_finding<FindingKind::clock_steps>(report.findings, count, source);
}

void add_early_windows(const std::vector<Timeline>& timelines, Report& report) {
  const auto early = std::count_if(timelines.begin(), timelines.end(), [](const Timeline& t) {
    return is_early_window(t.process->header.window());
  });
  if (early == 0) return;
  add_finding<FindingKind::early_window>(
      report.findings, static_cast<double>(early),
      early == 1 ? std::string("this window is") : fmt::format("{} windows are", early));
}

void add_left_out(const std::vector<Timeline>& timelines, Report& report) {
  uint64_t events = 0;
  for (const Timeline& timeline : timelines) events += timeline.process->summary.left_out();
  if (events == 0) return;
  add_finding<FindingKind::left_out>(report.findings, static_cast<double>(events), events);
}

void add_whole_windows(const std::vector<Timeline>& timelines, Report& report) {
  if (!report.whole_windows) return;
  const bool differ = std::any_of(timelines.begin(), timelines.end(),
                                  [](const Timeline& timeline) { return timeline.ranks_differ; });
  if (const auto cut = short_window(*timelines.front().process)) {
    add_finding<FindingKind::whole_windows>(
        report.findings, static_cast<double>(report.steps.size()), cut->why, "record " + cut->what);
    return;
  }
  add_finding<FindingKind::whole_windows>(
      report.findings, static_cast<double>(report.steps.size()),
      differ ? "the order of the GPU's work shows other steps on some ranks than on others"
             : "none was found in the order of the GPU's work",
      is_left_out(*timelines.front().process, Activity::step)
          ? "record the activity step (GPUPROF_ACTIVITIES)"
          : "mark steps (gpuprof run --step; prof.step() of torch.profiler)");
}

void add_undivided(const std::vector<Timeline>& timelines, Report& report) {
  const auto count = static_cast<size_t>(
      std::count_if(timelines.begin(), timelines.end(),
                    [](const Timeline& timeline) { return timeline.undivided; }));
  if (count == 0) return;
  add_finding<FindingKind::undivided>(report.findings, static_cast<double>(count), count,
                                      count == 1 ? "window is" : "windows are");
}

// Of marked steps: those that were found say their share of the window (steps_found).
void add_between_steps(const std::vector<Timeline>& timelines, Report& report) {
  double between = 0, all = 0;
  for (const Timeline& timeline : timelines) {
    if (timeline.steps.empty() || timeline.period_confidence > 0) continue;
    between += static_cast<double>(total(times_between(timeline.steps)));
    all += static_cast<double>(timeline.steps.back().end - timeline.steps.front().begin);
  }
  const double percent = all > 0 ? 100 * between / all : 0;
  if (percent < finding_row(FindingKind::between_steps).limit.value) return;
  add_finding<FindingKind::between_steps>(report.findings, percent, percent);
}

// Whose steps are whole: what the end had is missing all the same.
void add_cut_files(const std::vector<Timeline>& timelines, Report& report) {
  const auto count = std::count_if(timelines.begin(), timelines.end(), [](const Timeline& each) {
    return each.process->source == Source::kineto &&
           each.process->completeness == Completeness::truncated;
  });
  if (count == 0) return;
  std::string text =
      fmt::format("{} cut off: no figure has what was behind the cut",
                  count == 1 ? std::string("a trace was") : fmt::format("{} traces were", count));
  report.findings.push_back({FindingKind::untimed_steps, std::move(text), 0});
}

void add_untimed_steps(const std::vector<Timeline>& timelines, Report& report) {
  size_t most = 0;
  bool recovered = false;
  for (const Timeline& timeline : timelines) {
    most = std::max(most, timeline.untimed_steps);
    recovered = recovered || (timeline.untimed_steps && timeline.process->recovered);
  }
  if (most == 0) return add_cut_files(timelines, report);
  if (recovered) {
    add_finding<FindingKind::untimed_steps>(report.findings, static_cast<double>(most),
                                            "a process was killed or is still running", most,
                                            "CUPTI still had GPU times of them");
    return;
  }
  std::string text = fmt::format(
      "a file was cut off: the report leaves out up to {} steps, because part of their GPU work is "
      "missing",
      most);
  report.findings.push_back(
      {FindingKind::untimed_steps, std::move(text), static_cast<double>(most)});
}

}  // namespace

void add_step_findings(const std::vector<Timeline>& timelines, Report& report) {
  report.step_source = step_source_of(timelines);
  add_clock_steps(timelines, report);
  add_nested_steps(timelines, report);
  add_joined_waits(timelines, report);
  add_undivided(timelines, report);
  add_period(timelines, report);
  add_between_steps(timelines, report);
  add_whole_windows(timelines, report);
  add_early_windows(timelines, report);
  add_left_out(timelines, report);
  add_untimed_steps(timelines, report);
}

}  // namespace gpuprof::analysis
