// SPDX-License-Identifier: Apache-2.0
// The parts of steps, summed up over pieces of time. Steps may overlap: their ends cut the time
// into slots, each piece is added to the slots that it covers, and a step is the sum of its slots.
// So a piece costs the same however many steps are open.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "tools/analysis/anatomy.h"

namespace gpuprof::analysis {

// Pieces of one part come in order of begin.
class StepSums {
 public:
  // `idle`, `device_idle`: null where they are not asked for.
  StepSums(const std::vector<Step>& steps, IdleTimes* idle, Intervals* device_idle)
      : idle_(idle), device_idle_(device_idle) {
    for (const Step& step : steps) {
      steps_.push_back({step.step, step.begin, step.end});
      edges_.insert(edges_.end(), {step.begin, step.end});
    }
    std::sort(edges_.begin(), edges_.end());
    edges_.erase(std::unique(edges_.begin(), edges_.end()), edges_.end());
    for (size_t i = 0; i + 1 < edges_.size(); ++i) {
      slots_.push_back({0, edges_[i], edges_[i + 1]});
    }
  }

  void add(Interval time, Part part) {
    const auto index = static_cast<size_t>(part);
    const bool idle = index >= kBusyParts && part != Part::unknown;
    if (idle_ && idle && time.begin < time.end) (*idle_)[index].push_back(time);
    each(time, [index](StepAnatomy& slot, int64_t length) { slot.parts[index] += length; });
  }
  void add_overlapped(Interval time, Part part) {
    each(time, [part](StepAnatomy& slot, int64_t length) {
      slot.overlapped[static_cast<size_t>(part) - 1] += length;
    });
  }
  void add_device_idle(Interval time) {
    add(time, Part::other);
    if (device_idle_ && time.begin < time.end) device_idle_->push_back(time);
    each(time, [](StepAnatomy& slot, int64_t length) { slot.device_idle += length; });
  }
  // `waited` of it.
  void add_no_processor(Interval time, Part part, int64_t waited) {
    if (waited <= 0 || time.begin >= time.end) return;
    const double share = static_cast<double>(waited) / static_cast<double>(time.end - time.begin);
    each(time, [part, share](StepAnatomy& slot, int64_t length) {
      slot.no_processor[static_cast<size_t>(part)] +=
          static_cast<int64_t>(share * static_cast<double>(length));
    });
  }
  // No piece will begin before that.
  void pass(int64_t time) {
    while (first_ < slots_.size() && slots_[first_].end <= time) ++first_;
  }

  // The steps. Nothing may be added afterwards.
  std::vector<StepAnatomy> take() {
    for (size_t i = 1; i < slots_.size(); ++i) add_sums(slots_[i], slots_[i - 1], 1);
    for (StepAnatomy& step : steps_) {
      if (step.begin >= step.end) continue;
      add_sums(step, slots_[edge_at(step.end) - 1], 1);
      if (const size_t begin = edge_at(step.begin); begin > 0) {
        add_sums(step, slots_[begin - 1], -1);
      }
    }
    return std::move(steps_);
  }

 private:
  size_t edge_at(int64_t time) const {
    return static_cast<size_t>(std::lower_bound(edges_.begin(), edges_.end(), time) -
                               edges_.begin());
  }

  static void add_sums(StepAnatomy& to, const StepAnatomy& from, int64_t times) {
    for (size_t i = 0; i < kParts; ++i) {
      to.parts[i] += times * from.parts[i];
      to.no_processor[i] += times * from.no_processor[i];
    }
    for (size_t i = 0; i < to.overlapped.size(); ++i) {
      to.overlapped[i] += times * from.overlapped[i];
    }
    to.device_idle += times * from.device_idle;
  }

  template <typename Add>
  void each(Interval time, const Add& add) {
    if (time.begin >= time.end) return;
    auto slot = slots_.begin() + static_cast<std::ptrdiff_t>(first_);
    if (slot != slots_.end() && slot->end <= time.begin) {
      slot = std::partition_point(
          slot, slots_.end(), [&](const StepAnatomy& before) { return before.end <= time.begin; });
    }
    for (; slot != slots_.end() && slot->begin < time.end; ++slot) {
      add(*slot, std::min(time.end, slot->end) - std::max(time.begin, slot->begin));
    }
  }

  IdleTimes* idle_;
  Intervals* device_idle_;
  std::vector<StepAnatomy> steps_;
  std::vector<int64_t> edges_;      // begins and ends of steps, in order
  std::vector<StepAnatomy> slots_;  // from each edge to the next
  size_t first_ = 0;
};

}  // namespace gpuprof::analysis
