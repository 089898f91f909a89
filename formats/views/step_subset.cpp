// SPDX-License-Identifier: Apache-2.0
#include "formats/views/step_subset.h"

#include <algorithm>
#include <map>
#include <set>
#include <unordered_set>
#include <utility>
#include <vector>

#include "formats/trace/process_key.h"
#include "formats/views/memory_before.h"
#include "formats/views/step_places.h"

namespace gpuprof {
namespace {

// Of steps that follow each other.
struct Span {
  int64_t begin, end;
};

class Subset {
 public:
  // `all`: the steps of the window, in order; `kept`: which of them, at least one.
  Subset(const Trace& trace, Process& process, const std::vector<Step>& all,
         const std::vector<bool>& kept)
      : trace_(trace), process_(process), all_(all), places_(trace, process, all), kept_(kept) {
    for (size_t i = 0; i < all.size(); ++i) {
      if (!kept[i]) continue;
      if (joins(i)) {
        spans_.back().end = all[i].end;
      } else {
        spans_.push_back({all[i].begin, all[i].end});
      }
    }
  }

  void run() {
    find_stretches();
    number_events();
    keep_events();
    keep_references();
    keep_series();
    process_.window_begin = spans_.front().begin;
    process_.window_end = spans_.back().end;
    std::erase_if(process_.budget.left_out, [&](const RecordingBudget::LeftOut& each) {
      return each.since >= process_.window_end;
    });
    process_.summary.set_events(process_.events.size());
  }

 private:
  static constexpr EventIndex kLeftOut = EventIndex::none;

  void find_stretches() {
    std::vector<Stretch>& stretches = process_.stretches;
    stretches.clear();
    for (const Span& span : spans_) stretches.push_back({span.begin, {}, {}, {}});
    LiveMemory live = find_memory_before(trace_, process_, places_, stretches);
    process_.live_memory.clear();
    if (live.is_part && live.allocations.empty() && live.released.empty()) return;
    process_.live_memory.push_back(std::move(live));
  }

  bool keeps(uint32_t event) const {
    const uint32_t place = places_.of(event);
    return place % 2 == 1 ? kept_[place / 2] : joins(place / 2);
  }

  // Whether a step and the one before it are kept, with what lies between them.
  bool joins(size_t step) const {
    if (step == 0 || step >= all_.size() || !kept_[step - 1] || !kept_[step]) return false;
    const Step &before = all_[step - 1], &own = all_[step];
    return before.end == own.begin || before.step + 1 == own.step;
  }

  // The new number of each event that is kept.
  void number_events() {
    numbers_.assign(process_.events.size(), kLeftOut);
    uint32_t next = 0;
    for (Lane& lane : process_.lanes) {
      const uint32_t first = next;
      for (uint32_t i = lane.first_event; i < lane.first_event + lane.event_count; ++i) {
        if (keeps(i)) numbers_[i] = static_cast<EventIndex>(next++);
      }
      lane.first_event = first;
      lane.event_count = next - first;
    }
    count_ = next;
  }

  EventIndex now(EventIndex event) const {
    return event == EventIndex::none ? event : numbers_[number(event)];
  }

  void keep_events() {
    EventTable events(count_, trace_.shapes.size());
    std::vector<EventExtra> extras(1);
    std::vector<EventTable::Writer> writers(1, EventTable::Writer(events, 0));
    each_kept([&](uint32_t i, EventIndex) {
      Event event = process_.events[i];
      if (event.extra) {
        extras.push_back(process_.extra(event));
        event.extra = static_cast<uint32_t>(extras.size() - 1);
      }
      writers[0].add(event);
    });
    events.finish(writers);
    each_kept([&](uint32_t i, EventIndex own) {
      events.set_partner(number(own), now(process_.events.partner_of(i)));
      const EventIndex sibling = now(process_.events.next_sibling_of(i));
      if (sibling != EventIndex::none) events.set_next_sibling(number(own), sibling);
    });
    process_.events = std::move(events);
    process_.extras = std::move(extras);
  }

  template <typename Visit>
  void each_kept(const Visit& visit) const {
    for (uint32_t i = 0; i < numbers_.size(); ++i) {
      if (numbers_[i] != kLeftOut) visit(i, numbers_[i]);
    }
  }

  void keep_references() {
    std::vector<EventIndex> shadowed;
    for (const EventIndex event : process_.shadowed) {
      if (now(event) != kLeftOut) shadowed.push_back(now(event));
    }
    process_.shadowed = std::move(shadowed);
    for (CollectiveKernel& pair : process_.collective_kernels) {
      pair = {now(pair.collective), now(pair.kernel)};
    }
    std::erase_if(process_.collective_kernels, [](const CollectiveKernel& pair) {
      return pair.collective == kLeftOut || pair.kernel == kLeftOut;
    });
    for (ForwardBackward& pair : process_.forward_backward) {
      pair = {now(pair.forward), now(pair.backward), pair.id};
    }
    std::erase_if(process_.forward_backward, [](const ForwardBackward& pair) {
      return pair.forward == kLeftOut || pair.backward == kLeftOut;
    });
    SparseColumn<EventIndex, EventIndex::none> operators;
    process_.operators.each([&](size_t event, EventIndex called_by) {
      if (event >= numbers_.size() || numbers_[event] == kLeftOut) return;
      if (now(called_by) != kLeftOut) operators.set(number(numbers_[event]), now(called_by));
    });
    process_.operators = std::move(operators);
    forget_parents();
  }

  // Python calls name their parents.
  void forget_parents() {
    std::unordered_set<uint64_t> ids;
    const auto each_call = [&](const auto& visit) {
      for (const Lane& lane : process_.lanes) {
        if (!lane.may_have(Kind::module, Kind::python_function)) continue;
        for (const Event event : process_.lane_events(lane)) {
          const Kind kind = trace_.shape(event).kind;
          if (event.extra && (kind == Kind::module || kind == Kind::python_function)) {
            visit(process_.extras[event.extra]);
          }
        }
      }
    };
    each_call([&](const EventExtra& extra) { ids.insert(extra.value); });
    each_call([&](EventExtra& extra) {
      if (extra.address && !ids.contains(extra.address - 1)) extra.address = 0;
    });
  }

  bool inside(int64_t time) const {
    return std::any_of(spans_.begin(), spans_.end(),
                       [time](const Span& span) { return span.begin <= time && time < span.end; });
  }

  // A value holds until the next one.
  template <typename Point>
  void keep_levels(std::vector<Point>& points) const {
    std::vector<Point> out;
    for (const Span& span : spans_) {
      const auto at_begin = std::find_if(points.begin(), points.end(),
                                         [&](const Point& p) { return p.time >= span.begin; });
      if (at_begin != points.begin() && (at_begin == points.end() || at_begin->time > span.begin)) {
        out.push_back(*std::prev(at_begin));
        out.back().time = span.begin;
      }
      for (auto at = at_begin; at != points.end() && at->time < span.end; ++at) out.push_back(*at);
    }
    points = std::move(out);
  }

  void keep_series() {
    const auto outside = [this](const auto& each) { return !inside(each.time); };
    std::erase_if(process_.samples, outside);
    std::erase_if(process_.heap, outside);
    for (CounterSeries& series : process_.counters) keep_levels(series.points);
    for (NamedCounter& series : process_.named_counters) keep_levels(series.points);
    for (ProcessorWaits& waits : process_.processor_waits) std::erase_if(waits.points, outside);
    for (ThreadTimes& times : process_.thread_times) std::erase_if(times.points, outside);
    for (Worker& worker : process_.workers) std::erase_if(worker.samples, outside);
  }

  const Trace& trace_;
  Process& process_;
  const std::vector<Step>& all_;
  StepPlaces places_;
  const std::vector<bool>& kept_;
  std::vector<Span> spans_;
  std::vector<EventIndex> numbers_;  // by old number
  uint32_t count_ = 0;
};

struct WindowSteps {
  std::vector<Step> steps;
  std::vector<bool> kept;
  bool any() const { return std::find(kept.begin(), kept.end(), true) != kept.end(); }
};

WindowSteps steps_of(const Process& process, const std::function<bool(uint64_t)>& wanted) {
  WindowSteps out;
  for (const Step& step : process.window_steps()) {
    out.steps.push_back(step);
    out.kept.push_back(wanted(step.step));
  }
  return out;
}

void keep_window(const Trace& trace, Process& process, const WindowSteps& window) {
  Subset(trace, process, window.steps, window.kept).run();
  process.steps.clear();
  for (size_t i = 0; i < window.steps.size(); ++i) {
    if (window.kept[i]) process.steps.push_back(window.steps[i]);
  }
  process.summary.set_first_step(process.steps.front().step);
  process.summary.set_last_step(process.steps.back().step);
}

}  // namespace

size_t keep_steps(Trace& trace, const std::function<bool(uint64_t step)>& wanted) {
  std::map<ProcessStart, std::map<uint32_t, WindowSteps>> loaders;  // by window
  std::map<ProcessKey, bool> found;                                 // whether it has one
  std::set<const Process*> left_out;
  for (Process& process : trace.processes) {
    if (process.is_data_worker()) continue;
    const WindowSteps window = steps_of(process, wanted);
    bool& any = found[key_of(process)];
    any = any || window.any();
    if (!window.any()) {
      left_out.insert(&process);
      continue;
    }
    keep_window(trace, process, window);
    WindowSteps& own = loaders[start_of(process)][process.header.window()];
    own.steps.insert(own.steps.end(), window.steps.begin(), window.steps.end());
    own.kept.insert(own.kept.end(), window.kept.begin(), window.kept.end());
  }
  for (Process& process : trace.processes) {
    if (!process.is_data_worker()) continue;
    const auto loader = loader_of(process, loaders);
    const bool any = loader != loaders.end() && loader->second.contains(process.header.window());
    if (!any) {
      left_out.insert(&process);
      continue;
    }
    const WindowSteps& window = loader->second.at(process.header.window());
    Subset(trace, process, window.steps, window.kept).run();
  }
  std::erase_if(trace.processes,
                [&](const Process& process) { return left_out.contains(&process); });
  return static_cast<size_t>(
      std::count_if(found.begin(), found.end(), [](const auto& each) { return !each.second; }));
}

}  // namespace gpuprof
