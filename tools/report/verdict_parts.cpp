// SPDX-License-Identifier: Apache-2.0
#include "tools/report/verdict_parts.h"

#include <fmt/format.h>

namespace gpuprof {

std::vector<VerdictPart> verdict_parts(const analysis::Report& report) {
  std::vector<VerdictPart> out;
  const bool whole = report.whole_windows && !report.pipeline;
  if (report.verdict.empty()) out.push_back({0, report.reason, 2, "", false});
  size_t cause = 0, number = 0;
  if (!report.verdict.empty() && !report.unknown_causes.empty()) {
    std::vector<std::string> names;
    for (const analysis::Cause each : report.unknown_causes) {
      names.emplace_back(analysis::cause_name(each));
    }
    out.push_back({0,
                   analysis::unknown_causes_text(names, analysis::why_not_known(report.left_out)),
                   2, "", false});
  }
  for (const analysis::Verdict& verdict : report.verdict) {
    ++cause;
    const std::string name(analysis::cause_name(verdict.cause));
    if (verdict.cause == analysis::Cause::compute) {
      out.push_back({cause,
                     fmt::format("{}: {:.1f} % of {} time; no other cause was found", name,
                                 verdict.share_pct, report.unit()),
                     2, "", true});
    } else {
      out.push_back({cause,
                     fmt::format("{}: {:.1f} % of {} time; without it {}s are {:.1f} % shorter",
                                 name, verdict.share_pct, whole ? "the" : "step",
                                 whole ? "window" : "step", verdict.saves_pct),
                     4, fmt::format("{:>2}. ", ++number), true});
    }
    for (const std::string& each : verdict.evidence) {
      out.push_back({cause, "- " + each, 4, "", false});
    }
    out.push_back({cause, verdict.advice, 4, "", false});
    if (verdict.confidence < 0.7) {
      out.push_back({cause, fmt::format("(confidence {:.2f})", verdict.confidence), 4, "", false});
    }
  }
  return out;
}

}  // namespace gpuprof
