// SPDX-License-Identifier: Apache-2.0
// Quantiles, and tests of whether two samples differ.
#pragma once

#include <span>
#include <vector>

#include "formats/trace/trace.h"

namespace gpuprof::analysis {

// How long each step took, in microseconds.
std::vector<double> lengths_us(std::span<const Step> steps);

// The value below which `q` (0 to 1) of the values lie, between neighbours by proportion; 0 of
// none.
double quantile(std::vector<double> values, double q);

// The smallest of the values that at least `q` of them do not exceed; 0 of none.
double nearest_rank(std::vector<double> values, double q);

// Of an even number, the smaller of the two in the middle; 0 of none.
double lower_median(std::vector<double> values);

struct MeanChange {
  double base = 0, other = 0;        // means (typical_change(): medians)
  double change_pct = 0;             // of base
  double low_pct = 0, high_pct = 0;  // 95 % confidence interval of change_pct
  double p = 1;                      // two-sided; 1 where either sample has fewer than two values
};

// Welch's t-test with the Welch-Satterthwaite degrees of freedom. The interval is that of the
// difference of means, in per cent of the base's mean. Times have no mean below 0, so it begins at
// -100 at the least. Samples without any spread that differ: p 0.
MeanChange welch(std::span<const double> base, std::span<const double> other);

// The shift of a typical value, whatever outliers do: Hodges and Lehmann's estimate, the median of
// all ratios of a value of `other` to one of `base` (J. L. Hodges, E. L. Lehmann, Estimates of
// Location Based on Rank Tests, 1963). `base` and `other` are medians; the interval is that of the
// Mann-Whitney test, by its normal approximation. p is 1, and there is no interval, for fewer than
// 4 values in a sample. Of more than 1,000 values as many are taken, evenly. Values are above 0.
MeanChange typical_change(std::span<const double> base, std::span<const double> other);

// Mann-Whitney U, two-sided, by the normal approximation with the correction for ties; 1 for fewer
// than 8 values in a sample.
double mann_whitney(std::span<const double> base, std::span<const double> other);

// Benjamini-Hochberg: the false-discovery rate at which each hypothesis is rejected, in the order
// of `p`.
std::vector<double> false_discovery_rates(const std::vector<double>& p);

}  // namespace gpuprof::analysis
