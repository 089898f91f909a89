// SPDX-License-Identifier: Apache-2.0
#include "tools/analysis/main_thread.h"

#include <algorithm>
#include <map>
#include <set>
#include <string_view>

#include "formats/core/own_time.h"
#include "formats/views/slices.h"

namespace gpuprof::analysis {
namespace {

// Whether marks of this source are made by the program's own loop. Calls of NCCL, launches and
// graphs may come from autograd's thread.
bool marks_come_from_the_loop(std::string_view source) {
  return source == "optimizer" || source == "manual" || source == "forward" ||
         source.starts_with("nvtx");
}

class MainThread {
 public:
  explicit MainThread(const Timeline& timeline)
      : timeline_(timeline), process_(*timeline.process) {}

  uint32_t find() const {
    const auto any = [](uint32_t) { return true; };
    uint32_t found = most([&](uint32_t i) { return timeline_.threads[i].optimizer_steps; }, any);
    if (found != kNone) return found;
    found = by_step_marks();
    if (found != kNone) return found;
    const uint32_t first = first_thread();
    found = by_data_loading(first);
    if (found != kNone) return found;
    const std::set<uint32_t> python = threads_of_python();
    const auto calls = [&](uint32_t i) { return timeline_.threads[i].call_count; };
    const uint32_t busiest = most(calls, [&](uint32_t i) { return runs(python, i); });
    if (first != kNone && !stands_aside(first, busiest)) return first;
    if (busiest != kNone) return busiest;
    found = most(calls, any);
    return found != kNone || timeline_.threads.empty() ? found : 0;
  }

 private:
  // The thread of which there is most, and some; of equal ones the first in order.
  template <typename Count, typename Among>
  uint32_t most(const Count& count, const Among& among) const {
    uint32_t out = kNone, best = 0;
    for (uint32_t i = 0; i < timeline_.threads.size(); ++i) {
      if (!among(i) || count(i) <= best) continue;
      out = i;
      best = count(i);
    }
    return out;
  }

  uint32_t by_step_marks() const {
    if (process_.source != Source::dump || !marks_come_from_the_loop(timeline_.step_source()))
      return kNone;
    std::map<uint64_t, uint32_t> marks;  // by thread
    for (const Lane& lane : process_.lanes) {
      if (lane.type != LaneType::overhead) continue;
      for (uint32_t i = lane.first_event; i < lane.first_event + lane.event_count; ++i) {
        const Shape& shape = timeline_.shape(i);
        if (shape.cupti_type == static_cast<uint32_t>(OwnTime::step) &&
            shape.object_kind == kThreadObject) {
          ++marks[process_.extras[timeline_.events().extra_of(i)].address];
        }
      }
    }
    return most(
        [&](uint32_t i) {
          const auto found = marks.find(timeline_.threads[i].id);
          return found == marks.end() ? 0 : found->second;
        },
        [](uint32_t) { return true; });
  }

  // The process's own, if it makes any call.
  uint32_t first_thread() const {
    const uint32_t wanted = gpuprof::main_thread(process_);
    return most([&](uint32_t i) { return active(i); },
                [&](uint32_t i) { return timeline_.threads[i].id == wanted; });
  }

  uint32_t active(uint32_t i) const {
    const HostThread& thread = timeline_.threads[i];
    return thread.call_count + static_cast<uint32_t>(thread.data_loading.size());
  }

  uint32_t by_data_loading(uint32_t first) const {
    const uint32_t least = first == kNone ? 0 : timeline_.threads[first].call_count;
    return most(
        [&](uint32_t i) { return static_cast<uint32_t>(timeline_.threads[i].data_loading.size()); },
        [&](uint32_t i) { return timeline_.threads[i].call_count >= least; });
  }

  // In order of thread, as samples are; one sample with Python's frames is enough.
  std::set<uint32_t> threads_of_python() const {
    std::set<uint32_t> out;
    for (const HostSample& sample : process_.samples) {
      if (out.contains(sample.thread)) continue;
      for (const uint64_t address : process_.stacks[sample.stack]) {
        const auto frames = process_.stacks.frames(address);
        if (std::any_of(frames.begin(), frames.end(), [](const Frame& f) { return f.python; })) {
          out.insert(sample.thread);
          break;
        }
      }
    }
    return out;
  }
  bool runs(const std::set<uint32_t>& python, uint32_t i) const {
    return python.contains(timeline_.threads[i].id);
  }

  bool stands_aside(uint32_t first, uint32_t busiest) const {
    return busiest != kNone && busiest != first && timeline_.steps.size() > active(first) &&
           timeline_.threads[busiest].call_count >= timeline_.steps.size();
  }

  const Timeline& timeline_;
  const Process& process_;
};

}  // namespace

uint32_t find_main_thread(const Timeline& timeline) { return MainThread(timeline).find(); }

}  // namespace gpuprof::analysis
