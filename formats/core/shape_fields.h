// SPDX-License-Identifier: Apache-2.0
// Which parts of a record become which fields of the dump's Shape message; the numbers are those of
// gpuprof.proto.
#pragma once

#include "formats/core/record.h"
#include "formats/core/wire.h"

namespace gpuprof {

// Grid, block, memory and registers of a kernel.
void write_launch_shape(WireWriter& wire, const LaunchShape& shape);
// The fields that are plain numbers, of any kind of record.
void write_shape_numbers(WireWriter& wire, const Record& record);
// The name that the payload itself carries; 0 where the kind has none.
StringId payload_name(const Record& record);

}  // namespace gpuprof
