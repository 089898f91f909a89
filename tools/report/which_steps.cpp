// SPDX-License-Identifier: Apache-2.0
#include "tools/report/which_steps.h"

#include <fmt/format.h>

namespace gpuprof {

std::string which_steps(const std::set<uint64_t>& numbers) {
  if (numbers.empty()) return "no steps";
  const uint64_t first = *numbers.begin(), last = *numbers.rbegin();
  if (first == last) return fmt::format("step {}", first);
  if (numbers.size() == last - first + 1) return fmt::format("steps {} to {}", first, last);
  return fmt::format("{} of the steps {} to {}", numbers.size(), first, last);
}

}  // namespace gpuprof
