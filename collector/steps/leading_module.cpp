// SPDX-License-Identifier: Apache-2.0
#include "collector/steps/leading_module.h"

#include <algorithm>

namespace gpuprof {

LeadingModule::Call LeadingModule::call(uint64_t module, bool trains) {
  ++all_;
  Module* called = find(module, trains);
  if (!called) called = place_for(module, trains);
  if (!called) return Call::other;
  count(*called);
  const auto index = static_cast<size_t>(called - known_);
  if (index == leader_) return Call::leads;
  const Module& leader = known_[leader_];
  const Module* const trained = trains ? nullptr : find(module, true);
  if (trains && leader.id == module) {
    leader_ = index;
    return Call::takes_over;
  }
  if (trained && trained->calls >= kFewest && !is_gone(*trained, kEvaluation)) return Call::other;
  if (is_gone(leader, kSilence) && called->since >= kFewest) {
    forget_what_was_called_before();
  } else if (called->calls < kFewest || called->calls < 2 * leader.calls) {
    return Call::other;
  }
  leader_ = index;
  return Call::takes_over;
}

LeadingModule::Module* LeadingModule::find(uint64_t module, bool trains) {
  for (size_t i = 0; i < count_; ++i) {
    if (known_[i].id == module && known_[i].trains == trains) return &known_[i];
  }
  return nullptr;
}

// Never the leader's. Null: none.
LeadingModule::Module* LeadingModule::place_for(uint64_t module, bool trains) {
  Module* place = nullptr;
  if (count_ < kKnown) {
    place = &known_[count_++];
  } else {
    for (size_t i = 0; i < count_; ++i) {
      Module& one = known_[i];
      if (i == leader_ || (one.calls > 1 && !is_gone(one, kSilence))) continue;
      if (!place || one.last < place->last) place = &one;
    }
  }
  if (place) *place = Module{module, trains, 0, 0, 0, 0, 0};
  return place;
}

void LeadingModule::count(Module& called) {
  const uint64_t leaders_last = known_[leader_].last;
  if (called.last != 0) called.longest = std::max(called.longest, all_ - called.last - 1);
  if (called.leaders_last != leaders_last) called.since = 0;
  called.leaders_last = leaders_last;
  ++called.since;
  ++called.calls;
  called.last = all_;
}

bool LeadingModule::is_gone(const Module& module, uint64_t silence) const {
  return all_ - module.last > std::max(silence, 2 * module.longest);
}

// What was called often beside a leader that is gone does not outweigh what is called now.
void LeadingModule::forget_what_was_called_before() {
  for (size_t i = 0; i < count_; ++i) {
    Module& one = known_[i];
    one.calls = one.leaders_last == known_[leader_].last ? one.since : 0;
  }
}

}  // namespace gpuprof
