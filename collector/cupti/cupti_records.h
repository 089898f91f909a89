// SPDX-License-Identifier: Apache-2.0
// CUPTI activity records to ring records. Any libcupti from 11.0 on: every record layout only
// ever grew at its end. One set of structs serves, with later fields guarded by the library's
// version.
#pragma once

#include <cupti.h>

#include <cstdint>

#include "collector/cupti/cupti_clock.h"

namespace gpuprof {

struct CuptiRecordContext {
  uint32_t version;  // cuptiGetVersion
  CuptiClock clock;
  uint64_t attach_ticks;
  uint64_t now_ticks;  // when the record came
};

// Writes one record to the calling thread's ring buffer. Kinds and values we do not know are
// counted (Loss::cupti_unknown). Times that are zero, reversed, over before the attach, begun
// before the process, or not over yet are flagged; count_losses_of() counts those that reach a
// dump. Thread-safe.
void store_activity(const CuptiRecordContext& context, const CUpti_Activity* activity);

// Which device a context is on: not all records tell. Any thread; no lock.
inline constexpr uint16_t kDeviceNotTold = 0xffff;
bool device_is_known(uint32_t context);
void note_device(uint32_t context, uint32_t device);
// That a graph was launched in this context.
void note_graph_context(uint32_t correlation, uint32_t context);

// Sum of the durations of those OVERHEAD records so far that profiling makes, in ticks.
uint64_t stored_overhead_ticks();
void reset_stored_overhead();

}  // namespace gpuprof
