// SPDX-License-Identifier: Apache-2.0
#include "tools/analysis/nested_steps.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <utility>

#include "formats/core/steps/step_names.h"
#include "tools/analysis/statistics.h"

namespace gpuprof::analysis {
namespace {

constexpr size_t kFewestSteps = 2;
constexpr double kWholeStep = 0.75;  // of the launches of a usual step: a stretch that is one
constexpr double kMostOfStep = 0.5;  // of a step's time: a range that lasts for all of it
constexpr size_t kRarest = 20;       // steps: a rarer optimizer is an outer loop's (DiLoCo)

struct Range {
  int64_t begin, end;
  std::string_view text;
  bool ended;  // it has an end, and that is recorded
};
using Ranges = std::vector<Range>;
using NamedRanges = std::map<std::pair<uint32_t, std::string_view>, Ranges>;  // by thread and name

class StepFinder {
 public:
  explicit StepFinder(const Timeline& timeline)
      : timeline_(timeline),
        trace_(*timeline.trace),
        begin_(timeline.process->window_begin),
        end_(timeline.process->window_end) {
    collect();
  }

  NestedSteps find() const {
    for (NestedSteps found : {by_ranges(), by_optimizers(), by_engine(), by_graphs()}) {
      if (found.steps.size() >= kFewestSteps) return found;
    }
    NestedSteps none;
    none.one_iteration = !ranges_.empty() || !optimizers_.empty() || !engine_.empty();
    return none;
  }

 private:
  struct Optimizer {
    std::string_view name;
    size_t launches;
    auto operator<=>(const Optimizer&) const = default;
  };
  struct Run {
    Range first;
    int64_t end;  // of the last
  };
  struct Moment {
    int64_t time;
    uint32_t thread;
    auto operator<=>(const Moment&) const = default;
  };
  struct GraphLaunch {
    int64_t begin;
    uint64_t graph;
  };

  void collect();
  void take(uint32_t thread, uint32_t event);
  size_t launches_in(int64_t begin, int64_t end) const;
  double usual_launches(const std::vector<int64_t>& boundaries) const;
  std::vector<Step> between(const std::vector<int64_t>& boundaries) const;
  static bool any_between(const std::vector<Moment>& moments, int64_t begin, int64_t end,
                          uint32_t thread, bool of_thread);
  bool separates(uint32_t thread, bool alone, int64_t begin, int64_t end) const;
  std::vector<Run> optimizer_runs(uint32_t thread, const Ranges& ranges) const;
  std::vector<int64_t> optimizer_ends() const;
  static void number_by_texts(const Ranges& ranges, std::vector<Step>& steps);
  NestedSteps by_ranges() const;
  NestedSteps by_engine() const;
  NestedSteps by_optimizers() const;
  NestedSteps by_graphs() const;

  const Timeline& timeline_;
  const Trace& trace_;
  const int64_t begin_, end_;
  std::vector<int64_t> launches_;             // when each began, in order
  std::vector<Moment> launched_, backwards_;  // likewise
  std::vector<bool> is_backward_;             // by shape
  NamedRanges ranges_, engine_;
  std::map<uint32_t, Ranges> optimizers_;                // by thread
  std::map<uint32_t, std::vector<GraphLaunch>> graphs_;  // by thread
};

void StepFinder::collect() {
  for (const Shape& shape : trace_.shapes) {
    is_backward_.push_back(shape.kind == Kind::op &&
                           trace_.text(shape.label).find("Backward") != std::string_view::npos);
  }
  for (uint32_t i = 0; i < timeline_.threads.size(); ++i) {
    const HostThread& thread = timeline_.threads[i];
    for (uint32_t event = thread.first_event; event < thread.end_event; ++event) take(i, event);
  }
  std::sort(launches_.begin(), launches_.end());
  std::sort(launched_.begin(), launched_.end());
  std::sort(backwards_.begin(), backwards_.end());
}

void StepFinder::take(uint32_t thread, uint32_t event) {
  const Shape& shape = timeline_.shape(event);
  const int64_t begin = timeline_.events().begin_of(event);
  if (begin < begin_ || begin > end_) return;
  if (shape.kind == Kind::launch && timeline_.threads[thread].calls.test(event)) {
    launches_.push_back(begin);
    launched_.push_back({begin, thread});
    if (trace_.text(shape.name).find("GraphLaunch") != std::string_view::npos) {
      graphs_[thread].push_back({begin, shape.function});
    }
    return;
  }
  if (is_backward_[number(timeline_.events().shape_of(event))])
    backwards_.push_back({begin, thread});
  const bool range = shape.kind == Kind::nvtx_range || shape.kind == Kind::annotation;
  if (!range && shape.kind != Kind::nvtx_mark) return;
  const std::string_view text = trace_.text(shape.label);
  const int64_t end = timeline_.events().end_of(event);
  const bool ended = range && !(shape.flags & kFlagOpenEnd);
  if (const std::string_view name = likely_step_name(text); !name.empty()) {
    ranges_[{thread, name}].push_back({begin, end, text, ended});
  } else if (const std::string_view engine = engine_step_name(text); !engine.empty()) {
    engine_[{thread, engine}].push_back({begin, end, text, ended});
  } else if (names_optimizer_step(text) && ended) {
    optimizers_[thread].push_back({begin, end, text, true});
  }
}

size_t StepFinder::launches_in(int64_t begin, int64_t end) const {
  const auto first = std::lower_bound(launches_.begin(), launches_.end(), begin);
  return static_cast<size_t>(std::lower_bound(first, launches_.end(), end) - first);
}

double StepFinder::usual_launches(const std::vector<int64_t>& boundaries) const {
  std::vector<double> counts;
  for (size_t i = 1; i < boundaries.size(); ++i) {
    counts.push_back(static_cast<double>(launches_in(boundaries[i - 1], boundaries[i])));
  }
  return lower_median(std::move(counts));
}

std::vector<Step> StepFinder::between(const std::vector<int64_t>& boundaries) const {
  std::vector<int64_t> all = boundaries;
  if (const double usual = usual_launches(boundaries); usual > 0) {
    const auto whole = [&](int64_t begin, int64_t end) {
      const auto count = static_cast<double>(launches_in(begin, end));
      return begin < end && count >= kWholeStep * usual && count * kWholeStep <= usual;
    };
    if (whole(begin_, all.front())) all.insert(all.begin(), begin_);
    if (whole(all.back(), end_)) all.push_back(end_);
  }
  std::vector<Step> out;
  for (size_t i = 1; i < all.size(); ++i) {
    if (all[i] > all[i - 1]) out.push_back({i - 1, all[i - 1], all[i]});
  }
  return out;
}

// "step 12", "step 13": where each text has the number after the one before.
void StepFinder::number_by_texts(const Ranges& ranges, std::vector<Step>& steps) {
  const auto number_of = [](std::string_view text) -> std::optional<uint64_t> {
    const size_t digits = text.find_last_not_of("0123456789") + 1;
    uint64_t out = 0;
    const auto [end, error] = std::from_chars(text.data() + digits, text.data() + text.size(), out);
    if (digits == text.size() || error != std::errc()) return {};
    return out;
  };
  const std::optional<uint64_t> first = number_of(ranges.front().text);
  for (size_t i = 0; i < steps.size(); ++i) {
    if (!first || number_of(ranges[i].text) != *first + i) return;
  }
  for (Step& step : steps) step.step += *first;
}

// Of several names the one whose ranges begin first, as `auto` takes them. A step lasts until the
// next begins; the last one until its own end, if ranges are about as long as steps.
NestedSteps by_first(const NamedRanges& named, const Ranges*& best) {
  std::string_view name;
  for (const auto& [key, ranges] : named) {
    if (ranges.size() < kFewestSteps) continue;
    if (best && best->front().begin <= ranges.front().begin) continue;
    best = &ranges;
    name = key.second;
  }
  if (!best) return {};
  NestedSteps out;
  std::vector<double> lengths;
  for (size_t i = 0; i + 1 < best->size(); ++i) {
    const int64_t begin = (*best)[i].begin, end = (*best)[i + 1].begin;
    out.steps.push_back({i, begin, end});
    lengths.push_back(static_cast<double>(end - begin));
  }
  const Range& last = best->back();
  if (last.ended &&
      static_cast<double>(last.end - last.begin) >= kMostOfStep * lower_median(lengths)) {
    out.steps.push_back({out.steps.size(), last.begin, last.end});
  }
  out.source = fmt::format("nvtx:{}", name);
  return out;
}

NestedSteps StepFinder::by_ranges() const {
  const Ranges* best = nullptr;
  NestedSteps out = by_first(ranges_, best);
  if (best) number_by_texts(*best, out.steps);
  return out;
}

// A number at the end of these is of requests.
NestedSteps StepFinder::by_engine() const {
  const Ranges* best = nullptr;
  return by_first(engine_, best);
}

// `of_thread`: on that thread; else on any other.
bool StepFinder::any_between(const std::vector<Moment>& moments, int64_t begin, int64_t end,
                             uint32_t thread, bool of_thread) {
  auto at = std::lower_bound(moments.begin(), moments.end(), Moment{begin, 0});
  while (at != moments.end() && at->time < end && (at->thread == thread) != of_thread) ++at;
  return at != moments.end() && at->time < end;
}

// Whether a backward pass begins between two steps of optimizers on this thread. Those that step in
// the backward pass itself have its nodes between them: then whether another thread works, as that
// of the forward pass does. `alone`: none does.
bool StepFinder::separates(uint32_t thread, bool alone, int64_t begin, int64_t end) const {
  if (any_between(backwards_, begin, end, thread, false)) return true;
  return any_between(backwards_, begin, end, thread, true) &&
         (alone || any_between(launched_, begin, end, thread, false));
}

// Optimizers that step without a backward pass between them, as one for each group of parameters
// or part of the model, end one step. Without any backward pass nothing is known of that.
std::vector<StepFinder::Run> StepFinder::optimizer_runs(uint32_t thread,
                                                        const Ranges& ranges) const {
  const bool alone = !any_between(launched_, INT64_MIN, INT64_MAX, thread, false);
  std::vector<Run> out;
  for (const Range& range : ranges) {
    if (out.empty() || backwards_.empty() ||
        separates(thread, alone, out.back().end, range.begin)) {
      out.push_back({range, range.end});
    } else {
      out.back().end = std::max(out.back().end, range.end);
    }
  }
  return out;
}

// Those that end steps: of several optimizers, told apart by name and by how much they launch, the
// first, unless another steps half as often or less.
std::vector<int64_t> StepFinder::optimizer_ends() const {
  const auto most = std::max_element(
      optimizers_.begin(), optimizers_.end(),
      [](const auto& a, const auto& b) { return a.second.size() < b.second.size(); });
  if (most == optimizers_.end()) return {};
  const std::vector<Run> runs = optimizer_runs(most->first, most->second);
  std::map<Optimizer, std::vector<int64_t>> ends;
  bool alike = true;
  for (const bool by_launches : {true, false}) {
    ends.clear();
    for (const auto& [range, end] : runs) {
      const size_t launches = by_launches ? launches_in(range.begin, range.end) : 0;
      ends[{range.text, launches}].push_back(end);
    }
    alike = std::none_of(ends.begin(), ends.end(),
                         [](const auto& each) { return each.second.size() < kFewestSteps; });
    if (alike) break;
  }
  const std::vector<int64_t>* leader = nullptr;
  for (const auto& [optimizer, own] : ends) {
    if (!leader || own.front() < leader->front()) leader = &own;
  }
  const size_t first = leader->size();
  for (const auto& [optimizer, own] : ends) {
    if (own.size() >= kFewestSteps && 2 * own.size() <= first && first <= kRarest * own.size() &&
        own.size() < leader->size()) {
      leader = &own;
    }
  }
  return *leader;
}

NestedSteps StepFinder::by_optimizers() const {
  const std::vector<int64_t> ends = optimizer_ends();
  if (ends.size() < kFewestSteps) return {};
  return {between(ends), "optimizer", false};
}

// As `auto` does: every Nth launch, N from one launch of a graph to its next.
NestedSteps StepFinder::by_graphs() const {
  for (const auto& [thread, launches] : graphs_) {
    for (size_t every = 1; every * kFewestSteps < launches.size(); ++every) {
      size_t same = every;
      while (same < launches.size() && launches[same].graph == launches[same - every].graph) ++same;
      if (same < launches.size()) continue;
      std::vector<int64_t> boundaries;
      for (size_t i = 0; i < launches.size(); i += every) boundaries.push_back(launches[i].begin);
      return {between(boundaries), fmt::format("graph:{}", every), false};
    }
  }
  return {};
}

}  // namespace

NestedSteps find_nested_steps(const Timeline& timeline) { return StepFinder(timeline).find(); }

}  // namespace gpuprof::analysis
