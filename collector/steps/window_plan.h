// SPDX-License-Identifier: Apache-2.0
// Which steps are recorded: the schedule, unless the mode is `armed`; a triggered window, which
// goes before it; and nothing while recording is switched off. Pure, as Schedule is: no clock, no
// I/O; the caller holds a lock around every call.
#pragma once

#include <cstdint>

#include "collector/steps/schedule.h"

namespace gpuprof {

class WindowPlan {
 public:
  WindowPlan(const ScheduleSpec& spec, bool armed);
  // What was counted up to `counted` were no steps, and no window is open: the schedule begins
  // anew, at boundary `index` of another count. A trigger that has not begun moves to as many steps
  // ahead as it was. True: one has.
  bool restart(uint64_t counted = 0, uint64_t index = 0);
  // The triggered window that was open has been dropped: it begins anew after a warm-up. True: one
  // does.
  bool ask_again(uint64_t index);
  // Steps up to `index` were counted before anybody knew that they are steps, and the schedule's
  // window would lie among them: it begins anew with the next one.
  void begin_after(uint64_t index);
  // As Schedule::advance. Windows are numbered as they begin, scheduled and triggered ones in one
  // row; equal on all ranks that take the same steps.
  Transition advance(uint64_t index);
  // The window is closed early, or could not be opened; as Schedule::cut.
  void cut();
  // The window that has begun last could not be opened yet. It begins anew, with the same number
  // and as many steps, at the boundary that resume() names beforehand, unless another one begins
  // until then.
  void postpone();
  bool postponed() const { return postponed_ && !resumes_; }
  void resume(uint64_t first);

  // Steps first to first+steps-1 are to be recorded, after the schedule's warm-up. A scheduled
  // window that is open when it begins ends there. Replaces a trigger that has not begun. False:
  // `index`, the step in progress, is not before `first`, or recording is off.
  bool trigger(uint64_t first, uint64_t steps, uint64_t index);
  // Whether a trigger was taken whose window has not begun, at trigger_first().
  bool waits_for_trigger() const { return pending_; }
  uint64_t trigger_first() const { return asked_.first; }
  uint64_t trigger_steps() const { return asked_.count; }
  // The schedule is off until boundary `resume` (UINT64_MAX: until told otherwise, and no trigger
  // is taken); a trigger that was taken before is dropped. The caller cuts an open window first.
  // The schedule's cycle that the boundary falls into is left out, so that no rank begins in the
  // middle of one.
  void switch_off(uint64_t resume);
  bool is_off() const { return resume_ == UINT64_MAX; }
  bool armed() const { return armed_; }
  Phase phase() const { return phase_; }

  const Schedule& schedule() const { return scheduled_; }
  uint64_t first_step(uint64_t window) const { return base_ + scheduled_.first_step(window); }
  uint64_t last_step(uint64_t window) const { return base_ + scheduled_.last_step(window); }

 private:
  struct Steps {
    uint64_t first = 0, count = 0;
    bool has(uint64_t index) const { return index >= first && index - first < count; }
  };

  Transition idle() const;
  Transition scheduled_step(uint64_t index);
  Transition step(uint64_t index, const Transition& scheduled);
  Transition begin(uint64_t index, Steps steps, uint32_t number, const Transition& scheduled);
  Transition go_on(uint64_t index, const Transition& scheduled);
  static void leave_out(Transition& change, uint32_t window);

  const ScheduleSpec spec_;
  const bool armed_;
  Schedule scheduled_;
  Phase phase_ = Phase::waiting;
  uint32_t open_ = 0;            // number of the window that is open
  uint32_t scheduled_next_ = 0;  // of the schedule's next window, by its own count
  uint32_t triggered_ = 0;       // triggered windows begun
  bool pending_ = false;         // a trigger that has not begun: for asked_
  Steps asked_;
  bool asked_open_ = false;  // the window that has begun last is of asked_, and was not completed
  bool recording_ = false;   // a window of own_ is open, which the schedule does not end
  Steps own_;
  bool postponed_ = false;  // the window of number again_number_ has not begun
  bool resumes_ = false;    // it does, with again_
  Steps again_;
  uint32_t again_number_ = 0;
  uint64_t base_ = 0;  // the schedule's step 0
  uint64_t resume_ = 0;
  bool resumed_late_ = false;
};

}  // namespace gpuprof
