// SPDX-License-Identifier: Apache-2.0
// CUPTI's clock, and ours. No timestamp callback is registered, since the program's own profiler
// would get it, too. From 12.6 update 2 to 13.0 one can give kernels without times (CUPTI release
// notes, 13.1). Registered again it gives records in another clock
// (https://github.com/pytorch/pytorch/issues/192021). So both clocks are read together now and
// then, and times of records lie between two such readings.
#pragma once

#include <cupti.h>

#include <cstddef>
#include <cstdint>

namespace gpuprof {

class CuptiClock {
 public:
  // One reading of both; ours lies within `width` ticks.
  struct Anchor {
    uint64_t theirs, ticks, width;
  };

  // From now on times are those of `clock`, of whatever unit.
  void begin(CUpti_TimestampCallbackFunc clock, double ticks_per_ns);
  Anchor read() const;
  void add(const Anchor& now);
  // `time` as ticks, once an anchor was added. Before the first one and after the last one their
  // slope goes on.
  uint64_t to_ticks(uint64_t time) const;
  // How far a time may be off: the widest reading, and how far an anchor ever lay from where those
  // before it put it.
  uint64_t error_ticks() const { return error_; }

 private:
  static constexpr size_t kMost = 32;
  uint64_t expected(const Anchor& from, const Anchor& to, uint64_t time) const;

  CUpti_TimestampCallbackFunc clock_ = nullptr;
  double spacing_ = 0;  // ticks between two that are kept; the newest may be closer
  Anchor anchors_[kMost] = {};
  size_t count_ = 0;
  uint64_t error_ = 0;
};

}  // namespace gpuprof
