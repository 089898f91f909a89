// SPDX-License-Identifier: Apache-2.0
// What a Kineto-style document says before its events: devices, and whose trace it is.
#pragma once

#include <cstdint>
#include <map>
#include <span>

#include "formats/io/json_text.h"
#include "formats/trace/trace.h"
#include "formats/views/kineto_ids.h"

namespace gpuprof {

// Up to the events, whose array it opens. `base`: ns since the Unix epoch, from which times count.
void write_kineto_head(JsonText& json, std::span<const Process* const> processes,
                       const std::map<ProcessKey, KinetoIds>& ids, int64_t base);

}  // namespace gpuprof
