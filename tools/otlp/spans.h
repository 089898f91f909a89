// SPDX-License-Identifier: Apache-2.0
// Steps as spans: those of the report, one for each process.
#pragma once

#include <span>

#include "tools/exported.h"
#include "tools/otlp/json_lines.h"

namespace gpuprof::otlp {

struct SpanCount {
  size_t spans = 0;
  size_t impossible = 0;  // begin before 1970, or end before they begin: not written
};

// `begin`: the first moment of the input.
SpanCount write_spans(std::span<const Exported> sources, int64_t begin, LineWriter& out);

}  // namespace gpuprof::otlp
