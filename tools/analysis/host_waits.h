// SPDX-License-Identifier: Apache-2.0
// How much of the steps the host only waits for the GPU: then it is not what steps are limited by.
#pragma once

#include <string>

#include "tools/analysis/timeline.h"

namespace gpuprof::analysis {

class HostWaits {
 public:
  void add(const Timeline& timeline);
  // Of the steps: the time in calls that wait, on the threads that steps run on.
  double percent() const;
  // Where GPU time is exposed and the replay gains nothing without it: what else may be the limit.
  std::string what_else_limits() const;

 private:
  double waits_ns_ = 0, steps_ns_ = 0;
};

}  // namespace gpuprof::analysis
