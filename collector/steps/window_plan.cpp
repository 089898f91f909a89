// SPDX-License-Identifier: Apache-2.0
#include "collector/steps/window_plan.h"

namespace gpuprof {

WindowPlan::WindowPlan(const ScheduleSpec& spec, bool armed)
    : spec_(spec), armed_(armed), scheduled_(spec) {}

bool WindowPlan::restart(uint64_t counted, uint64_t index) {
  scheduled_ = Schedule(spec_);
  phase_ = Phase::waiting;
  open_ = scheduled_next_ = triggered_ = 0;
  postponed_ = false;
  base_ = 0;
  if (pending_) asked_.first = index + (asked_.first > counted ? asked_.first - counted : 1);
  return pending_;
}

bool WindowPlan::ask_again(uint64_t index) {
  if (!asked_open_) return false;
  asked_open_ = false;
  pending_ = true;
  asked_.first = index + 1 + spec_.warmup;
  return true;
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
  Transition change = step(index, off ? idle() : scheduled_step(index));
  change.before = phase_;
  phase_ = change.after;
  if (change.window_begins) open_ = change.window;
  return change;
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

void WindowPlan::leave_out(Transition& change, uint32_t window) {
  change.left_out_window[change.left_out++] = window;
}

// What the schedule says, and what comes before it.
Transition WindowPlan::step(uint64_t index, const Transition& scheduled) {
  if (pending_ && index >= asked_.first) {
    pending_ = false;  // also where it is jumped over
    if (asked_.has(index)) {
      asked_open_ = true;
      return begin(index, asked_, scheduled_next_ + triggered_++, scheduled);
    }
  }
  if (postponed_ && resumes_) {
    postponed_ = false;
    if (again_.has(index)) return begin(index, again_, again_number_, scheduled);
  }
  if (recording_) return go_on(index, scheduled);
  Transition change = scheduled;
  asked_open_ = asked_open_ && !change.window_begins;
  if (change.window_begins && postponed_) {
    postponed_ = false;
    leave_out(change, again_number_);
  }
  const bool near = pending_ && index + spec_.warmup >= asked_.first;
  if (near && change.after != Phase::active) change.after = Phase::warmup;
  return change;
}

// A window of `steps` begins, whatever the schedule begins or has open.
Transition WindowPlan::begin(uint64_t index, Steps steps, uint32_t number,
                             const Transition& scheduled) {
  Transition change = scheduled;
  if (postponed_) leave_out(change, again_number_);
  postponed_ = false;
  if (scheduled.window_begins) leave_out(change, scheduled.window);
  change.window_ends = phase_ == Phase::active;
  const bool is_over = recording_ ? !own_.has(index) : scheduled.window_ends;
  change.interrupted = change.window_ends && !is_over;
  if (scheduled.after == Phase::active) scheduled_.cut();
  change.window_begins = true;
  change.window = number;
  change.after = Phase::active;
  recording_ = true;
  own_ = steps;
  return change;
}

// A window of own_ is open.
Transition WindowPlan::go_on(uint64_t index, const Transition& scheduled) {
  Transition change = scheduled;
  if (own_.has(index)) {
    // What the schedule begins meanwhile is part of this window.
    if (scheduled.window_begins) leave_out(change, scheduled.window);
    if (scheduled.after == Phase::active) scheduled_.cut();
    change.after = Phase::active;
    change.window_begins = change.window_ends = false;
    change.window = open_;
    return change;
  }
  recording_ = asked_open_ = false;
  change.window_ends = true;
  change.ended_window = open_;
  if (!change.window_begins) change.window = open_;
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
  again_.count = recording_ ? own_.count : spec_.active;
  again_number_ = open_;
  cut();
  postponed_ = true;
  resumes_ = false;
}

void WindowPlan::resume(uint64_t first) {
  resumes_ = true;
  again_.first = first;
}

bool WindowPlan::trigger(uint64_t first, uint64_t steps, uint64_t index) {
  if (is_off() || spec_.all || recording_ || steps == 0 || index >= first) return false;
  pending_ = true;
  asked_ = {first, steps};
  return true;
}

void WindowPlan::switch_off(uint64_t resume) {
  pending_ = recording_ = postponed_ = asked_open_ = false;
  scheduled_.cut();
  phase_ = Phase::waiting;
  resumed_late_ = !armed_;
  resume_ = resume;
}

}  // namespace gpuprof
