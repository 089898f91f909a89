// SPDX-License-Identifier: Apache-2.0
#include "tests/simcuda/core/timeline.h"

#include <algorithm>
#include <utility>

#include "tests/simcuda/core/clock.h"

namespace gpuprof::simcuda {

uint64_t CopyEngine::reserve(uint64_t earliest, uint64_t duration, uint64_t now) {
  busy_.erase(std::remove_if(busy_.begin(), busy_.end(),
                             [&](const Busy& b) { return b.end < now && b.end < earliest; }),
              busy_.end());
  uint64_t start = earliest;
  auto at = busy_.begin();
  for (; at != busy_.end(); ++at) {
    if (start + duration <= at->begin) break;
    start = std::max(start, at->end);
  }
  busy_.insert(at, Busy{start, start + duration});
  return start;
}

void Timeline::enqueue(const OpPtr& op, const std::vector<OpPtr>& after) {
  for (const OpPtr& dependency : after) {
    if (dependency == nullptr) continue;
    if (dependency->resolved) {
      op->earliest = std::max(op->earliest, dependency->info.end);
    } else {
      op->waits_for.push_back(dependency);
    }
  }
  if (!try_resolve(*op)) pending_.push_back(op);
}

bool Timeline::try_resolve(Op& op) {
  while (!op.waits_for.empty()) {
    const OpPtr& dependency = op.waits_for.back();
    if (!dependency->resolved) return false;
    op.earliest = std::max(op.earliest, dependency->info.end);
    op.waits_for.pop_back();
  }
  if (op.dispatched_after != nullptr) {
    if (!op.dispatched_after->resolved) return false;
    op.earliest = std::max(op.earliest, op.dispatched_after->info.begin);
    op.dispatched_after.reset();
  }
  uint64_t start = op.earliest;
  uint64_t end = start + op.duration;
  if (op.gate != nullptr) {
    if (!op.gate->resolve(&start, &end)) return false;
    op.gate.reset();
  } else if (op.engine != nullptr) {
    start = op.engine->reserve(start, op.duration, now_ns());
    end = start + op.duration;
  }
  if (op.begin_of != nullptr) start = std::exchange(op.begin_of, nullptr)->info.begin;
  op.info.begin = start;
  op.info.end = end;
  op.resolved = true;
  if (op.effect) op.effect();
  observer_.resolved(op);
  return true;
}

bool Timeline::progress() {
  const size_t before = pending_.size();
  pending_.erase(std::remove_if(pending_.begin(), pending_.end(),
                                [this](const OpPtr& op) { return try_resolve(*op); }),
                 pending_.end());
  return pending_.size() != before;
}

}  // namespace gpuprof::simcuda
