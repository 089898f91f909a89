// SPDX-License-Identifier: Apache-2.0
// What begins and ends a window. Under step_lock but where something else is said.
#pragma once

#include <cstdint>

#include "collector/record/session.h"

namespace gpuprof {

// Seconds between two readings of the session's clock.
double seconds_between(uint64_t from, uint64_t to);

void set_phase(SessionPhase phase);
// No window is open, before and after.
void set_phase_between_windows(SessionPhase phase);

// Whether the window was begun by no step: its steps are those that lie in it.
bool is_free_window(const Window& window);
bool early_is_open();

// The calling thread marks steps, and a window is near: what it needs to record is made now.
void prepare_this_thread();

// Opens a window with the step that begins now, or puts it off. On the drain thread it may open it
// at a later look.
void begin_window(uint32_t number, uint64_t first_step, uint64_t ticks);
// On the drain thread, at each look: what begin_window() has left to it.
void open_waiting_window();
// Steps go on before that: the window takes as many later, or is none any more.
void postpone_waiting_window();
void forget_waiting_window();
// Opens it without waiting for anything: of a worker that follows its parent's.
void open_window(uint32_t number, uint64_t first_step, uint64_t ticks);
// `reason` as in Summary.end_reason.
void end_window(uint64_t ticks, const char* reason, bool partial);

// The window of the whole program, or an early one, which no step begins.
void begin_with_session();
// The one before has ended without a step of the program's: what is kept are the last seconds. On
// the drain thread.
void begin_early_again();
// No window is near, and CUPTI is attached for one that did not come: asks to detach it. Under
// step_lock, on the drain thread.
void leave_cupti_unused();
void end_early(uint64_t ticks, bool another_is_near);

}  // namespace gpuprof
