// SPDX-License-Identifier: Apache-2.0
// CUPTI 13.0 records of what happened in the simulator; times are CLOCK_MONOTONIC ns until written.
#pragma once

#include "tests/simcuda/core/port.h"
#include "tests/simcuda/cupti/recorder.h"

namespace gpuprof::simcuda {

PendingRecord make_record(const GpuOpInfo& op);
PendingRecord make_record(const SyncInfo& info);
PendingRecord make_record(const EventRecordInfo& info);
PendingRecord make_record(const MemoryInfo& info);
PendingRecord make_record(const StreamInfo& info);
PendingRecord make_context_record(int device, uint32_t context_id, uint32_t multiprocessors);
PendingRecord make_device_record(int device, const DeviceModel& model);
PendingRecord make_api_record(const ApiEvent& event, uint32_t thread_id);
// A record of a kind that no header of ours lists, or (INVALID) one that was never finished.
constexpr auto kUnknownKind = static_cast<CUpti_ActivityKind>(200);
PendingRecord make_bad_record(CUpti_ActivityKind kind, uint64_t ready);
PendingRecord make_external_record(CUpti_ExternalCorrelationKind kind, uint64_t id,
                                   uint32_t correlation);

}  // namespace gpuprof::simcuda
