// SPDX-License-Identifier: Apache-2.0
// What functions with and without a subscriber have in common.
#pragma once

#include <cupti.h>

#include <cstddef>
#include <cstdint>

#include "tests/simcuda/cupti/selected_fields.h"

namespace gpuprof::simcuda {

// CUPTI_ERROR_UNKNOWN, as the real library says without a driver, else CUPTI_SUCCESS with the
// session connected to the runtime, if that is in the process.
CUptiResult start();
// By SIGSEGV, where that is simulated and the driver has not started.
void die_without_driver();
CUptiResult check_kind(CUpti_ActivityKind kind);
// `fields`: those that the reader has selected, or null.
CUptiResult next_record(uint8_t* buffer, size_t valid_bytes, CUpti_Activity** record,
                        const SelectedFields* fields = nullptr);
bool valid_external(CUpti_ExternalCorrelationKind kind);

}  // namespace gpuprof::simcuda
