// SPDX-License-Identifier: Apache-2.0
// CUPTI's clock, and ours. No timestamp callback is registered, since the program's own profiler
// would get it, too. From 12.6 update 2 to 13.0 one can give kernels without times (CUPTI release
// notes, 13.1). Registered again it gives records in another clock
// (https://github.com/pytorch/pytorch/issues/192021). So both clocks are read together now and
// then, and times of records lie between two such readings.
#pragma once

#include <cupti.h>

#include "collector/base/anchored_clock.h"

namespace gpuprof {

class CuptiClock : public AnchoredClock {
 public:
  // From now on times are those of `clock`, of whatever unit.
  void begin(CUpti_TimestampCallbackFunc clock, double ticks_per_ns);
  Anchor read() const;

 private:
  CUpti_TimestampCallbackFunc clock_ = nullptr;
};

}  // namespace gpuprof
