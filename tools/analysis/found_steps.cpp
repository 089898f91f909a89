// SPDX-License-Identifier: Apache-2.0
#include "tools/analysis/found_steps.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <map>
#include <span>
#include <utility>

#include "formats/core/period/period.h"
#include "tools/analysis/nested_steps.h"
#include "tools/analysis/walks.h"

namespace gpuprof::analysis {
namespace {

// Of a trace's GPU work, by count and by time: what steps that nobody marked must hold. With less,
// most of what the program did lies outside of them.
constexpr double kLeastOfTrace = 0.5;
// Of a window's time: what they must hold to take the place of stretches of wall time, which have
// the waits between them, too.
constexpr double kLeastOfTime = 0.8;
// Pieces of work: what repeats in a bracket and is shorter may be the layers of its only step.
constexpr double kLongerThanLayer = 30;

// What one call issued, or one piece of it.
struct Issued {
  int64_t at, end;  // of its call, of the work
  int64_t busy;     // sum of its work
  uint32_t works, label;
};

std::vector<Issued> works_as_issued(const Timeline& timeline) {
  std::vector<Issued> order;
  for (auto work = all_work(timeline); !work.at_end(); ++work) {
    const int64_t issued = timeline.call_begin_of(*work);
    if (issued == kNotIssued) continue;
    const uint32_t label = number(timeline.shape(work->event).label);
    order.push_back({issued, work->end, work->end - work->begin, 1, label});
  }
  std::stable_sort(order.begin(), order.end(),
                   [](const Issued& a, const Issued& b) { return a.at < b.at; });
  return order;
}

// A call's pieces of work (a graph's) as one, whose label tells all of theirs.
std::vector<Issued> calls_as_issued(const std::vector<Issued>& works) {
  constexpr uint32_t kPrime = 16'777'619;  // of FNV-1a, by words
  std::vector<Issued> out;
  for (const Issued& work : works) {
    if (out.empty() || out.back().at != work.at) {
      out.push_back(work);
      continue;
    }
    Issued& call = out.back();
    call.end = std::max(call.end, work.end);
    call.busy += work.busy;
    call.works += work.works;
    call.label = (call.label * kPrime) ^ work.label;
  }
  return out;
}

double share_of_window(const Process& process, const std::vector<Step>& steps) {
  double inside = 0;
  for (const Step& step : steps) inside += static_cast<double>(step.end - step.begin);
  const auto window = static_cast<double>(process.window_end - process.window_begin);
  return window > 0 ? inside / window : 1;
}

// A step ends where the next one begins, or, where something else stands between the two, with
// its last work. Each must begin with a call of its own, and they must hold most of the work. In
// place of other steps, of a bracket or of the clock, there is to be no doubt.
bool take_steps(Timeline& timeline, const std::vector<Issued>& order) {
  std::vector<uint32_t> labels;
  for (const Issued& each : order) labels.push_back(each.label);
  Period period;
  if (!find_period(labels.data(), labels.size(), period)) return false;
  const bool replaces = !timeline.steps.empty(), by_clock = goes_by_clock(*timeline.process);
  const bool unsure =
      period.confidence <= kLeastConfidence || (period.length < kLongerThanLayer && !by_clock);
  if (unsure && replaces) return false;
  const auto length = static_cast<size_t>(period.length);
  std::vector<Step> steps;
  int64_t busy = 0, all_busy = 0;
  uint64_t inside = 0, all = 0;
  for (const Issued& each : order) {
    all += each.works;
    all_busy += each.busy;
  }
  for (size_t i = 0; i < period.begins.size(); ++i) {
    const size_t first = period.begins[i];
    const bool last = i + 1 == period.begins.size();
    const size_t next = last ? order.size() : period.begins[i + 1];
    const bool alone = last || next - first > length + length / 3;
    const size_t end = alone ? std::min(first + length, order.size()) : next;
    steps.push_back({i, order[first].at, alone ? order[end - 1].end : order[next].at});
    if (steps.back().end <= steps.back().begin) return false;
    if (first > 0 && order[first - 1].at == order[first].at) return false;
    for (size_t at = first; at < end; ++at) {
      inside += order[at].works;
      busy += order[at].busy;
    }
  }
  const double works = static_cast<double>(inside) / static_cast<double>(all);
  const double time = all_busy > 0 ? static_cast<double>(busy) / static_cast<double>(all_busy) : 1;
  if (std::min(works, time) < kLeastOfTrace) return false;
  const double of_window = share_of_window(*timeline.process, steps);
  if (replaces && by_clock && of_window < kLeastOfTime) return false;
  if (replaces) timeline.nested_source = "period";
  timeline.steps = std::move(steps);
  timeline.period_confidence = period.confidence;
  timeline.found_share = std::min(works, time);
  timeline.found_time_share = of_window;
  return true;
}

// Without marks of steps, those that the order of work tells; where these are layers of one
// graph, or lie in a small part of the trace, those that the order of calls tells.
void find_steps(Timeline& timeline) {
  constexpr size_t kMostWork = 500'000;
  if (timeline.works - timeline.orphans > kMostWork) return;
  const std::vector<Issued> works = works_as_issued(timeline);
  if (take_steps(timeline, works)) return;
  const std::vector<Issued> calls = calls_as_issued(works);
  if (calls.size() < works.size()) take_steps(timeline, calls);
}

// The work that was issued in each step, in order of issue.
using StepWorks = std::vector<std::vector<uint32_t>>;

StepWorks works_of_steps(const Timeline& timeline) {
  StepWorks out(timeline.steps.size());
  size_t step = 0;
  for (const Issued& each : works_as_issued(timeline)) {
    while (step < out.size() && timeline.steps[step].end <= each.at) ++step;
    if (step == out.size()) break;
    if (timeline.steps[step].begin <= each.at) out[step].push_back(each.label);
  }
  return out;
}

// 0 to 1: what two steps have in common, of all that they hold.
double likeness(std::vector<uint32_t> a, std::vector<uint32_t> b) {
  if (a.empty() && b.empty()) return 1;
  std::sort(a.begin(), a.end());
  std::sort(b.begin(), b.end());
  std::vector<uint32_t> both;
  std::set_intersection(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(both));
  const auto common = static_cast<double>(both.size());
  return common / (static_cast<double>(a.size() + b.size()) - common);
}

// After how many steps the same work comes back, at least twice, all along; 0: it does not.
size_t round_of(const StepWorks& works) {
  for (size_t round = 1; 2 * round <= works.size(); ++round) {
    bool same = true;
    for (size_t i = 0; i + round < works.size() && same; ++i) same = works[i] == works[i + round];
    if (same) return round;
  }
  return 0;
}

// Iterations are alike but for what is done every so often; parts of one are not.
bool are_parts(const StepWorks& works, size_t round) {
  constexpr double kIterations = 0.5;
  double sum = 0;
  for (size_t i = 0; i < round; ++i) sum += likeness(works[i], works[(i + 1) % round]);
  return sum < kIterations * static_cast<double>(round);
}

bool chose_itself(const Process& process) {
  const auto& settings = process.header.setting();
  return std::any_of(settings.begin(), settings.end(), [](const dump::Setting& each) {
    return each.name() == "GPUPROF_STEP" && each.value() == "auto";
  });
}

// Whether steps of two ranks with the same number are of the same time.
bool same_steps(const Timeline& a, const Timeline& b) {
  if (a.steps.size() != b.steps.size()) return false;
  for (size_t i = 0; i < a.steps.size(); ++i) {
    const Step &one = a.steps[i], &other = b.steps[i];
    if (std::abs(one.begin - other.begin) * 2 > one.end - one.begin) return false;
  }
  return true;
}

bool has_found_steps(const Timeline& timeline) {
  return timeline.period_confidence > 0 || !timeline.nested_source.empty();
}

// The window's own steps again, but those at its end without GPU times.
void take_back(Timeline& timeline) {
  const std::span<const Step> own = timeline.process->window_steps();
  const int64_t end = timeline.untimed_steps == 0 ? INT64_MAX
                      : timeline.steps.empty()    ? INT64_MIN
                                                  : timeline.steps.back().end;
  timeline.steps.assign(own.begin(), own.end());
  std::erase_if(timeline.steps, [end](const Step& step) { return step.end > end; });
  timeline.nested_source.clear();
  timeline.joined_waits = 0;
  timeline.period_confidence = 0;
}

}  // namespace

void look_inside(Timeline& timeline) {
  if (goes_by_clock(*timeline.process) && !timeline.steps.empty()) return find_steps(timeline);
  NestedSteps nested = find_nested_steps(timeline);
  timeline.one_iteration = nested.one_iteration;
  if (nested.one_iteration && !timeline.steps.empty()) return;
  if (nested.steps.empty()) return find_steps(timeline);
  timeline.steps = std::move(nested.steps);
  timeline.nested_source = std::move(nested.source);
}

void join_waits(Timeline& timeline) {
  constexpr size_t kMostWork = 500'000;
  const Process& process = *timeline.process;
  if (process.step_source != "sync:1" || !chose_itself(process)) return;
  if (timeline.steps.size() < 4 || timeline.works - timeline.orphans > kMostWork) return;
  const StepWorks works = works_of_steps(timeline);
  const size_t round = round_of(works);
  if (round < 2 || !are_parts(works, round)) return;
  std::vector<Step> joined;
  for (size_t first = 0; first + round <= timeline.steps.size(); first += round) {
    const Step &from = timeline.steps[first], &to = timeline.steps[first + round - 1];
    joined.push_back({from.step / round, from.begin, to.end});
  }
  timeline.steps = std::move(joined);
  timeline.nested_source = fmt::format("sync:{}", round);
  timeline.joined_waits = static_cast<uint32_t>(round);
}

void compare_found_steps(std::vector<Timeline>& timelines) {
  std::map<uint32_t, std::vector<Timeline*>> windows;
  for (Timeline& timeline : timelines) {
    if (timeline.works) windows[timeline.process->header.window()].push_back(&timeline);
  }
  for (const auto& [window, of_window] : windows) {
    const std::vector<Timeline*>& ranks = of_window;  // clang 14 captures no bindings
    const auto found = [](const Timeline* rank) { return has_found_steps(*rank); };
    const auto agrees = [&](const Timeline* rank) { return same_steps(*ranks.front(), *rank); };
    if (std::none_of(ranks.begin(), ranks.end(), found)) continue;
    if (std::all_of(ranks.begin(), ranks.end(), agrees)) continue;
    for (Timeline* const rank : ranks) {
      if (!found(rank)) continue;
      take_back(*rank);
      rank->ranks_differ = true;
    }
  }
}

void leave_out_undivided(std::vector<Timeline>& timelines) {
  if (std::none_of(timelines.begin(), timelines.end(), has_found_steps)) return;
  for (Timeline& timeline : timelines) {
    if (has_found_steps(timeline) || timeline.one_iteration || !is_bracketed(*timeline.process) ||
        timeline.steps.empty()) {
      continue;
    }
    timeline.steps.clear();
    timeline.undivided = true;
  }
}

void keep_found_steps_apart(std::vector<Timeline>& timelines) {
  const auto by_clock = [](const Timeline& timeline) { return timeline.has_clock_steps(); };
  if (std::none_of(timelines.begin(), timelines.end(), by_clock)) return;
  for (Timeline& timeline : timelines) {
    if (goes_by_clock(*timeline.process) && has_found_steps(timeline)) take_back(timeline);
  }
}

}  // namespace gpuprof::analysis
