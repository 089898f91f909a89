// SPDX-License-Identifier: Apache-2.0
#include "tools/analysis/ranks/compared_time.h"

#include <fmt/format.h>

#include "tools/analysis/walks.h"

namespace gpuprof::analysis {

void ComparedTime::add(std::span<const Timeline> timelines, const RankComparison& ranks) {
  for (size_t i = 0; i < timelines.size(); ++i) {
    each_work_of_steps(timelines[i], [&](const Work& work) {
      const auto found = ranks.joint_of[i].find(work.event);
      const bool joint = found != ranks.joint_of[i].end();
      if (!joint && work.kind != WorkClass::communication) return;
      const auto length = static_cast<double>(work.end - work.begin);
      all_ += length;
      const bool known = joint && ranks.comparable && !ranks.collectives[found->second].by_copies;
      if (known) compared_ += length;
    });
  }
}

void ComparedTime::say(const Report& report, Verdict& verdict) const {
  constexpr double kNearlyAllPct = 95;
  const bool straggler = verdict.cause == Cause::straggler;
  if (!straggler && verdict.cause != Cause::communication) return;
  // Of one rank, or a few of many, the evidence says that the others' files tell more.
  if (report.processes.size() < 2 || (!straggler && report.ranks < report.world_size)) return;
  const double percent = all_ > 0 ? 100 * compared_ / all_ : 100;
  if (percent >= kNearlyAllPct) return;
  verdict.evidence.push_back(fmt::format(
      "{:.0f} % of the time of communication tells which rank waits for which: what ranks wait for "
      "each other in the rest is {}",
      percent, straggler ? "not in this" : "in that time, too"));
}

}  // namespace gpuprof::analysis
