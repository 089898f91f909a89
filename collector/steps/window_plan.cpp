// SPDX-License-Identifier: Apache-2.0
#include "collector/steps/window_plan.h"

namespace gpuprof {

WindowPlan::WindowPlan(const ScheduleSpec& spec, bool armed)
    : spec_(spec), armed_(armed), scheduled_(spec) {}

void WindowPlan::restart() {
  scheduled_ = Schedule(spec_);
  phase_ = Phase::waiting;
  open_ = scheduled_next_ = 0;
  base_ = 0;
}

void WindowPlan::begin_after(uint64_t index) {
  uint64_t window = 0;
  const Phase there = scheduled_.phase_of(index, &window);
  if (window > 0 || there == Phase::warmup || there == Phase::active) base_ = index + 1;
}

Transition WindowPlan::advance(uint64_t index) {
  if (spec_.all) return idle();  // one window, which no step begins or ends
  // A triggered window names its own first step, the same on all ranks: it does not wait for
  // `resume_`.
  const bool off = armed_ || index < resume_ || index < base_;
  const uint32_t before = open_;
  const Transition scheduled = off ? idle() : scheduled_step(index);
  if (pending_ || recording_) return finish(triggered_step(index, scheduled));
  if (!postponed_ || !scheduled.window_begins) return finish(scheduled);
  postponed_ = false;  // the next one has come before it
  return finish(leave_out(scheduled, before));
}

Transition WindowPlan::idle() const {
  Transition change{};
  change.before = phase_;
  change.after = Phase::waiting;
  change.window = change.ended_window = open_;
  return change;
}

Transition WindowPlan::scheduled_step(uint64_t index) {
  Transition change = scheduled_.advance(index - base_);
  if (resumed_late_) {
    resumed_late_ = false;
    scheduled_.cut();
    change.window_begins = change.window_ends = false;
    change.after = scheduled_.phase();
  }
  if (change.window_begins) {
    scheduled_next_ = change.window + 1;
    change.window += triggered_;
  } else {
    change.window = open_;
  }
  change.ended_window = open_;
  return change;
}

Transition WindowPlan::leave_out(Transition change, uint32_t window) {
  change.left_out = true;
  change.left_out_window = window;
  return change;
}

Transition WindowPlan::triggered_step(uint64_t index, const Transition& scheduled) {
  const bool inside = index >= first_ && index - first_ < steps_;
  const bool replaces = inside && scheduled.window_begins;
  Transition change = replaces ? leave_out(scheduled, scheduled.window) : scheduled;
  change.before = phase_;
  if (recording_ && inside) {
    // What the schedule begins meanwhile is part of this window.
    if (scheduled.after == Phase::active) scheduled_.cut();
    change.after = Phase::active;
    change.window_begins = change.window_ends = false;
    change.window = open_;
  } else if (recording_) {
    recording_ = false;
    change.window_ends = true;
    change.ended_window = open_;
    if (!change.window_begins) change.window = open_;
  } else if (inside) {
    pending_ = false;
    recording_ = true;
    change.window_ends = phase_ == Phase::active;
    change.interrupted = change.window_ends && !scheduled.window_ends;
    if (scheduled.after == Phase::active) scheduled_.cut();
    change.window_begins = true;
    change.window = postponed_ ? open_ : scheduled_next_ + triggered_++;
    postponed_ = false;
    change.after = Phase::active;
  } else if (index >= first_) {
    pending_ = postponed_ = false;  // jumped over
  } else if (index + spec_.warmup >= first_ && scheduled.after != Phase::active) {
    change.after = Phase::warmup;
  }
  return change;
}

Transition WindowPlan::finish(Transition change) {
  phase_ = change.after;
  if (change.window_begins) open_ = change.window;
  return change;
}

void WindowPlan::cut() {
  if (recording_) {
    recording_ = false;
  } else {
    scheduled_.cut();
  }
  phase_ = armed_ ? Phase::waiting : scheduled_.phase();
}

void WindowPlan::postpone() {
  if (!recording_) steps_ = spec_.active;
  cut();
  postponed_ = true;
}

void WindowPlan::resume(uint64_t first) {
  pending_ = true;
  first_ = first;
}

bool WindowPlan::trigger(uint64_t first, uint64_t steps, uint64_t index) {
  if (is_off() || spec_.all || recording_ || steps == 0 || index >= first) return false;
  pending_ = true;
  postponed_ = false;
  first_ = first;
  steps_ = steps;
  return true;
}

void WindowPlan::switch_off(uint64_t resume) {
  pending_ = recording_ = postponed_ = false;
  scheduled_.cut();
  phase_ = Phase::waiting;
  resumed_late_ = !armed_;
  resume_ = resume;
}

}  // namespace gpuprof
