// SPDX-License-Identifier: Apache-2.0
// Which files with code are mapped where, kept in the ring: what a return address needs to become a
// name. Drain thread only.
#pragma once

#include <cstddef>

#include "formats/core/byte_buffer.h"

namespace gpuprof {

// Adds what has been mapped since the last call; cheap when that is nothing. Returns the number of
// modules known.
size_t note_modules();
// Appends a serialized Modules message of all of them. False when memory could not be had.
bool encode_known_modules(ByteBuffer& out);

}  // namespace gpuprof
