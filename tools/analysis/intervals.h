// SPDX-License-Identifier: Apache-2.0
// Sets of points in time as sorted, disjoint, non-empty half-open intervals. All operations are
// linear.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace gpuprof::analysis {

struct Interval {
  int64_t begin, end;  // ns
  int64_t length() const { return end - begin; }
};

using Intervals = std::vector<Interval>;

// The set that arbitrary intervals cover; sorts them in place first.
Intervals cover(std::vector<Interval> any);
Intervals unite(const Intervals& a, const Intervals& b);
Intervals subtract(const Intervals& a, const Intervals& b);
Intervals intersect(const Intervals& a, const Intervals& b);
int64_t total(const Intervals& set);

class Measure {
 public:
  explicit Measure(Intervals set);
  // Length of the part of `set` in [begin, end): two binary searches.
  int64_t inside(int64_t begin, int64_t end) const;
  // Whether that is more than 0: one search.
  bool touches(int64_t begin, int64_t end) const;
  const Intervals& set() const { return set_; }

 private:
  int64_t before(int64_t time) const;  // length of the part before `time`
  Intervals set_;
  std::vector<int64_t> sums_;  // of the lengths of the intervals before each
};

}  // namespace gpuprof::analysis
