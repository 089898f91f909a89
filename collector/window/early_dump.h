// SPDX-License-Identifier: Apache-2.0
// The dump of an early window: complete, and needless once the schedule's window is. It has its
// final name only where the program ends before that. Drain thread only.
#pragma once

#include "collector/window/dump_file.h"
#include "collector/window/summary.h"

namespace gpuprof {

// Whether a step of the program lies in the window as a whole.
bool has_whole_step(const Window& window);

class EarlyDump {
 public:
  // What an early window came to. What is lost in it is no loss of the one after it.
  struct Kept {
    Window window;
    WindowTotals totals;
    LossCounts losses;  // those that go with it
    uint32_t failures;  // failed allocations are in it up to this number
  };
  // It has ended, `file` is complete. One that is not `worth` it (no work, no step) is dropped, and
  // one that is much shorter than the one before.
  void keep(DumpFile& file, const Kept& ended, bool worth);
  // Whether it is still the better one beside this window of the schedule: that one has no step, or
  // was cut after one or two, and this one has more.
  bool says_more_than(const Window& window) const;
  // There is a better one.
  void drop();
  // The program ends, and there is no better one. Whether there is one.
  bool leave();
  uint32_t failures() const { return kept_.failures; }  // of the one that was left

 private:
  KeptDump dump_{};
  Kept kept_{};
  DumpOutcome outcome_{};
  int error_ = 0;
  bool any_ = false;
};

}  // namespace gpuprof
