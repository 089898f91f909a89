// SPDX-License-Identifier: Apache-2.0
// What the search for periods and the places of heap samples need of mathematics, without libm: the
// preloaded library would load it into every process.
#pragma once

#include <bit>
#include <cstdint>

namespace gpuprof {

// Towards minus infinity; |value| below 2^62.
inline double floor_of(double value) {
  const auto whole = static_cast<double>(static_cast<int64_t>(value));
  return whole > value ? whole - 1 : whole;
}
inline double nearest(double value) { return floor_of(value + 0.5); }
// What is left of `value` after whole times of `by`, 0 to `by`.
inline double rest_of(double value, double by) { return value - by * floor_of(value / by); }

// Of a turn, -0.5 to 0.5: its sine. Two parabolas and their square; off by at most 0.0011.
inline double sine_of_turn(double turn) {
  const double size = turn < 0 ? -turn : turn;
  const double first = 8 * turn * (1 - 2 * size);
  return first + 0.225 * (first * (first < 0 ? -first : first) - first);
}

// The turn, -0.5 to 0.5, whose sine and cosine are as `sine` to `cosine`. By a polynomial for
// the arc tangent on 0 to 1 (Abramowitz and Stegun, 4.4.49), off by at most 0.00001. Of both 0:
// 0.
inline double turn_of(double sine, double cosine) {
  const double s = sine < 0 ? -sine : sine, c = cosine < 0 ? -cosine : cosine;
  if (s == 0 && c == 0) return 0;
  const double x = s < c ? s / c : c / s, square = x * x;
  double angle =
      x *
      (0.9998660 +
       square * (-0.3302995 + square * (0.1801410 + square * (-0.0851330 + square * 0.0208351))));
  constexpr double kPi = 3.14159265358979323846;
  if (s > c) angle = kPi / 2 - angle;
  if (cosine < 0) angle = kPi - angle;
  return (sine < 0 ? -angle : angle) / (2 * kPi);
}

// The natural logarithm of a normal number above 0; off by at most 0.000001 of it or of 1. By the
// series of the area tangent on 1 to 2 (Abramowitz and Stegun, 4.1.27).
inline double logarithm_of(double value) {
  constexpr double kLog2 = 0.693147180559945309;
  const auto bits = std::bit_cast<uint64_t>(value);
  const auto exponent = static_cast<int64_t>(bits >> 52) - 1023;
  const auto mantissa =
      std::bit_cast<double>((bits & ((uint64_t{1} << 52) - 1)) | uint64_t{1023} << 52);
  const double z = (mantissa - 1) / (mantissa + 1), square = z * z;
  const double series =
      1 + square * (1.0 / 3 +
                    square * (1.0 / 5 + square * (1.0 / 7 + square * (1.0 / 9 + square / 11))));
  return static_cast<double>(exponent) * kLog2 + 2 * z * series;
}

}  // namespace gpuprof
