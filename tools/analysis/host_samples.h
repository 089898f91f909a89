// SPDX-License-Identifier: Apache-2.0
// Which lines of Python ran while no GPU of the process had work, and which waited for one;
// functions in a program without Python. By host samples of the thread that the steps run on.
// Those that were taken in a part of a step, with no GPU at work, share that part's idle time, each
// by the time from halfway to the one before to halfway to the one after it, two periods at most.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "tools/analysis/anatomy.h"
#include "tools/analysis/line_times.h"

namespace gpuprof::analysis {

// A line that ran while no GPU worked.
struct HostLine : CodeLine {
  double idle_us = 0;                           // time that no GPU worked, with this line running
  uint32_t samples = 0;                         // that have such time
  std::array<double, kParts> part_us{};         // of it, by what the time counts as
  std::array<uint32_t, kParts> part_samples{};  // likewise
};

// A line with calls that wait for a GPU: synchronisation, copies that return when they are done.
struct WaitingLine : CodeLine {
  double wait_us = 0;  // in such calls, whatever the GPU did
  uint32_t samples = 0;
};

// A call stack and the GPU idle time under it.
struct IdleStack {
  std::vector<std::string> frames;  // outermost first, "function (file:line)", "function"
  double idle_us = 0;
};

// " (by 3 samples)", of a share that rests on fewer than ten; else "".
std::string few_samples(uint32_t samples);

struct HostSamples {
  uint64_t samples = 0;              // of the threads looked at
  double idle_us = 0;                // GPU idle time that samples stand for
  uint32_t idle_samples = 0;         // these
  std::vector<HostLine> lines;       // most time first
  std::vector<IdleStack> stacks;     // likewise
  double wait_us = 0;                // of the steps, in calls that wait, that samples stand for
  std::vector<WaitingLine> waiting;  // likewise
};

// Adds up timelines.
class HostSampleSums {
 public:
  void add(const Timeline& timeline, const IdleTimes& idle);
  HostSamples take();

 private:
  void add_idle(const Process& process, StackIndex stack,
                const std::array<double, kParts>& part_us);
  void add_waits(const Timeline& timeline, std::span<const HostSample> samples);

  HostSamples out_;
  LineTimes<HostLine, &HostLine::idle_us> lines_;
  LineTimes<WaitingLine, &WaitingLine::wait_us> waiting_;
  std::map<std::vector<std::string>, double> stacks_;
};

}  // namespace gpuprof::analysis
