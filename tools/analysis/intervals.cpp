// SPDX-License-Identifier: Apache-2.0
#include "tools/analysis/intervals.h"

#include <utility>

namespace gpuprof::analysis {

Intervals cover(std::vector<Interval> any) {
  std::sort(any.begin(), any.end(),
            [](const Interval& a, const Interval& b) { return a.begin < b.begin; });
  Intervals out;
  for (const Interval& each : any) {
    if (each.begin >= each.end) continue;
    if (!out.empty() && each.begin <= out.back().end) {
      out.back().end = std::max(out.back().end, each.end);
    } else {
      out.push_back(each);
    }
  }
  return out;
}

Intervals unite(const Intervals& a, const Intervals& b) {
  std::vector<Interval> all(a);
  all.insert(all.end(), b.begin(), b.end());
  return cover(std::move(all));
}

Intervals subtract(const Intervals& a, const Intervals& b) {
  Intervals out;
  auto hole = b.begin();
  for (Interval rest : a) {
    while (hole != b.end() && hole->end <= rest.begin) ++hole;
    for (auto at = hole; at != b.end() && at->begin < rest.end; ++at) {
      if (at->begin > rest.begin) out.push_back({rest.begin, at->begin});
      rest.begin = std::max(rest.begin, at->end);
    }
    if (rest.begin < rest.end) out.push_back(rest);
  }
  return out;
}

Intervals intersect(const Intervals& a, const Intervals& b) {
  Intervals out;
  auto x = a.begin(), y = b.begin();
  while (x != a.end() && y != b.end()) {
    const int64_t begin = std::max(x->begin, y->begin), end = std::min(x->end, y->end);
    if (begin < end) out.push_back({begin, end});
    if (x->end < y->end) {
      ++x;
    } else {
      ++y;
    }
  }
  return out;
}

int64_t total(const Intervals& set) {
  int64_t sum = 0;
  for (const Interval& each : set) sum += each.length();
  return sum;
}

Measure::Measure(Intervals set) : set_(std::move(set)) {
  sums_.reserve(set_.size());
  int64_t sum = 0;
  for (const Interval& each : set_) {
    sums_.push_back(sum);
    sum += each.length();
  }
}

int64_t Measure::before(int64_t time) const {
  const auto after =
      std::upper_bound(set_.begin(), set_.end(), time,
                       [](int64_t at, const Interval& each) { return at < each.begin; });
  if (after == set_.begin()) return 0;
  const auto last = static_cast<size_t>(after - set_.begin()) - 1;
  return sums_[last] + std::min(time, set_[last].end) - set_[last].begin;
}

int64_t Measure::inside(int64_t begin, int64_t end) const {
  return begin < end ? before(end) - before(begin) : 0;
}

bool Measure::touches(int64_t begin, int64_t end) const {
  const auto first = std::partition_point(set_.begin(), set_.end(),
                                          [&](const Interval& each) { return each.end <= begin; });
  return first != set_.end() && std::max(begin, first->begin) < end;
}

}  // namespace gpuprof::analysis
