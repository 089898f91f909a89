// SPDX-License-Identifier: Apache-2.0
// Which kernels of a new run stand where other kernels stood in the run before: renamed, fused (one
// in the place of several) or split. docs/REPORT.md has the rules.
#pragma once

#include <string>
#include <vector>

#include "tools/analysis/run_sample.h"

namespace gpuprof::analysis {

struct KernelMatch {
  enum class Kind { renamed, fused, split } kind;
  std::vector<std::string> base, other;  // distinct kernels in order; renamed: one each
  std::string name;                      // "A + 2 x B -> C"
};

// By the kernels of one step of each run, stream by stream. A kernel is in one match at most, and
// only if the other run does not have it.
std::vector<KernelMatch> match_kernels(const RunSample& base, const RunSample& other);

}  // namespace gpuprof::analysis
