// SPDX-License-Identifier: Apache-2.0
// How `gpuprof diff` says what changed.
#pragma once

#include <string>
#include <vector>

#include "tools/analysis/diff.h"
#include "tools/describe.h"

namespace gpuprof {

inline constexpr int kDiffSchema = 1;

struct DiffGate {
  double fail_over_pct = 0;  // a slow-down up to this is let through
  bool regression = false;   // a significant slow-down beyond it
  // What recording took of the two runs decides whether there is one, or may: then `regression` is
  // false.
  bool unknown = false;
  // Without a regression: the largest slow-down that the intervals leave open, if it is beyond what
  // is let through; else 0.
  double not_excluded_pct = 0;
};
DiffGate gate_of(const analysis::Diff& diff, double fail_over_pct);

Json diff_json(const analysis::Diff& diff, const DiffGate& gate);
std::string gate_text(const DiffGate& gate);  // whether it is a regression, for people
// What GPUPROF_BUDGET left out of the runs, what is not compared for that or by the settings, and
// what recording took of both where a budget left something out: a line each.
std::vector<std::string> recording_lines(const analysis::Diff& diff);
// Those, after what else differs between the runs.
std::vector<std::string> diff_notes(const analysis::Diff& diff);
struct DiffTextOptions {
  size_t width = 80;        // columns
  bool full_names = false;  // of kernels, on one line
};
// For a terminal: by kind, the largest difference first.
std::string diff_text(const analysis::Diff& diff, const DiffGate& gate,
                      const DiffTextOptions& options = {});
// What was compared, as it was named.
struct DiffRuns {
  std::vector<std::string> base, other;
};
// For a comment.
std::string diff_markdown(const analysis::Diff& diff, const DiffGate& gate,
                          const DiffRuns& runs = {});

}  // namespace gpuprof
