// SPDX-License-Identifier: Apache-2.0
// What the program names by NVTX: categories of events, threads, streams and GPUs. Names may come
// before the session, and outlive it. Any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "formats/core/byte_buffer.h"

namespace gpuprof {

// Values are those of NvtxName in gpuprof.proto.
enum class NvtxObject : uint32_t { category = 1, thread = 2, stream = 3, device = 4 };

// `domain`: a category's, as a handle of NVTX's; 0: the default domain. The newest name of an
// object counts. Of more objects than there is room for the last ones stay nameless; they are
// counted (Loss::string_table_full).
void name_nvtx_object(NvtxObject object, uint64_t id, uint64_t domain, std::string_view name);

// The name that the program gave this thread (a Linux tid); empty: none.
std::string_view nvtx_thread_name(uint32_t thread);

// Appends a message NvtxNames (gpuprof.proto) with the names that came after number `written`.
// Returns the number of the newest, `written` where there is none. Drain thread.
uint64_t encode_nvtx_names(ByteBuffer& out, uint64_t written);

}  // namespace gpuprof
