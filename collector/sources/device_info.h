// SPDX-License-Identifier: Apache-2.0
// Parts of the dump's messages that describe clocks, devices and library versions.
#pragma once

#include <cstdint>

#include "formats/core/ring_file.h"
#include "formats/core/wire.h"

namespace gpuprof {

// A Clock message with the anchors so far, as field `field`.
void encode_clock(WireWriter& out, uint32_t field, const RingHeader& header);

// Fields 18 to 22 of Header. Asks libraries that the process has already loaded, none else; on the
// drain thread, outside every lock. False: CUDA has not started, so it was not asked for devices.
bool encode_devices_and_versions(WireWriter& out);

}  // namespace gpuprof
