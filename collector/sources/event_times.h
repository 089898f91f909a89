// SPDX-License-Identifier: Apache-2.0
// GPU times without CUPTI (GPUPROF_GPU_TIMES=events): a CUDA event is recorded in the stream of
// each launch, copy and set before and after the call, and becomes a record of GPU work.
//
// Such a time begins when the stream has done all before, not before the call; it ends when the
// stream has come to the second event, which may be so much later as the host takes to record it.
// Its resolution is that of cuEventElapsedTime. A graph's launch has one time as a whole.
//
// Nothing is recorded in a stream that is being captured, nothing waits for the program's streams,
// and all events are destroyed when the window ends. What has no time is counted:
// Loss::event_captured, Loss::event_untimed.
#pragma once

#include <cstdint>

#include "formats/core/record.h"

namespace gpuprof {

bool event_times_wanted();  // by the settings. Any thread

// ---- for hooks, on the thread that makes the call ----

inline constexpr uint32_t kNoEvents = ~uint32_t{0};
// Right before the call; `record` has its stream. Outside a window it only notes the context.
uint32_t events_before(const Record& record);
// Right after it, with what the one before returned; `record` has the result, and gets the number
// that its GPU work will have.
void events_after(uint32_t events, Record& record);

// ---- for the drain thread ----

// False: event_times_missing() says why.
bool event_times_attach();
bool event_times_are_ready();  // since it was attached, until the window ends. Any thread
// In warm-up and window: records of what is over.
void event_times_tick();
// At a window's end: the same, with a reading of the clocks as of now. `at_last`: no others follow,
// so times need not be near one.
void event_times_collect(bool at_last = false);
bool event_times_await();  // whether there are times to come
// Calls `take` with the number of each launch that is counted as untimed though it has one: its GPU
// record will not come. Each is named once.
void event_times_take_lost(void (*take)(void* context, uint32_t id), void* context);
// At a window's end: how much work is left of which there is no time yet, without what `is_awaited`
// by its number in any case.
uint64_t event_times_left(bool (*is_awaited)(const void* context, uint32_t id),
                          const void* context);
// All events are destroyed; work that still runs has no time.
void event_times_end();
const char* event_times_missing();  // "": nothing is
// How far times may be off, as far as that is not in their meaning (above).
uint64_t event_times_error_ticks();

}  // namespace gpuprof
