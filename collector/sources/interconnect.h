// SPDX-License-Identifier: Apache-2.0
// What the GPUs and the host are connected by: NVLinks, by NVML; ports of network adapters, by the
// kernel. It is looked for while a window is open. NVML is asked where the process has it, as NCCL
// loads it; nothing is loaded for this.
#pragma once

#include "formats/core/wire.h"

namespace gpuprof {

// All of it on the drain thread.

// Once a process each of the two is found, else once a second; some 40 questions to NVML and a few
// small files.
void look_at_interconnect(uint64_t now_ns);
// Fields 26 and 27 of Summary: what was found so far.
void encode_interconnect(WireWriter& out);

}  // namespace gpuprof
