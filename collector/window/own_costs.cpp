// SPDX-License-Identifier: Apache-2.0
#include "collector/window/own_costs.h"

#include <numeric>

#include "collector/record/session.h"
#include "collector/record/shed.h"
#include "formats/core/own_time.h"

namespace gpuprof {
namespace {

constexpr double kWorthSheddingShare = 0.05;  // of the budget

ShedKind kind_of(const Record& record) {
  switch (record.kind) {
    case Kind::op:
    case Kind::annotation:
    case Kind::module: return ShedKind::operators;
    default: return record.api < api_count() ? shed_kind(api_rows()[record.api]) : ShedKind::none;
  }
}

}  // namespace

void RecordCosts::add(const Record& record, const Record& stack_of) {
  if (record.kind == Kind::stack) {
    const bool stays = stack_of.kind == Kind::heap;
    ticks[static_cast<size_t>(stays ? ShedKind::none : ShedKind::stacks)] += record.stack.ticks;
    return;
  }
  if (is_own_time(record)) {
    // What comes once a window (marks of steps, hooks in Python, attaching CUPTI) is no part of
    // what recording goes on to cost.
    const auto type = static_cast<OwnTime>(record.overhead.type);
    if (type == OwnTime::buffer) buffer_ticks += record.end - record.begin;
    if (type == OwnTime::callback) ticks[0] += record.end - record.begin;
    return;
  }
  const uint64_t cost = record_units(record);
  if (cost == 0) return;
  const auto kind = static_cast<size_t>(kind_of(record));
  ++records[kind];
  units[kind] += cost;
}

KindCosts RecordCosts::since(const RecordCosts& before, uint64_t lost, double ns_per_unit,
                             double ticks_per_ns) const {
  uint64_t all = 0;
  for (size_t kind = 0; kind < kShedKinds; ++kind) all += records[kind] - before.records[kind];
  const double all_records = static_cast<double>(all);
  const double with_lost = all ? (all_records + static_cast<double>(lost)) / all_records : 1;
  const double buffers_ns = static_cast<double>(buffer_ticks - before.buffer_ticks) / ticks_per_ns;
  KindCosts costs{};
  for (size_t kind = 0; kind < kShedKinds; ++kind) {
    const auto own = static_cast<double>(records[kind] - before.records[kind]);
    costs[kind] = static_cast<double>(units[kind] - before.units[kind]) * ns_per_unit * with_lost +
                  static_cast<double>(ticks[kind] - before.ticks[kind]) / ticks_per_ns +
                  (all ? buffers_ns * own / all_records : 0);
  }
  if (all == 0) costs[0] += buffers_ns + static_cast<double>(lost) * ns_per_unit;
  return costs;
}

double sum_of(const KindCosts& costs) { return std::accumulate(costs.begin(), costs.end(), 0.0); }

uint32_t choose_shed(const KindCosts& costs, double elapsed_ns, double percent, uint32_t shed) {
  const double allowed = elapsed_ns * percent / 100;
  double sum = sum_of(costs);
  uint32_t more = 0;
  constexpr auto kWaits = static_cast<size_t>(ShedKind::waits);
  while (sum > allowed) {
    size_t most = 0;  // none
    for (size_t kind = 1; kind < kShedKinds; ++kind) {
      if ((shed | more) >> kind & 1 || costs[kind] < kWorthSheddingShare * allowed) continue;
      if (most == 0 || most == kWaits || (kind != kWaits && costs[kind] > costs[most])) most = kind;
    }
    if (most == 0) break;
    more |= 1u << most;
    sum -= costs[most];
  }
  return more;
}

}  // namespace gpuprof
