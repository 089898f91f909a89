// SPDX-License-Identifier: Apache-2.0
#include "tools/analysis/ranks/rank_speeds.h"

#include <algorithm>
#include <cmath>

#include "tools/analysis/statistics.h"

namespace gpuprof::analysis {
namespace {

// Of two ranks the faster one is what the other could be.
void compare(std::vector<RankSpeed>& speeds, double step_us, double RankSpeed::*time,
             double RankSpeed::*factor) {
  std::vector<double> times;
  for (const RankSpeed& speed : speeds) times.push_back(speed.*time);
  const double middle = lower_median(times);
  for (RankSpeed& speed : speeds) {
    const bool counts = std::abs(speed.*time - middle) >= kCountsPart * step_us;
    speed.*factor = counts && middle > 0 ? speed.*time / middle : 1;
  }
}

constexpr double RankSpeed::*kMeans[] = {&RankSpeed::compute_us,        &RankSpeed::data_loading_us,
                                         &RankSpeed::host_us,           &RankSpeed::waited_us,
                                         &RankSpeed::waited_median_us,  &RankSpeed::exposed_us,
                                         &RankSpeed::exposed_median_us, &RankSpeed::awaited_us};

}  // namespace

void compare_speeds(std::vector<RankSpeed>& speeds, double step_us) {
  compare(speeds, step_us, &RankSpeed::compute_us, &RankSpeed::compute);
  compare(speeds, step_us, &RankSpeed::data_loading_us, &RankSpeed::data_loading);
  compare(speeds, step_us, &RankSpeed::host_us, &RankSpeed::host);
}

void SpeedsOfWindows::add(std::span<const Timeline> timelines, const RankComparison& comparison) {
  if (!comparison.comparable) return;
  const auto collectives = static_cast<double>(comparison.timed);
  collectives_ += collectives;
  for (size_t i = 0; i < timelines.size(); ++i) {
    const std::vector<double> lengths = lengths_us(timelines[i].steps);
    lengths_us_.insert(lengths_us_.end(), lengths.begin(), lengths.end());
    const RankSpeed& own = comparison.speeds[i];
    const auto steps = static_cast<double>(lengths.size());
    Sum& sum = sums_[key_of(*timelines[i].process)];
    sum.speed.rank = own.rank;
    sum.speed.last_pct += own.last_pct * collectives;
    sum.speed.collectives += own.collectives;
    sum.steps += steps;
    for (double RankSpeed::*const each : kMeans) sum.speed.*each += own.*each * steps;
  }
}

std::vector<RankSpeed> SpeedsOfWindows::take() const {
  std::vector<RankSpeed> out;
  for (const auto& [key, sum] : sums_) {
    RankSpeed& speed = out.emplace_back(sum.speed);
    for (double RankSpeed::*const each : kMeans) {
      if (sum.steps > 0) speed.*each /= sum.steps;
    }
    if (collectives_ > 0) speed.last_pct /= collectives_;
  }
  std::stable_sort(out.begin(), out.end(),
                   [](const RankSpeed& a, const RankSpeed& b) { return a.rank < b.rank; });
  compare_speeds(out, quantile(lengths_us_, 0.5));
  return out;
}

}  // namespace gpuprof::analysis
