// SPDX-License-Identifier: Apache-2.0
#include "tools/analysis/ranks/slow_ranks.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "tools/analysis/statistics.h"
#include "tools/console.h"

namespace gpuprof::analysis {
namespace {

constexpr size_t kLeastSteps = 4;
constexpr double kUsually = 6;            // times the median distance of ranks from their median
constexpr double kPersistentShare = 0.8;  // of the steps since the first slow one
constexpr double kOnceAsMuch = 3;         // what is slow once stands out by so many times the limit
// Of the time by which a rank is slow once: others wait so much longer than it, or what it did was
// beside a longer pause of another rank.
constexpr double kWaitedFor = 0.5;
constexpr double kFactorTells = 100;  // a larger one is of next to nothing
constexpr size_t kPersistentSteps = 3;
constexpr size_t kPeriodicSteps = 3;

using Column = std::vector<double> StepTimes::*;
struct PartRow {
  SlowPart part;
  Column times;
  const char* name;
};
constexpr PartRow kParts[] = {
    {SlowPart::compute, &StepTimes::compute, "kernels"},
    {SlowPart::data_loading, &StepTimes::data_loading, "data loading"},
    {SlowPart::host, &StepTimes::host, "the host's own work"},
    {SlowPart::copies, &StepTimes::copies, "copies on the GPU"},
    {SlowPart::allocation, &StepTimes::allocation, "allocation"},
    {SlowPart::launches, &StepTimes::launches, "launching"},
    {SlowPart::processor, &StepTimes::processor, "waiting for a processor"}};
constexpr const char* kThrottledName = "kernels of a throttled GPU";

// One part of all ranks in the steps that all of them did.
struct Matrix {
  std::vector<uint64_t> steps;
  std::vector<std::vector<double>> times;  // by rank and step
};

std::vector<uint64_t> common_steps(std::span<const StepTimes> ranks) {
  std::map<uint64_t, size_t> counts;
  for (const StepTimes& rank : ranks) {
    for (const uint64_t step : rank.steps) ++counts[step];
  }
  std::vector<uint64_t> out;
  for (const auto& [step, count] : counts) {
    if (count == ranks.size()) out.push_back(step);
  }
  return out;
}

Matrix matrix_of(std::span<const StepTimes> ranks, const std::vector<uint64_t>& steps,
                 Column column) {
  Matrix out{steps, {}};
  for (const StepTimes& rank : ranks) {
    std::vector<double> row;
    size_t at = 0;
    for (const uint64_t step : steps) {
      while (rank.steps[at] != step) ++at;
      row.push_back((rank.*column)[at]);
    }
    out.times.push_back(std::move(row));
  }
  return out;
}

// The pattern of a rank's slow steps; false: none that says anything.
bool find_pattern(const std::vector<size_t>& slow, size_t steps, SlowRank& out) {
  const size_t since = slow.front(), rest = steps - since;
  const bool persistent =
      slow.size() >= kPersistentSteps &&
      static_cast<double>(slow.size()) >= kPersistentShare * static_cast<double>(rest) &&
      slow.back() + 2 >= steps;
  if (persistent) {
    out.pattern = SlowPattern::persistent;
    return true;
  }
  if (slow.size() == 1) {
    out.pattern = SlowPattern::one_off;
    return true;
  }
  const size_t period = slow[1] - slow[0];
  bool equal = slow.size() >= kPeriodicSteps && period > 1;
  for (size_t i = 1; i < slow.size(); ++i) equal = equal && slow[i] - slow[i - 1] == period;
  out.pattern = SlowPattern::periodic;
  out.period = period;
  return equal;
}

class Finder {
 public:
  Finder(std::span<const StepTimes> ranks, double step_us)
      : ranks_(ranks), least_us_(kCountsPart * step_us), steps_(common_steps(ranks)) {}

  std::vector<SlowRank> run() {
    if (ranks_.size() < 2 || steps_.size() < kLeastSteps) return {};
    const bool waits_known = std::all_of(ranks_.begin(), ranks_.end(), [](const StepTimes& rank) {
      return rank.waited.size() == rank.steps.size();
    });
    if (waits_known) waits_ = matrix_of(ranks_, steps_, &StepTimes::waited);
    for (const PartRow& row : kParts) look_at(row);
    // What differs most explains a rank; what else differs follows from it, or is little.
    std::stable_sort(found_.begin(), found_.end(), [](const SlowRank& a, const SlowRank& b) {
      return a.excess_us * static_cast<double>(a.steps) >
             b.excess_us * static_cast<double>(b.steps);
    });
    std::vector<SlowRank> out;
    for (const SlowRank& slow : found_) {
      const bool known = std::any_of(out.begin(), out.end(), [&](const SlowRank& other) {
        return other.rank == slow.rank &&
               (other.pattern == slow.pattern || slow.excess_us < 0.2 * other.excess_us);
      });
      if (!known) out.push_back(slow);
    }
    return out;
  }

 private:
  // How much longer the others wait than it. Of two ranks the other one is all of them.
  double waits_longer(size_t rank, size_t step) const {
    std::vector<double> others;
    for (size_t other = 0; other < ranks_.size(); ++other) {
      if (other != rank) others.push_back(waits_.times[other][step]);
    }
    return lower_median(others) - waits_.times[rank][step];
  }

  // The others wait for it: for what it does at a step's end, in the next one.
  bool explains_waits(size_t rank, const std::vector<size_t>& slow, double least_us) const {
    if (waits_.times.empty()) return true;
    std::vector<double> longer;
    for (const size_t step : slow) {
      longer.push_back(waits_longer(rank, step));
      if (step + 1 == steps_.size() || steps_[step + 1] != steps_[step] + 1) continue;
      longer.back() = std::max(longer.back(), waits_longer(rank, step + 1));
    }
    return quantile(longer, 0.5) >= least_us;
  }

  // More than half of all ranks: then it is not what tells one from the others.
  bool most_throttled() const {
    const auto count = std::count_if(ranks_.begin(), ranks_.end(),
                                     [](const StepTimes& each) { return each.throttled; });
    return 2 * static_cast<size_t>(count) > ranks_.size();
  }

  void look_at(const PartRow& row) {
    for (const StepTimes& rank : ranks_) {
      if ((rank.*row.times).size() != rank.steps.size()) return;  // not known
    }
    const Matrix matrix = matrix_of(ranks_, steps_, row.times);
    std::vector<double> medians, distances;
    for (size_t step = 0; step < steps_.size(); ++step) {
      std::vector<double> column;
      for (const auto& times : matrix.times) column.push_back(times[step]);
      medians.push_back(lower_median(column));
      for (const double time : column) distances.push_back(std::abs(time - medians.back()));
    }
    const double limit = std::max(least_us_, kUsually * quantile(distances, 0.5));
    for (size_t rank = 0; rank < ranks_.size(); ++rank) {
      std::vector<size_t> slow;
      for (size_t step = 0; step < steps_.size(); ++step) {
        if (matrix.times[rank][step] - medians[step] > limit) slow.push_back(step);
      }
      SlowRank out{ranks_[rank].rank, SlowPattern::one_off, row.part, 0, slow.size(), 0};
      if (slow.empty() || !find_pattern(slow, steps_.size(), out)) continue;
      std::vector<double> excess, factors;
      for (const size_t step : slow) {
        const double time = matrix.times[rank][step];
        excess.push_back(time - medians[step]);
        if (medians[step] > 0) factors.push_back(time / medians[step]);
      }
      out.since = steps_[slow.front()];
      out.excess_us = quantile(excess, 0.5);
      const bool once = out.pattern == SlowPattern::one_off;
      if (once && out.excess_us < kOnceAsMuch * limit) continue;
      out.factor = quantile(factors, 0.5);
      const double least_us = once ? std::max(least_us_, kWaitedFor * out.excess_us) : least_us_;
      if (!explains_waits(rank, slow, least_us)) continue;
      const bool throttled = ranks_[rank].throttled && !most_throttled();
      if (row.part == SlowPart::compute && throttled) out.part = SlowPart::throttled;
      found_.push_back(out);
    }
  }

  std::span<const StepTimes> ranks_;
  const double least_us_;
  const std::vector<uint64_t> steps_;
  Matrix waits_;  // empty: not known
  std::vector<SlowRank> found_;
};

}  // namespace

std::vector<SlowRank> find_slow_ranks(std::span<const StepTimes> ranks, double step_us) {
  return Finder(ranks, step_us).run();
}

std::string excess_of(const SlowRank& slow) {
  const char* const part = slow.part == SlowPart::throttled
                               ? kThrottledName
                               : kParts[static_cast<size_t>(slow.part)].name;
  const std::string more =
      slow.factor >= 1.005 && slow.factor < kFactorTells
          ? fmt::format("{:.2f} x the median rank's, {} more", slow.factor,
                        format_us(slow.excess_us))
          : fmt::format("{} more than the median rank's", format_us(slow.excess_us));
  switch (slow.pattern) {
    case SlowPattern::persistent:
      return fmt::format("{} {}, in {} steps since step {}", part, more, slow.steps, slow.since);
    case SlowPattern::periodic:
      return fmt::format("{} {}, in one of every {} steps from step {} on", part, more, slow.period,
                         slow.since);
    case SlowPattern::one_off: break;
  }
  return fmt::format("{} {}, once, in step {}", part, more, slow.since);
}

std::string describe(const SlowRank& slow) {
  return fmt::format("rank {}: {}", slow.rank, excess_of(slow));
}

}  // namespace gpuprof::analysis
