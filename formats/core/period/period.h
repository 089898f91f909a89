// SPDX-License-Identifier: Apache-2.0
// Steps of a program found from nothing but the order of its launches. Steps repeat: what is
// launched once in each (or in one burst) comes back at equal distances. Each such kernel, or
// short sequence of kernels, votes for its distance. The step is the largest distance with
// enough votes that is not smaller steps and something else (evaluation, a prompt). Where steps
// grow or shrink, pieces of the stream tell (pieces.h). Not thread-safe; memory comes from
// mmap.
#pragma once

#include <cstddef>
#include <cstdint>

#include "formats/core/byte_buffer.h"

namespace gpuprof {

// Launches that come once in each step: these kernels in this order, at least `apart` launches
// after they were seen last.
struct StepAnchor {
  static constexpr size_t kMost = 3;
  uint32_t count = 0;  // of kernels; 0: none
  uint32_t kernels[kMost] = {};
  uint32_t apart = 0;
};

struct Period {
  double confidence = 0;     // 0 to 1; 0: no period
  double length = 0;         // launches in a step, the median
  PodVector<size_t> begins;  // index of each step's first launch; as many as there are steps
  StepAnchor anchor;
};

// Below this there are no steps. At this, their count may be wrong: something stands between steps
// (evaluation, prompts), steps are left out, or each may be a few with something small between.
inline constexpr double kLeastConfidence = 0.5;

// `kernels`: any number for each kernel, in order of launch. Memory is O(n), time O(n log n), with
// a constant of some hundred. Sequences are sorted, and each of the few levels is walked a few
// dozen times, up to thrice that if steps change their length. False: no memory, `out` has no
// period.
bool find_period(const uint32_t* kernels, size_t count, Period& out);

}  // namespace gpuprof
