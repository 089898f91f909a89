// SPDX-License-Identifier: Apache-2.0
// Ranks, steps and names in a line for people. What a line has no room for is counted.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <string>

namespace gpuprof {

inline constexpr size_t kMostRanges = 8;

// Of numbers in order: those that are not one more than the number before.
template <typename Numbers>
size_t range_count(const Numbers& numbers) {
  size_t count = 0;
  for (auto at = numbers.begin(), before = at; at != numbers.end(); before = at++) {
    count += at == before || *at != *before + 1;
  }
  return count;
}

// "0-3, 7" of numbers in order, none twice. What comes after `most` ranges is counted:
// "1, 3, 5 and 509 more".
template <typename Numbers>
std::string number_ranges(const Numbers& numbers, size_t most = kMostRanges) {
  std::string out;
  size_t ranges = 0, told = 0;
  for (auto at = numbers.begin(); at != numbers.end() && ranges < most; ++ranges) {
    const auto first = *at;
    auto last = first;
    for (++told; ++at != numbers.end() && *at == last + 1; ++told) last = *at;
    out += fmt::format("{}{}", out.empty() ? "" : ", ", first);
    if (last != first) out += fmt::format("-{}", last);
  }
  if (told < numbers.size()) out += fmt::format(" and {} more", numbers.size() - told);
  return out;
}

// "rank 7", "ranks 0-3, 7"
template <typename Numbers>
std::string rank_ranges(const Numbers& ranks) {
  return fmt::format("{} {}", ranks.size() == 1 ? "rank" : "ranks", number_ranges(ranks));
}

// "a, b, c and 9 more"
template <typename Names>
std::string names_of_some(const Names& names, size_t most) {
  const size_t told = std::min(most, names.size());
  std::string out = fmt::format(
      "{}", fmt::join(names.begin(), names.begin() + static_cast<ptrdiff_t>(told), ", "));
  if (told < names.size()) out += fmt::format(" and {} more", names.size() - told);
  return out;
}

}  // namespace gpuprof
