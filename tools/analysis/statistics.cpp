// SPDX-License-Identifier: Apache-2.0
#include "tools/analysis/statistics.h"

#include <algorithm>
#include <boost/math/distributions/normal.hpp>
#include <boost/math/distributions/students_t.hpp>
#include <cmath>
#include <numeric>

namespace gpuprof::analysis {
namespace {

struct Moments {
  double count, mean, variance;
};

Moments moments_of(std::span<const double> values) {
  const auto count = static_cast<double>(values.size());
  const double mean = std::accumulate(values.begin(), values.end(), 0.0) / count;
  double squares = 0;
  for (const double value : values) squares += (value - mean) * (value - mean);
  return {count, mean, squares / (count - 1)};
}

}  // namespace

std::vector<double> lengths_us(std::span<const Step> steps) {
  std::vector<double> out;
  for (const Step& step : steps) out.push_back(static_cast<double>(step.end - step.begin) / 1000);
  return out;
}

double quantile(std::vector<double> values, double q) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const double at = q * static_cast<double>(values.size() - 1);
  const auto low = static_cast<size_t>(at);
  const size_t high = std::min(low + 1, values.size() - 1);
  return values[low] + (at - static_cast<double>(low)) * (values[high] - values[low]);
}

double nearest_rank(std::vector<double> values, double q) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const auto rank = static_cast<size_t>(std::ceil(q * static_cast<double>(values.size())));
  return values[std::clamp<size_t>(rank, 1, values.size()) - 1];
}

double lower_median(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>((values.size() - 1) / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

MeanChange welch(std::span<const double> base, std::span<const double> other) {
  MeanChange out;
  if (base.empty() || other.empty()) return out;
  const Moments a = moments_of(base), b = moments_of(other);
  out.base = a.mean;
  out.other = b.mean;
  const double difference = b.mean - a.mean;
  if (a.mean != 0) out.change_pct = out.low_pct = out.high_pct = 100 * difference / a.mean;
  if (base.size() < 2 || other.size() < 2) return out;
  const double share_a = a.variance / a.count, share_b = b.variance / b.count;
  const double error = std::sqrt(share_a + share_b);
  if (error <= 1e-12 * std::abs(a.mean)) {
    out.p = difference == 0 ? 1 : 0;
    return out;
  }
  const double freedom = (share_a + share_b) * (share_a + share_b) /
                         (share_a * share_a / (a.count - 1) + share_b * share_b / (b.count - 1));
  const boost::math::students_t t(freedom);
  out.p = 2 * boost::math::cdf(boost::math::complement(t, std::abs(difference) / error));
  if (a.mean != 0) {
    const double width = 100 * boost::math::quantile(t, 0.975) * error / std::abs(a.mean);
    out.low_pct = std::max(-100.0, out.change_pct - width);
    out.high_pct = out.change_pct + width;
  }
  return out;
}

namespace {

double rank_test(std::span<const double> base, std::span<const double> other) {
  struct Value {
    double value;
    bool from_base;
  };
  std::vector<Value> all;
  all.reserve(base.size() + other.size());
  for (const double value : base) all.push_back({value, true});
  for (const double value : other) all.push_back({value, false});
  std::sort(all.begin(), all.end(),
            [](const Value& a, const Value& b) { return a.value < b.value; });
  double rank_sum = 0, ties = 0;
  for (size_t i = 0; i < all.size();) {
    size_t end = i;
    while (end < all.size() && all[end].value == all[i].value) ++end;
    const double rank = (static_cast<double>(i) + static_cast<double>(end) + 1) / 2;
    for (size_t k = i; k < end; ++k) rank_sum += all[k].from_base ? rank : 0;
    const auto same = static_cast<double>(end - i);
    ties += same * same * same - same;
    i = end;
  }
  const auto m = static_cast<double>(base.size()), n = static_cast<double>(other.size());
  const double total = m + n;
  const double u = rank_sum - m * (m + 1) / 2;
  const double variance = m * n / 12 * (total + 1 - ties / (total * (total - 1)));
  if (variance <= 0) return 1;
  const double z = std::max(0.0, std::abs(u - m * n / 2) - 0.5) / std::sqrt(variance);
  return 2 * boost::math::cdf(boost::math::complement(boost::math::normal(), z));
}

// At most so many, evenly from them.
std::vector<double> thinned(std::span<const double> values, size_t most) {
  if (values.size() <= most) return {values.begin(), values.end()};
  std::vector<double> out;
  for (size_t i = 0; i < most; ++i) out.push_back(values[i * values.size() / most]);
  return out;
}

}  // namespace

double mann_whitney(std::span<const double> base, std::span<const double> other) {
  if (base.size() < 8 || other.size() < 8) return 1;
  return rank_test(base, other);
}

MeanChange typical_change(std::span<const double> base, std::span<const double> other) {
  MeanChange out;
  out.base = quantile({base.begin(), base.end()}, 0.5);
  out.other = quantile({other.begin(), other.end()}, 0.5);
  if (base.size() < 4 || other.size() < 4) return out;
  const std::vector<double> befores = thinned(base, 1000), afters = thinned(other, 1000);
  std::vector<double> ratios;
  ratios.reserve(befores.size() * afters.size());
  for (const double after : afters) {
    for (const double before : befores) ratios.push_back(after / before);
  }
  std::sort(ratios.begin(), ratios.end());
  const auto m = static_cast<double>(befores.size()), n = static_cast<double>(afters.size());
  const double half = m * n / 2 - 1.96 * std::sqrt(m * n * (m + n + 1) / 12);
  const auto at = static_cast<size_t>(std::max(half, 1.0)) - 1;
  const auto percent = [](double ratio) { return 100 * (ratio - 1); };
  out.change_pct = percent(quantile(ratios, 0.5));
  out.low_pct = percent(ratios[at]);
  out.high_pct = percent(ratios[ratios.size() - 1 - at]);
  out.p = rank_test(befores, afters);
  return out;
}

std::vector<double> false_discovery_rates(const std::vector<double>& p) {
  std::vector<size_t> order(p.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return p[a] < p[b]; });
  std::vector<double> out(p.size());
  double least = 1;
  for (size_t i = order.size(); i-- > 0;) {
    least =
        std::min(least, p[order[i]] * static_cast<double>(p.size()) / static_cast<double>(i + 1));
    out[order[i]] = least;
  }
  return out;
}

}  // namespace gpuprof::analysis
