// SPDX-License-Identifier: Apache-2.0
// The modules of a ring as a dump's Modules message.
#pragma once

#include <cstddef>

#include "formats/core/byte_buffer.h"
#include "formats/core/ring_file.h"
#include "formats/core/string_table.h"

namespace gpuprof {

// Appends a serialized Modules message of rows[0..count); rows that are not ready are left out.
// False when memory could not be had: `out` is then unchanged.
bool encode_modules(ByteBuffer& out, const ModuleRow* rows, size_t count,
                    const StringTable& strings);

}  // namespace gpuprof
