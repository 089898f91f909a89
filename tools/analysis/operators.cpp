// SPDX-License-Identifier: Apache-2.0
#include "tools/analysis/operators.h"

#include <algorithm>
#include <set>
#include <tuple>

#include "tools/analysis/left_out_kinds.h"
#include "tools/analysis/live_owners.h"
#include "tools/analysis/memory_owners.h"
#include "tools/analysis/named_rows.h"
#include "tools/analysis/operator_walk.h"
#include "tools/analysis/walks.h"

namespace gpuprof::analysis {
namespace {

std::vector<OperatorRow> sorted(std::map<std::string, OperatorRow>&& rows) {
  for (auto& [name, row] : rows) {
    if (row.kind.empty()) row.kind = "module";
  }
  return named_rows(std::move(rows),
                    [](const OperatorRow& row) { return std::pair(row.gpu_us, row.cpu_us); });
}

// Of kernels' time, by operators of known arithmetic: with less their sum says nothing of the job.
constexpr double kLeastCountedPct = 30;

Arithmetic arithmetic_of(std::span<const Timeline> timelines, const OperatorSums& sums) {
  double steps = 0, compute_ns = 0;
  double gpu_ns = 0;  // of steps, of each GPU: those of a process work side by side
  for (const Timeline& timeline : timelines) {
    std::set<uint32_t> devices;
    each_work(timeline, [&](const Work& work) {
      if (work.kind != WorkClass::compute || !timeline.step_at(timeline.issued_at(work))) return;
      compute_ns += static_cast<double>(work.end - work.begin);
      devices.insert(timeline.streams[work.stream].name.device);
    });
    const auto gpus = std::max<double>(1, static_cast<double>(devices.size()));
    for (const Step& step : timeline.steps) {
      gpu_ns += gpus * static_cast<double>(step.end - step.begin);
    }
    steps += static_cast<double>(timeline.steps.size());
  }
  const double counted = static_cast<double>(sums.counted_ns);
  if (gpu_ns <= 0 || compute_ns <= 0 || 100 * counted < kLeastCountedPct * compute_ns) return {};
  return {sums.flop / steps, sums.flop / gpu_ns / 1000,
          sums.peak_known ? 100 * sums.seconds_at_peak * 1e9 / gpu_ns : 0,
          100 * counted / compute_ns};
}

// Since GPUPROF_BUDGET left them out, in part of the steps: their sum is not that of the steps.
bool lacks_operators(const Timeline& timeline) {
  return !timeline.steps.empty() &&
         lacks(*timeline.process, ShedKind::operators, timeline.steps.back().end);
}

}  // namespace

OperatorTables make_operator_tables(std::span<const Timeline> timelines, Grouping grouping) {
  OperatorTables out;
  OperatorSums sums;
  for (const Timeline& timeline : timelines) {
    if (timeline.steps.empty()) continue;
    OperatorWalk walk(timeline, grouping, sums);
    walk.walk();
    const MemoryCurves curves = memory_curves(*timeline.trace, *timeline.process);
    std::vector<OwnerRow> owners = walk.owners().at_peak(curves);
    if (bytes_of(owners) > bytes_of(out.memory_owners)) out.memory_owners = std::move(owners);
    out.kept_memory[timeline.process] = walk.owners().kept(curves, timeline.steps);
  }
  // Without a whole step: what there was when memory ran out, or in the end.
  for (const Timeline& timeline : timelines) {
    for (const LiveMemory& live : timeline.process->live_memory) {
      if (out.memory_owners.empty()) out.memory_owners = live_owners(*timeline.process, live);
    }
  }
  out.operators = sorted(std::move(sums.operators));
  out.modules = sorted(std::move(sums.modules));
  for (auto& [key, row] : sums.grouped) {
    std::tie(row.name, row.by) = key;
    out.grouped.push_back(std::move(row));
  }
  std::stable_sort(out.grouped.begin(), out.grouped.end(),
                   [](const OperatorRow& a, const OperatorRow& b) {
                     return std::pair(a.gpu_us, a.cpu_us) > std::pair(b.gpu_us, b.cpu_us);
                   });
  for (auto& [key, row] : sums.places) out.places.push_back(std::move(row));
  std::stable_sort(out.places.begin(), out.places.end(),
                   [](const PlaceRow& a, const PlaceRow& b) { return a.total_us > b.total_us; });
  const bool whole = std::none_of(timelines.begin(), timelines.end(), lacks_operators);
  if (sums.flop > 0 && whole) out.arithmetic = arithmetic_of(timelines, sums);
  return out;
}

}  // namespace gpuprof::analysis
