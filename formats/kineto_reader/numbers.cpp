// SPDX-License-Identifier: Apache-2.0
#include "formats/kineto_reader/numbers.h"

#include <charconv>
#include <cmath>

namespace gpuprof::kineto {
namespace {

constexpr int64_t kLatest = int64_t{1} << 62;

int64_t limited(double value) {
  if (!(value > static_cast<double>(-kLatest))) return -kLatest;
  return value < static_cast<double>(kLatest) ? static_cast<int64_t>(std::llround(value)) : kLatest;
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// The number as a double, where it is whole and small enough to be exact.
std::optional<double> whole_double(std::string_view number) {
  const std::optional<double> value = real(number);
  if (!value || std::abs(*value) > 9007199254740992.0 || std::nearbyint(*value) != *value) {
    return std::nullopt;
  }
  return value;
}

}  // namespace

std::optional<double> real(std::string_view number) {
  double value = 0;
  const char* const end = number.data() + number.size();
  const auto [at, error] = std::from_chars(number.data(), end, value);
  if (error == std::errc::result_out_of_range) return std::nullopt;
  if (error != std::errc() || at != end || !std::isfinite(value)) return std::nullopt;
  return value;
}

std::optional<int64_t> nanoseconds(std::string_view text) {
  const char* at = text.data();
  const char* const end = at + text.size();
  const bool negative = at < end && *at == '-';
  if (negative) ++at;
  if (at == end || !is_digit(*at)) return std::nullopt;
  uint64_t value = 0;
  const auto add = [&](char digit) {
    if (__builtin_mul_overflow(value, 10u, &value) ||
        __builtin_add_overflow(value, static_cast<uint64_t>(digit - '0'), &value)) {
      value = uint64_t{1} << 63;
    }
  };
  for (; at < end && is_digit(*at); ++at) add(*at);
  const bool point = at < end && *at == '.';
  if (point) ++at;
  bool up = false;
  for (int decimals = 0; decimals < 3; ++decimals) {
    add(point && at < end && is_digit(*at) ? *at++ : '0');
  }
  if (point && at < end && is_digit(*at)) {
    up = *at >= '5';
    while (at < end && is_digit(*at)) ++at;
  }
  if (at < end) {  // an exponent, or something else
    const std::optional<double> microseconds = real(text);
    if (!microseconds) return std::nullopt;
    return limited(*microseconds * 1000);
  }
  value += up;
  const int64_t ns = value < uint64_t{kLatest} ? static_cast<int64_t>(value) : kLatest;
  return negative ? -ns : ns;
}

std::optional<uint64_t> whole(std::string_view number) {
  uint64_t value = 0;
  const char* const end = number.data() + number.size();
  const auto [at, error] = std::from_chars(number.data(), end, value);
  if (error == std::errc() && at == end) return value;
  const std::optional<double> same = whole_double(number);
  if (!same || *same < 0) return std::nullopt;
  return static_cast<uint64_t>(*same);
}

std::optional<int64_t> signed_whole(std::string_view number) {
  int64_t value = 0;
  const char* const end = number.data() + number.size();
  const auto [at, error] = std::from_chars(number.data(), end, value);
  if (error == std::errc() && at == end) return value;
  const std::optional<double> same = whole_double(number);
  if (!same) return std::nullopt;
  return static_cast<int64_t>(*same);
}

std::optional<uint64_t> whole_or_hex(std::string_view number) {
  if (!number.starts_with("0x")) return whole(number);
  uint64_t value = 0;
  const char* const end = number.data() + number.size();
  const auto [at, error] = std::from_chars(number.data() + 2, end, value, 16);
  if (error != std::errc() || at != end) return std::nullopt;
  return value;
}

}  // namespace gpuprof::kineto
