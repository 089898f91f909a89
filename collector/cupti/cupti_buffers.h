// SPDX-License-Identifier: Apache-2.0
// The buffers that CUPTI writes records into: lent from a region of fixed size, read when they come
// back. With all of them lent, CUPTI is refused more where it bears that (from 12.9 on), and before
// gets small ones whose content is thrown away and counted.
#pragma once

#include <cupti.h>

#include <cstddef>
#include <cstdint>

#include "collector/cupti/cupti_api.h"
#include "collector/cupti/cupti_records.h"

namespace gpuprof {

// What the records are read with; both stay valid. Before the callbacks are registered.
void set_buffer_reader(const CuptiApi& api, CuptiRecordContext& context);

// Whose records come now. CUPTI may go on with a buffer that was lent by the one before, so content
// and buffer can belong to different users: content of the program's in a buffer of ours is copied
// into one of its own, content of ours in a buffer of the program's is read before that goes back
// empty.
void records_are_ours(bool ours);

// To be registered with CUPTI. On threads of the program or of CUPTI, or inside
// cuptiActivityFlushAll; they hold no lock while they call CUPTI.
void CUPTIAPI cupti_buffer_requested(uint8_t** buffer, size_t* size, size_t* max_records);
// Also hands buffers that are not ours to the program's own callback.
void CUPTIAPI cupti_buffer_completed(CUcontext context, uint32_t stream, uint8_t* buffer,
                                     size_t size, size_t valid);

// How far GPU times of this session may be off (CuptiClock). Any thread.
uint64_t cupti_clock_error_ticks();

void forget_cupti_buffers();  // in the child after fork

}  // namespace gpuprof
