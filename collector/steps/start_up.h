// SPDX-License-Identifier: Apache-2.0
// Whether a program is still starting up: it makes more CUDA graphs. An inference engine calls its
// model once or twice for each batch size that it captures, before it serves anybody. What tells is
// the largest number of executable graphs that ever lived at once. Captures alone do not: llama.cpp
// captures and updates its graph while it serves, and that number stays.
//
// Not for ever: some programs make a graph for each new shape that comes. Then steps are what was
// taken for them. No clock, no I/O.
#pragma once

#include <cstddef>
#include <cstdint>

namespace gpuprof {

class StartUp {
 public:
  // A mark, with that number of graphs. True: it has grown since the mark before, which was of
  // start-up. `patience`: so many ticks after the first mark each growth is one, and what follows
  // the one before closely as many after the first growth. `windows` are complete: after one only
  // what follows closely, after two none.
  bool goes_on(uint64_t ticks, size_t graphs, uint64_t patience, uint32_t windows);
  // A window, or its warm-up, was given up for one. After kMostLost of them all that comes is steps
  // until a window is complete.
  void lost_window() { lost_ += lost_ < kMostLost; }

  static constexpr uint32_t kFewMarks = 32;  // between two captures
  static constexpr uint32_t kMostTimes = 4096;
  static constexpr uint32_t kMostLost = 8;

 private:
  uint64_t first_ = 0;        // ticks of the first mark
  uint64_t first_grown_ = 0;  // and of the first growth
  size_t graphs_ = 0;         // at the last one
  uint32_t marks_ = 0;        // since the number grew
  uint32_t times_ = 0;        // that it grew
  uint32_t lost_ = 0;         // windows that were given up
};

}  // namespace gpuprof
