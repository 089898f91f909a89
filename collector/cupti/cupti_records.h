// SPDX-License-Identifier: Apache-2.0
// CUPTI activity records to ring records. Any libcupti from 11.0 on: every record layout only ever
// grew at its end, so one set of structs serves if fields added later are guarded by the library's
// version.
#pragma once

#include <cupti.h>

#include <cstdint>

#include "collector/base/clock.h"

namespace gpuprof {

struct CuptiRecordContext {
  uint32_t version;      // cuptiGetVersion
  bool times_are_ticks;  // our timestamp callback is in force
  // Else the clock that is: the program's own, or CLOCK_REALTIME ns. Linear from the attach to now.
  CUpti_TimestampCallbackFunc clock;
  uint64_t clock_base, tick_base;  // at the attach
  double ticks_per_clock;
};

uint64_t CUPTIAPI realtime_ns();
// Takes the reading from which the clock is converted.
void start_conversion(CuptiRecordContext& context);
// With the rate from then to now.
CuptiRecordContext at_this_moment(const CuptiRecordContext& context);

// Writes one record to the calling thread's ring buffer. Kinds and values we do not know are
// counted (Loss::cupti_unknown), unusable times flagged and counted (Loss::bad_timestamp).
// Thread-safe.
void store_activity(const CuptiRecordContext& context, const CUpti_Activity* activity);

// Sum of the durations of OVERHEAD records so far, in ticks.
uint64_t stored_overhead_ticks();
void reset_stored_overhead();

}  // namespace gpuprof
