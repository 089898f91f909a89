// SPDX-License-Identifier: Apache-2.0
// Who this process is: output names, and the dump's Header.
#pragma once

#include <cstddef>
#include <cstdint>

#include "formats/core/byte_buffer.h"

namespace gpuprof {

// Fills host, run, directory and stem of the session and creates the directory (0700 what we make).
// False: said why.
bool make_output_names();

// Where the ring goes: beside the dumps, or on GPUPROF_SCRATCH (or $TMPDIR, /tmp) where those lie
// on a network or on a file system that writes pages anew. `link` is the name beside the dumps to
// link from; "" when it is the ring itself.
void make_ring_names(char* path, size_t path_size, char* link, size_t link_size);

// <OUTPUT>/latest -> <run>. It is replaced before a run's first dump is there. A session makes it
// where there is none, so that it leads to what a killed process left. Failing is no error.
enum class LatestLink { kept, replaced };
void update_latest_link(LatestLink which);

// Appends a serialized Header. Drain thread. `asks_cuda`: with devices and versions, if CUDA has
// started.
bool encode_header(ByteBuffer& out, const char* gpu_times_missing, bool asks_cuda);

}  // namespace gpuprof
