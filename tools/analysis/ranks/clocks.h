// SPDX-License-Identifier: Apache-2.0
// One clock for all hosts of a job. A host's wall clock is off by some offset, and drifts. All
// ranks leave a collective together, so that the ends of the same collective tell how far their
// clocks are apart. Ranks of one host share its clock.
#pragma once

#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "formats/trace/trace.h"

namespace gpuprof::analysis {

struct HostClock {
  std::string host;
  // Against the first host, that of the lowest rank: what was taken off.
  double offset_us = 0;  // in the middle of what was recorded
  double drift_ppm = 0;
  // How far the host's times may still be off, by the spread of the ends about the line. Three
  // standard errors, at the begin or end of the windows, where it is largest. That ranks leave in a
  // fixed order, if they do, is in no spread.
  double error_us = 0;
  size_t collectives = 0;  // by which it was aligned; 0: its wall clock stands, its error unknown
  bool first = false;
};

// By its kernel's name, whether ranks leave it together: a broadcast's root may go before the
// others have come.
bool ends_together(std::string_view kernel);

// Aligns the clocks of all hosts but the first one's, in the trace; what was done is in each
// Process::metadata, as "gpuprof_clocks". Nothing for one host, or if it has been done.
std::vector<HostClock> align_clocks(Trace& trace);

// What align_clocks() did, by the trace; empty: nothing.
std::vector<HostClock> clocks_of(const Trace& trace);

// As in Process::metadata: an object for each host; empty array: nothing was done.
nlohmann::json clocks_json(const Trace& trace);

// One line for people; empty for one host.
std::string describe_clocks(const std::vector<HostClock>& clocks);

}  // namespace gpuprof::analysis
