// SPDX-License-Identifier: Apache-2.0
#include "collector/steps/leading_module.h"

namespace gpuprof {

LeadingModule::Call LeadingModule::call(uint64_t module) {
  Module* const called = find(module);
  if (!called) return Call::other;
  ++called->calls;
  const auto index = static_cast<size_t>(called - known_);
  if (index == leader_) return Call::leads;
  if (called->calls < kFewest || called->calls < 2 * known_[leader_].calls) return Call::other;
  leader_ = index;
  return Call::takes_over;
}

// A new one takes the place of one that was called once, and does not lead.
LeadingModule::Module* LeadingModule::find(uint64_t module) {
  for (size_t i = 0; i < count_; ++i) {
    if (known_[i].id == module) return &known_[i];
  }
  if (count_ < kKnown) {
    known_[count_] = {module, 0};
    return &known_[count_++];
  }
  for (size_t i = 0; i < count_; ++i) {
    if (i == leader_ || known_[i].calls > 1) continue;
    known_[i] = {module, 0};
    return &known_[i];
  }
  return nullptr;
}

}  // namespace gpuprof
