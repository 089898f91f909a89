// SPDX-License-Identifier: Apache-2.0
// Which lines of Python, or functions of a program without it, ran while no GPU of the process had
// work, by the host samples of the thread that the steps run on. A sample stands for the time from
// halfway to the one before to halfway to the one after it, two periods at most.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "tools/analysis/anatomy.h"

namespace gpuprof::analysis {

// A line of the program's own code; of a stack without any, its innermost frame's. Of native code
// without information for debuggers: a function, and for its file the library's name.
struct CodeLine {
  std::string file, function;
  uint32_t line = 0;          // 0: not known
  std::string within;         // the function called that at least half of its time was in; "": none
  std::string place() const;  // "train.py:41 main"
};

// Times in the functions that a line called.
class WithinTimes {
 public:
  // Of one sample, callees before their callers; one that calls itself counts once.
  void add(std::span<const std::string> functions, double us);
  // The innermost one that at least half of `total` was in; "": none.
  std::string mostly(double total) const;

 private:
  std::vector<std::pair<std::string, double>> times_;
};

struct HostLine : CodeLine {
  double idle_us = 0;                    // time that no GPU worked, with this line running
  std::array<double, kParts> part_us{};  // of it, by what the time counts as
};

// A call stack and the GPU idle time under it.
struct IdleStack {
  std::vector<std::string> frames;  // outermost first, "function (file:line)", "function"
  double idle_us = 0;
};

struct HostSamples {
  uint64_t samples = 0;           // of the threads looked at
  double idle_us = 0;             // GPU idle time that samples stand for
  std::vector<HostLine> lines;    // most time first
  std::vector<IdleStack> stacks;  // likewise
};

// Adds up timelines.
class HostSampleSums {
 public:
  void add(const Timeline& timeline, const IdleTimes& idle);
  HostSamples take();

 private:
  struct Sum {
    HostLine line;
    WithinTimes within;
  };
  void add_sample(const Process& process, StackIndex stack,
                  const std::array<double, kParts>& part_us);

  HostSamples out_;
  std::map<std::pair<std::string, std::string>, Sum> lines_;  // by file and line, or function
  std::map<std::vector<std::string>, double> stacks_;
};

}  // namespace gpuprof::analysis
