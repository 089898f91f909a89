// SPDX-License-Identifier: Apache-2.0
// What samples of host memory (activity `malloc`) stand for.
#pragma once

#include <cstdint>
#include <vector>

#include "formats/trace/trace.h"

namespace gpuprof {

// Bytes that a sampled allocation stands for. Places of samples are a Poisson process over
// the bytes allocated. An allocation of `bytes` is met with probability p = 1 - exp(-bytes
// / interval); bytes / p has the expectation `bytes` (the estimator of Horvitz and
// Thompson).
double heap_weight(uint64_t bytes, uint64_t interval);

// A sum of these as a whole number: what is beyond 2^60 either way, as a damaged file may have it,
// is that.
int64_t whole_number(double sum);

// What one stack allocated in the window, by the samples.
struct HeapSite {
  StackIndex stack;
  uint64_t samples = 0;
  double bytes = 0, count = 0;            // allocated
  double held_bytes = 0, held_count = 0;  // of it, not given back before the window ended
};
// Most bytes first.
std::vector<HeapSite> heap_sites(const Process& process);

// Bytes allocated and not given back since the window began.
struct HeapPoint {
  int64_t time;
  double held_bytes;
};
std::vector<HeapPoint> heap_curve(const Process& process);

}  // namespace gpuprof
