// SPDX-License-Identifier: Apache-2.0
// What GPUPROF_BUDGET or the settings left out of the recording, and what cannot be told without
// it.
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "formats/trace/trace.h"

namespace gpuprof::analysis {

enum class Cause : uint8_t;
enum class Part : uint8_t;
struct Report;

// Of one kind, over all processes and windows.
struct LeftOutKind {
  ShedKind kind;
  size_t windows;     // of processes, that lack it
  std::string since;  // in the one that lacks it first: "since step 12 (310 ms into the window)"
};

using KindSet = std::array<bool, kShedKinds>;

// Kinds of which GPUPROF_PRESET and GPUPROF_ACTIVITIES do not ask for all. Of other tools' traces
// it is not known: none.
KindSet unset_kinds(const Process& process);

// In the order of ShedKind. `allowed_pct`: the budget that any of them had.
struct LeftOutKinds {
  std::vector<LeftOutKind> kinds;  // by GPUPROF_BUDGET
  KindSet unset{};                 // of any window
  size_t windows = 0;              // of all processes
  double allowed_pct = 0;

  const LeftOutKind* find(ShedKind kind) const;
  KindSet lacking() const;  // by either
  // Windows of another run. Of a kind that both lack, `since` stays that of the first.
  void add(const LeftOutKinds& other);
};
LeftOutKinds left_out_of(const Trace& trace);

// Whether a kind is missing in steps of the process, the last of which ends then.
bool lacks(const Process& process, ShedKind kind, int64_t end);

// Whether the time of a part cannot be told without a kind.
bool needs(Part part, ShedKind kind);
// Whether it is known of a step of the process that ends then.
bool is_known(Part part, const Process& process, int64_t end, const KindSet& unset);
bool is_known(Part part, const LeftOutKinds& left_out);

// Fills `left_out` of a report.
void note_left_out_kinds(const Trace& trace, Report& report);
// Causes whose share or saving needs what was left out: out of the verdict, into `unknown_causes`.
void leave_out_unknown_causes(Report& report);
// "call stacks since step 12 (310 ms into the window), in 2 of 8 windows; ..."
std::string describe(const LeftOutKinds& left_out);
// For the title of a table: "; not recorded since step 12 (...)"; "" where it is whole.
std::string not_whole_text(const LeftOutKinds& left_out, ShedKind kind);
// Parts of a step whose time is not known for it, by name; and a sentence of them: "Not known
// apart, since GPUPROF_BUDGET left out records: kernel_launch, allocation, other". Empty: all are
// known. `by_budget`: else the settings did.
std::vector<std::string> unknown_parts(const LeftOutKinds& left_out);
std::string unknown_parts_text(const std::vector<std::string>& parts, bool by_budget);
// Why causes are not known: "GPUPROF_BUDGET left out call stacks since ..."
std::string why_not_known(const LeftOutKinds& left_out);
// Of causes, by name: "Of these causes it is not known whether they are there, since ...: ..."
std::string unknown_causes_text(const std::vector<std::string>& causes, std::string_view why);
// "allocation, host_work"
std::string names_of(const std::vector<Cause>& causes);

// The finding, if anything was left out.
void add_left_out_kinds(Report& report);

}  // namespace gpuprof::analysis
