// SPDX-License-Identifier: Apache-2.0
// GPUPROF_BUDGET: what recording may cost, in percent of a window's time. Drain thread only.
//
// cost = units x measured cost of a record (own_costs.h) + ticks of call stacks, fresh buffers and
// CUPTI's buffer callbacks + CUPTI's own overhead as it reports it + CPU time of the sampling
// thread; of all threads together. It is looked at each 100 ms, as soon as a whole step has passed,
// after a second in any case. Where it is above the budget, the costliest kinds are left out from
// then on (choose_shed), in this window and in those after it. What an early window leaves out is
// back in the next.
//
// Limits. Threads that work at the same time each have a part of the cost: steps are held up by
// less. Not in it, since nothing measures it: CUPTI's own work in a call that has a callback, what
// PyTorch does for an observer beyond the mean (own_costs.h), Python hooks of layers between
// their being left out and the window's end, and caches that recording has filled. What comes once
// a window, as attaching CUPTI, is not in it.
#pragma once

#include <cstdint>

#include "collector/window/own_costs.h"
#include "formats/core/byte_buffer.h"

namespace gpuprof {

struct Drain;
struct Window;

struct Budget {
  struct Shed {
    ShedKind kind;
    uint64_t since_ticks;
    uint32_t cost_ppm;  // of the time before; 0: it was left out in a window before
  };
  Shed shed[kShedKinds];
  uint32_t shed_count;
  uint32_t window_bits;  // those of them that this window left out
  uint32_t wanted;       // to be left out as soon as no step is being marked; a bit per ShedKind
  bool written;          // all of this is in the dump
  bool said_over;        // that nothing more can be left out
  RecordCosts seen;      // up to the last look
  uint64_t seen_samples_ns, seen_cupti_ns, seen_lost;
  uint64_t look_ticks;                // of the last look
  uint64_t look_boundaries;           // steps that had begun by then, of the run
  KindCosts costs;                    // between the last two looks
  double elapsed_ns;                  // likewise
  uint64_t since_ticks, until_ticks;  // what `cost_ns` is of
  double cost_ns;
};

// All do nothing where no budget is set.
void budget_window_begins(Drain& drain);  // once its file is open
void budget_tick(Drain& drain, uint64_t ticks);
// All its records are taken. A window that was too short for a look decides for those after it, if
// it ends `for_good`, and not for an exec that may fail.
void budget_window_ends(Drain& drain, uint64_t end_ticks, bool for_good);
void budget_window_is_over(Drain& drain, const Window& window);  // its dump is complete

}  // namespace gpuprof
