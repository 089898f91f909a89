// SPDX-License-Identifier: Apache-2.0
// Where the wall time of each step went: a partition without overlap. docs/REPORT.md has the
// definitions with their formulas.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "tools/analysis/intervals.h"
#include "tools/analysis/timeline.h"

namespace gpuprof::analysis {

// The parts of a step. The first three are time in which recorded work runs on some GPU of the
// process. The last is time of which no record says what the GPU did. The others are GPU idle time,
// by what the launching thread did.
enum class Part : uint8_t {
  compute,
  communication,    // and no compute
  transfer,         // copies and sets, and neither of the above
  data_loading,     // the thread waited for its data loader
  kernel_launch,    // the thread was issuing work, and the GPU had none left
  allocation,       // inside cudaMalloc, cudaFree...; and after one that the GPU ran dry under
  synchronization,  // inside a call that waits; and after one that the GPU ran dry under
  other,            // other work on the host, gaps between work that was queued in time
  profiler,         // the thread worked for the profiler
  unknown,          // before the first recorded work, which waited for what was not recorded
};
inline constexpr size_t kParts = 10;
inline constexpr size_t kBusyParts = 3;
std::string_view part_name(Part part);

using PartTimes = std::array<int64_t, kParts>;  // ns

struct StepAnatomy {
  uint64_t step;
  int64_t begin, end;
  PartTimes parts{};                    // sum: end - begin
  std::array<int64_t, 2> overlapped{};  // communication, transfer: while compute ran
  int64_t device_idle = 0;              // of `other`: work was there, and had not begun
  // Of the idle parts: what they would not have lasted, had the launching thread had a processor
  // whenever it could run.
  PartTimes no_processor{};
};

// A host thread does something of its own if for longer than this it makes no traced call and is
// in no operator that issues work. An eager framework takes some 10 to 200 us between two
// kernels.
inline constexpr int64_t kOwnWorkNs = 1'000'000;

// The time in which the GPU is known to be idle, by part.
using IdleTimes = std::array<Intervals, kParts>;

// The time at the window's begin of which no record says what the GPU did; begin == end: there is
// none.
Interval unknown_time(const Timeline& timeline);

// Of each step of the timeline. One walk through its work. It keeps sums and, if asked for, the
// idle time and the part of `other` in which issued work had not begun.
std::vector<StepAnatomy> dissect(const Timeline& timeline, IdleTimes* idle = nullptr,
                                 Intervals* device_idle = nullptr);

}  // namespace gpuprof::analysis
