// SPDX-License-Identifier: Apache-2.0
#include "collector/steps/leading_device.h"

#include <algorithm>

namespace gpuprof {

bool LeadingDevice::leads(uint32_t thread, int32_t device, bool follows_thread) {
  if (!any_ || device_ == kUnknownDevice) {
    lead(thread, device);
    return true;
  }
  const bool same =
      device == kUnknownDevice || device == device_ || (follows_thread && thread == thread_);
  if (same) {
    longest_ = std::max(longest_, others_);
    others_ = 0;
    return true;
  }
  others_ever_ = true;
  if (++others_ <= std::max(kSilence, 2 * longest_)) return false;
  lead(thread, device);
  return true;
}

void LeadingDevice::lead(uint32_t thread, int32_t device) {
  any_ = true;
  thread_ = thread;
  device_ = device;
  others_ = longest_ = 0;
}

}  // namespace gpuprof
