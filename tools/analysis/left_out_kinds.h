// SPDX-License-Identifier: Apache-2.0
// What GPUPROF_BUDGET left out of the recording, and what cannot be told without it.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "formats/trace/trace.h"

namespace gpuprof::analysis {

enum class Cause : uint8_t;
struct Report;

// Of one kind, over all processes and windows.
struct LeftOutKind {
  ShedKind kind;
  size_t windows;     // of processes, that lack it
  std::string since;  // in the one that lacks it first: "since step 12 (310 ms into the window)"
};

// In the order of ShedKind. `allowed_pct`: the budget that any of them had.
struct LeftOutKinds {
  std::vector<LeftOutKind> kinds;
  size_t windows = 0;  // of all processes
  double allowed_pct = 0;

  const LeftOutKind* find(ShedKind kind) const;
};

// Fills `left_out` of a report.
void note_left_out_kinds(const Trace& trace, Report& report);
// Causes whose share or saving needs what was left out: out of the verdict, into `unknown_causes`.
void leave_out_unknown_causes(Report& report);
// "call stacks since step 12 (310 ms into the window), in 2 of 8 windows; ..."
std::string describe(const LeftOutKinds& left_out);
// For the title of a table: "; not recorded since step 12 (...)"; "" where it is whole.
std::string not_whole_text(const LeftOutKinds& left_out, ShedKind kind);
// "allocation, host_work"
std::string names_of(const std::vector<Cause>& causes);

// The finding, if anything was left out.
void add_left_out_kinds(Report& report);

}  // namespace gpuprof::analysis
