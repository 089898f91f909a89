// SPDX-License-Identifier: Apache-2.0
// Another clock's times as ticks: both are read together now and then, and times lie between two
// such readings. Needs a lock where several threads use one.
#pragma once

#include <cstddef>
#include <cstdint>

namespace gpuprof {

class AnchoredClock {
 public:
  // One reading of both; ours lies within `width` ticks.
  struct Anchor {
    uint64_t theirs, ticks, width;
  };

  void begin(const Anchor& first, double ticks_per_ns);
  void add(const Anchor& now);
  size_t anchors() const { return count_; }
  // `time` as ticks, once an anchor was added. Before the first one and after the last one their
  // slope goes on.
  uint64_t to_ticks(uint64_t time) const;
  // How far a time may be off: half the widest reading, and how far an anchor ever lay from where
  // those before it put it.
  uint64_t error_ticks() const { return error_; }

 private:
  static constexpr size_t kMost = 32;
  static uint64_t expected(const Anchor& from, const Anchor& to, uint64_t time);

  double spacing_ = 0;  // ticks between two that are kept; the newest may be closer
  Anchor anchors_[kMost] = {};
  size_t count_ = 0;
  uint64_t error_ = 0;
};

}  // namespace gpuprof
