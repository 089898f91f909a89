// SPDX-License-Identifier: Apache-2.0
// One or several runs of a program as samples that can be compared: by step, and by what the steps
// are made of.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "formats/trace/trace.h"
#include "tools/analysis/anatomy.h"
#include "tools/analysis/left_out_kinds.h"
#include "tools/analysis/run_setup.h"

namespace gpuprof::analysis {

// "kernel", "copy", "collective", "operator" or "cause", and which.
struct SampleKey {
  std::string kind, name;
  auto operator<=>(const SampleKey&) const = default;
};

struct KeySample {
  std::vector<double> step_us;      // its time in each step, the mean over ranks; RunSample's order
  std::vector<double> duration_us;  // of single events; at most kMaxDurations, evenly taken
  uint64_t count = 0;               // events in all
};
inline constexpr size_t kMaxDurations = 20'000;

struct RunSample {
  std::vector<double> step_us;  // each step's length, the mean over ranks
  std::map<SampleKey, KeySample> keys;
  // The kernels that one step (the middle one, on the first rank) launched, of each stream, in
  // order of begin.
  std::vector<std::vector<std::string>> program;
  // The least of the runs' processes whose steps were found, not marked; none: all are marked.
  std::optional<double> step_confidence;
  uint32_t waits_in_step = 0;  // of cudaDeviceSynchronize, where these are steps; 0: they are not
  std::string clock_source;  // of steps that are stretches of wall time ("time:1000"); empty: none
  bool gpu_timed = false;    // some work on a GPU was recorded
  RunSetup setup;
  LeftOutKinds left_out;
  // Of what it left out, what the steps do not have: parts of a step, and operators.
  std::array<bool, kParts> lacks_part{};
  bool lacks_operators = false;
  // What hooks and CUPTI took of the windows' time, as they count it; nothing: not known of one.
  std::optional<double> recording_pct() const;

  void add_run(const Trace& trace);

 private:
  void add_budget(const Timeline& timeline);

  double recording_ns_ = 0, windows_ns_ = 0;
  bool recording_known_ = true;
};

}  // namespace gpuprof::analysis
