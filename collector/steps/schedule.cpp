// SPDX-License-Identifier: Apache-2.0
#include "collector/steps/schedule.h"

namespace gpuprof {
namespace {

uint64_t cycle_steps(const ScheduleSpec& spec) {
  return uint64_t{spec.wait} + spec.warmup + spec.active;
}

}  // namespace

Schedule::Schedule(const ScheduleSpec& spec) : spec_(spec), phase_(Phase::waiting) {}

Phase Schedule::phase_of(uint64_t index, uint64_t* window) const {
  *window = 0;
  if (index < spec_.skip_first) return Phase::waiting;
  uint64_t position = index - spec_.skip_first;
  if (spec_.skip_first_wait != 0) position += spec_.wait;
  *window = position / cycle_steps(spec_);
  if (spec_.repeat != 0 && *window >= spec_.repeat) {
    *window = spec_.repeat;
    return Phase::done;
  }
  position %= cycle_steps(spec_);
  if (position < spec_.wait) return Phase::waiting;
  return position < uint64_t{spec_.wait} + spec_.warmup ? Phase::warmup : Phase::active;
}

uint64_t Schedule::first_step(uint64_t window) const {
  const uint64_t left_out = spec_.skip_first_wait != 0 ? spec_.wait : 0;
  return spec_.skip_first + window * cycle_steps(spec_) + spec_.wait + spec_.warmup - left_out;
}

uint64_t Schedule::last_step(uint64_t window) const {
  return first_step(window) + spec_.active - 1;
}

Transition Schedule::advance(uint64_t index) {
  uint64_t window = 0;
  Phase next = phase_of(index, &window);
  const bool moved = window != window_;
  if (moved) cut_ = false;
  if (cut_) next = phase_;  // as cut() left it, until the next cycle begins
  Transition result{};
  result.before = phase_;
  result.after = next;
  result.window_ends = phase_ == Phase::active && (next != Phase::active || moved);
  result.window_begins = next == Phase::active && (phase_ != Phase::active || moved);
  result.ended_window = static_cast<uint32_t>(window_);
  result.window = static_cast<uint32_t>(result.window_begins ? window : window_);
  phase_ = next;
  window_ = window;
  return result;
}

void Schedule::cut() {
  if (phase_ != Phase::warmup && phase_ != Phase::active) return;
  cut_ = true;
  phase_ = spec_.repeat != 0 && window_ + 1 >= spec_.repeat ? Phase::done : Phase::waiting;
}

}  // namespace gpuprof
