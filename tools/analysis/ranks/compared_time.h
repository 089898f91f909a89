// SPDX-License-Identifier: Apache-2.0
// How much of what ranks communicate tells which of them waited for which.
#pragma once

#include <span>

#include "tools/analysis/ranks.h"
#include "tools/analysis/report.h"
#include "tools/analysis/timeline.h"

namespace gpuprof::analysis {

class ComparedTime {
 public:
  // All ranks of one window.
  void add(std::span<const Timeline> timelines, const RankComparison& ranks);
  // In the evidence of `communication` and `straggler`, if it is not nearly all.
  void say(const Report& report, Verdict& verdict) const;

 private:
  // ns of communication in steps; of these in collectives that other ranks have, too, and that no
  // copy engine did.
  double all_ = 0, compared_ = 0;
};

}  // namespace gpuprof::analysis
