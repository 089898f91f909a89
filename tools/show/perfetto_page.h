// SPDX-License-Identifier: Apache-2.0
// The address of Perfetto's page with a trace in it.
#pragma once

#include <string>

#include "formats/trace/trace.h"

namespace gpuprof {

inline constexpr const char* kPerfetto = "https://ui.perfetto.dev";

// `text` as a part of an address: what is not plain, or in `kept`, is spelled as %XX (RFC 3986,
// section 2.1).
std::string percent_encoded(std::string_view text, std::string_view kept = "");

// The page fetches `trace_address`, and opens the groups of the first processes: their threads and
// their GPUs (startup commands:
// https://perfetto.dev/docs/visualization/deep-linking-to-perfetto-ui).
std::string perfetto_page(const Trace& trace, const std::string& trace_address);

}  // namespace gpuprof
