// SPDX-License-Identifier: Apache-2.0
// The buffers that CUPTI writes records into: lent from a region of fixed size, read when they come
// back. With all of them lent, CUPTI from 12.9 on is refused more. An earlier one does not bear
// that: it gets small ones, whose content is counted and dropped.
#pragma once

#include <cupti.h>

#include <cstddef>
#include <cstdint>

#include "collector/cupti/cupti_api.h"
#include "collector/cupti/cupti_records.h"

namespace gpuprof {

// What the records are read with; both stay valid. Before the callbacks are registered.
void set_buffer_reader(const CuptiApi& api, CuptiRecordContext& context);

// Address space for the buffers, before CUPTI asks for the first: beyond it CUPTI has no records.
// False: there is none.
inline constexpr size_t kCuptiBufferBytes = 64 * 1024 * 1024;
bool reserve_cupti_buffers();

// Whose records come now. CUPTI may go on with a buffer that was lent by the one before, so
// content and buffer can belong to different users. The program's content in our buffer is copied
// into one of its own. Our content in the program's buffer is read, and the buffer goes back
// empty.
void records_are_ours(bool ours);

// Our subscriber from here on reads its records with functions of its own; null: it has left.
void read_as_subscriber(CUpti_SubscriberHandle subscriber);
// CUPTI gives no buffer back that our subscriber has not had back when it left.
void take_back_subscriber_buffers();

// CUPTI is gone, and with it what it was lent.
void take_back_all_buffers();

// To be registered with CUPTI. On threads of the program or of CUPTI, or inside
// cuptiActivityFlushAll; they hold no lock while they call CUPTI.
void CUPTIAPI cupti_buffer_requested(uint8_t** buffer, size_t* size, size_t* max_records);
// Also hands buffers that are not ours to the program's own callback.
void CUPTIAPI cupti_buffer_completed(CUcontext context, uint32_t stream, uint8_t* buffer,
                                     size_t size, size_t valid);
// The same for a subscriber: what comes is ours alone.
void CUPTIAPI subscriber_buffer_requested(uint8_t** buffer, size_t* size, size_t* max_records,
                                          CuptiV2RequestInfo* info);
void CUPTIAPI subscriber_buffer_completed(uint8_t* buffer, size_t size, size_t valid,
                                          CuptiV2CompleteInfo* info);

// How far GPU times of this session may be off (CuptiClock). Any thread.
uint64_t cupti_clock_error_ticks();

void forget_cupti_buffers();  // in the child after fork

}  // namespace gpuprof
