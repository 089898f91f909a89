// SPDX-License-Identifier: Apache-2.0
#include "tools/analysis/no_verdict.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "tools/analysis/verdict.h"
#include "tools/analysis/walks.h"

namespace gpuprof::analysis {
namespace {

std::string_view text_of(Part part) {
  switch (part) {
    case Part::kernel_launch: return "kernel_launch, the issuing of work";
    case Part::synchronization: return "synchronization, calls that wait for the GPU";
    case Part::other: return "other, what the host does between its calls";
    default: return part_name(part);
  }
}

// " (rank 1: ...)": the rank that differs most from the others, over all of its slow steps. Empty:
// none does.
std::string slowest(const Report& report) {
  const auto excess = [](const SlowRank& slow) {
    return slow.excess_us * static_cast<double>(slow.steps);
  };
  const auto most =
      std::max_element(report.slow_ranks.begin(), report.slow_ranks.end(),
                       [&](const SlowRank& a, const SlowRank& b) { return excess(a) < excess(b); });
  return most == report.slow_ranks.end() ? "" : fmt::format(" ({})", describe(*most));
}

}  // namespace

void RecordSource::add(const Process& process) {
  outside = outside && process.source == Source::kineto;
  host_events =
      host_events || std::any_of(process.lanes.begin(), process.lanes.end(), [](const Lane& lane) {
        const bool of_host = lane.type == LaneType::thread || lane.type == LaneType::other;
        return of_host && lane.event_count > 0;
      });
}

std::string without_calls(double percent, std::string_view unit, const RecordSource& source) {
  if (source.outside && source.host_events) {
    return fmt::format(
        "the GPU is idle for {:.1f} % of {} time, and the trace's host events could not be joined "
        "to its GPU work: none is a call with the correlation id of such work",
        percent, unit);
  }
  return fmt::format(
      "the GPU is idle for {:.1f} % of {} time, and the program's calls were not recorded: record "
      "them too ({}) to learn why",
      percent, unit,
      source.outside ? "activities=[CPU, CUDA] of torch.profiler" : "GPUPROF_PRESET=default");
}

std::string without_steps(const RecordSource& source) {
  if (source.outside) {
    return "no step was recorded: record with activities=[CPU, CUDA] of torch.profiler, and mark "
           "steps (prof.step())";
  }
  return "no step was recorded: mark steps (gpuprof run --step), or record a longer window";
}

LargestPart largest_idle_part(const Report& report) {
  LargestPart out;
  const auto offer = [&](std::string_view name, double percent) {
    if (percent > out.percent) out = {std::string(name), percent};
  };
  for (size_t i = kBusyParts; i < kParts; ++i) {
    const auto part = static_cast<Part>(i);
    const double device_idle = part == Part::other ? report.device_idle_pct : 0;
    offer(text_of(part), report.breakdown_pct[i] - device_idle - report.no_processor_pct[i]);
  }
  offer("waiting for a processor", report.no_processor_sum_pct());
  offer("work that was issued and did not begin, for a reason that is not recorded",
        report.device_idle_pct);
  return out;
}

double exposed_pct(const Report& report, double waited_pct) {
  return std::min(waited_pct, report.breakdown_pct[static_cast<size_t>(Part::communication)]);
}

std::string nothing_explains(const Report& report, double waited_pct) {
  const bool in_turn =
      std::any_of(report.findings.begin(), report.findings.end(),
                  [](const Finding& finding) { return finding.kind == FindingKind::gpus_in_turn; });
  const std::string of_several = fmt::format(
      "some GPU of the process works for {:.1f} % of {} time, but none for more than {:.1f} %",
      report.gpu_utilization_pct, report.unit(), report.busiest_gpu_pct);
  if (in_turn) return of_several + ": they work in turn, so none of them is the limit";
  const LargestPart most = largest_idle_part(report);
  if (report.gpu_utilization_pct - report.busiest_gpu_pct >= kWorthNamingPct) {
    return fmt::format(
        "{}: none of them is the limit, and no single cause explains the rest. Most of the time in "
        "which none works is {} ({:.1f} %)",
        of_several, most.name, most.percent);
  }
  if (waited_pct >= kWorthNamingPct) {
    return fmt::format(
        "the GPU works for {:.1f} % of {} time, and in {:.1f} of these it waits for other ranks in "
        "collectives{}: its own work is not the limit, and no single cause explains the rest. Most "
        "of it is {} ({:.1f} %)",
        report.gpu_utilization_pct, report.unit(), waited_pct, slowest(report), most.name,
        most.percent);
  }
  return fmt::format(
      "the GPU works for {:.1f} % of {} time, so it is not the limit, and no single cause explains "
      "the rest. Most of it is {} ({:.1f} %)",
      report.gpu_utilization_pct, report.unit(), most.name, most.percent);
}

std::string records_are_missing(const Report& report) {
  const double waited = report.no_processor_sum_pct();
  std::string known;
  if (waited >= kWorthNamingPct) {
    known = fmt::format(
        "; for {:.1f} % it is idle while a thread that issues its work has no processor (other "
        "programs, or a CPU limit)",
        waited);
  }
  return fmt::format(
      "the GPU works for {:.1f} % of {} time{}, and what takes the rest is not known: {}. Of these "
      "causes it cannot be told whether they are there: {}",
      report.gpu_utilization_pct, report.unit(), known, why_not_known(report.left_out),
      names_of(report.unknown_causes));
}

bool stalls_outweigh_causes(const Report& report) {
  constexpr double kOutweighsPct = 25;
  if (report.device_idle_pct < kOutweighsPct) return false;
  if (report.verdict.empty()) return false;  // add_compute() and nothing_explains() judge these
  const Verdict& first = report.verdict[0];
  return report.device_idle_pct > 2 * std::min(first.share_pct, first.saves_pct);
}

std::string stalled_reason(const Report& report) {
  const Verdict& first = report.verdict[0];
  return fmt::format(
      "for {:.1f} % of {} time no GPU works although work was issued, for a reason that is not "
      "recorded. That is far more than any cause has: {} has {:.1f} %, and without it {}s would be "
      "{:.1f} % shorter",
      report.device_idle_pct, report.unit(), cause_name(first.cause), first.share_pct,
      report.unit(), first.saves_pct);
}

void add_work_of_marked_steps(const Timeline& timeline, WorkOfMarkedSteps& to) {
  const Intervals gaps = times_between(timeline.steps);
  if (gaps.empty() || timeline.period_confidence > 0) return;
  Intervals works;
  each_work_of_steps(timeline, [&](const Work& work) { works.push_back({work.begin, work.end}); });
  const Measure gpu(cover(std::move(works)));
  to.all_ns += static_cast<double>(total(gpu.set()));
  for (const Interval& gap : gaps) {
    to.between_ns += static_cast<double>(gpu.inside(gap.begin, gap.end));
  }
}

std::string only_issuing(const WorkOfMarkedSteps& work) {
  constexpr double kMostBetween = 0.5;
  if (work.between_ns <= kMostBetween * work.all_ns) return "";
  return fmt::format(
      "{:.0f} % of what the GPU does for the steps it does between them: the marks cover the "
      "issuing of work, and not the wait for it. Let each mark reach to the next one",
      100 * work.between_ns / work.all_ns);
}

}  // namespace gpuprof::analysis
