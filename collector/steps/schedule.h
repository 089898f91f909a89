// SPDX-License-Identifier: Apache-2.0
// The schedule: a pure state machine that turns step boundaries into phases. No clock, no I/O.
// Step n lies between boundaries n and n+1; boundaries are counted from 0.
// One cycle is `wait` + `warmup` + `active` steps; `skip_first` steps come before the first cycle.
#pragma once

#include <cstdint>

#include "formats/core/settings.h"

namespace gpuprof {

enum class Phase : uint8_t { waiting, warmup, active, done };

// What the caller must do at a boundary, in this order.
struct Transition {
  Phase before;
  Phase after;
  bool window_ends;    // a window ended: its last step is boundary - 1, or last_step() after a jump
  bool window_begins;  // a window begins at this boundary (its first step is boundary)
  uint32_t window;     // number of the window that begins, else of the one that ended, from 0
  uint32_t ended_window;  // where both happen at once, the one that ended
  bool interrupted;       // it ended early, for a triggered window (WindowPlan)
  uint32_t left_out;      // so many windows, whose place another one takes (WindowPlan)
  uint32_t left_out_window[2];
};

class Schedule {
 public:
  explicit Schedule(const ScheduleSpec& spec);
  // Boundary `index` was reached (0, 1, 2, ... each once; a jump is legal and passes through what
  // lies between, opening no window that would also have ended).
  Transition advance(uint64_t index);
  // The window is closed early (time, size, exit), or its warmup is given up. The schedule goes on
  // with the next cycle, if any; no Transition reports the end of this one. No effect in other
  // phases.
  void cut();
  Phase phase() const { return phase_; }
  // The phase of step `index` by the spec alone; `window` receives its cycle number, counted from
  // 0.
  Phase phase_of(uint64_t index, uint64_t* window) const;
  // First and last step of window `window`.
  uint64_t first_step(uint64_t window) const;
  uint64_t last_step(uint64_t window) const;

 private:
  ScheduleSpec spec_;
  Phase phase_;
  uint64_t window_ = 0;
  bool cut_ = false;
};

}  // namespace gpuprof
