// SPDX-License-Identifier: Apache-2.0
// How far a file is from the order of time: what may be missing of one that was cut.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace gpuprof::kineto {

// Of some of the events, as they follow each other in the file.
class FileOrder {
 public:
  void add(int64_t begin) {
    if (count_++ == 0) first_ = begin;
    earliest_ = std::min(earliest_, begin);
    const int64_t late = std::max<int64_t>(latest_ - begin, 0);
    latest_ = std::max(latest_, begin);
    if (late == 0) return;
    const auto power = static_cast<size_t>(std::bit_width(static_cast<uint64_t>(late)));
    if (late_.size() < power) late_.resize(power);
    Late& group = late_[power - 1];
    ++group.count;
    group.most = std::max(group.most, late);
  }

  // By how many ns an event may come behind one that began later; a few stray ones do not count.
  // kAny where the file begins amid the time of its events, or is in no order.
  static constexpr int64_t kAny = int64_t{1} << 62;
  int64_t lag() const {
    if (count_ == 0) return 0;
    constexpr int64_t kAmid = 20;  // one of so many parts from the earliest on
    const int64_t span = latest_ - earliest_;
    if ((first_ - earliest_) * kAmid > span) return kAny;
    constexpr size_t kStray = 500;  // one of so many
    size_t stray = count_ / kStray;
    for (size_t i = late_.size(); i-- > 0;) {
      if (late_[i].count > stray) return 2 * late_[i].most > span ? kAny : late_[i].most;
      stray -= late_[i].count;
    }
    return 0;
  }

 private:
  struct Late {
    size_t count = 0;
    int64_t most = 0;
  };
  size_t count_ = 0;
  int64_t first_ = 0, earliest_ = int64_t{1} << 61;
  int64_t latest_ = -(int64_t{1} << 61);
  std::vector<Late> late_;  // by the power of two below it
};

}  // namespace gpuprof::kineto
