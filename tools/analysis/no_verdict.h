// SPDX-License-Identifier: Apache-2.0
// Reasons for no verdict that the figures of a report give.
#pragma once

#include <string>
#include <string_view>

#include "tools/analysis/report.h"
#include "tools/analysis/timeline.h"

namespace gpuprof::analysis {

struct LargestPart {
  std::string name;
  double percent = 0;  // of step time
};
// Of what keeps GPUs idle.
LargestPart largest_idle_part(const Report& report);

// What of the waiting in collectives no kernel ran beside. Per cent of step time.
double exposed_pct(const Report& report, double waited_pct);
// Neither is the GPU the limit, nor would any fix make steps shorter.
std::string nothing_explains(const Report& report, double waited_pct);
// What would tell what the host does while GPUs are idle, for `percent` of time `unit`s. `source`:
// where what is reported comes from.
struct RecordSource {
  bool outside = true;       // all of it: not from dumps
  bool host_events = false;  // some has events of a host
  void add(const Process& process);
};
std::string without_calls(double percent, std::string_view unit, const RecordSource& source);
std::string without_steps(const RecordSource& source);

// Some causes cannot be told (`unknown_causes`), but for how long threads had no processor.
std::string records_are_missing(const Report& report);
// Whether GPUs are idle beside issued work for longer than all that the first cause has. What such
// work waits for would be the cause.
bool stalls_outweigh_causes(const Report& report);
std::string stalled_reason(const Report& report);  // then

// What GPUs do for marked steps with time between them, in ns, and the part that lies there.
struct WorkOfMarkedSteps {
  double all_ns = 0, between_ns = 0;
};
void add_work_of_marked_steps(const Timeline& timeline, WorkOfMarkedSteps& to);
// Where most of it lies there: shares of the steps say little of them. Empty: it does not.
std::string only_issuing(const WorkOfMarkedSteps& work);

}  // namespace gpuprof::analysis
