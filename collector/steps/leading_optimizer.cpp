// SPDX-License-Identifier: Apache-2.0
#include "collector/steps/leading_optimizer.h"

#include <algorithm>

namespace gpuprof {

static constexpr uint64_t kMostPatience = 1u << 20;

bool LeadingOptimizer::ends_step(uint64_t optimizer) {
  Optimizer* stepped = find(optimizer);
  if (!stepped) stepped = place_for(optimizer);
  if (!stepped) {
    ++unknown_;
    unknown_recurs_ = unknown_recurs_ || optimizer == one_unknown_;
    // As Brent looks for a cycle: whatever its length, one that is remembered comes again in it.
    if (optimizer != one_unknown_ && unknown_ >= remembered_for_) {
      one_unknown_ = optimizer;
      remembered_for_ = 2 * unknown_;
    }
    // Those known come once in so many, as long as no other has come twice meanwhile.
    if (unknown_ < most_unknown_ || !unknown_recurs_) return false;
    // None of those known is left: begin again, more patient each time, since it may be that others
    // come more often.
    const uint64_t next = std::min(2 * most_unknown_, kMostPatience);
    *this = LeadingOptimizer{};
    most_unknown_ = next;
    stepped = place_for(optimizer);
  }
  unknown_ = one_unknown_ = remembered_for_ = 0;
  unknown_recurs_ = false;
  count_step(*stepped);
  if (stepped == leader()) return true;
  if (!is_gone(*leader()) && !is_rarer(*stepped)) return false;
  lead(*stepped);
  return true;
}

LeadingOptimizer::Optimizer* LeadingOptimizer::find(uint64_t optimizer) {
  for (size_t i = 0; i < count_; ++i) {
    if (known_[i].id == optimizer) return &known_[i];
  }
  return nullptr;
}

// A free place, or that of the one that has been gone for longest; never the leader's. Null: none.
LeadingOptimizer::Optimizer* LeadingOptimizer::place_for(uint64_t optimizer) {
  Optimizer* place = nullptr;
  if (count_ < kKnown) {
    place = &known_[count_++];
  } else {
    for (Optimizer& one : known_) {
      if (&one == leader() || !is_gone(one)) continue;
      if (!place || one.last < place->last) place = &one;
    }
  }
  if (place) *place = Optimizer{optimizer, 0, 0, 0, false, 0, 0};
  return place;
}

void LeadingOptimizer::count_step(Optimizer& stepped) {
  const bool is_leader = &stepped == leader();
  for (size_t i = 0; i < count_; ++i) {
    Optimizer& other = known_[i];
    if (&other == &stepped) continue;
    if (stepped.last > other.last) ++other.repeats;
    if (is_leader && other.compared) ++other.leaders;
  }
  stepped.longest = std::max(stepped.longest, std::min(stepped.repeats, kLongest));
  stepped.repeats = 0;
  stepped.last = ++steps_;
}

bool LeadingOptimizer::is_gone(const Optimizer& optimizer) {
  return optimizer.repeats > std::max(kSilence, 2 * optimizer.longest);
}

// Called at each of its steps.
bool LeadingOptimizer::is_rarer(Optimizer& optimizer) {
  constexpr uint32_t kRemembered = 1024;
  if (!optimizer.compared) {
    optimizer.compared = true;
    return false;
  }
  ++optimizer.own;
  if (optimizer.leaders >= 2 * optimizer.own && optimizer.leaders <= kRarest * optimizer.own) {
    return true;
  }
  if (optimizer.own == kRemembered) {  // how it was long ago counts less
    optimizer.own /= 2;
    optimizer.leaders /= 2;
  }
  return false;
}

void LeadingOptimizer::lead(Optimizer& optimizer) {
  leader_ = static_cast<size_t>(&optimizer - known_);
  for (Optimizer& one : known_) {
    one.compared = false;
    one.own = one.leaders = 0;
  }
}

}  // namespace gpuprof
