// SPDX-License-Identifier: Apache-2.0
#include "formats/core/steps/step_names.h"

#include <cstring>

#include "formats/core/text.h"

namespace gpuprof {
namespace {

// Names that training loops give their step ranges; `auto` looks for these.
constexpr std::string_view kLikelyNames[] = {
    "step",         "train_step", "training_step", "train step", "training step",
    "ProfilerStep", "iteration",  "iter",          "train_iter", "train_iteration",
};

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; }

bool equal_ignoring_case(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i) {
    if (lower(a[i]) != lower(b[i])) return false;
  }
  return true;
}

}  // namespace

std::string_view base_name(std::string_view message) {
  size_t end = message.size();
  while (end && message[end - 1] >= '0' && message[end - 1] <= '9') --end;
  if (end && end < message.size() && std::strchr(" #_:", message[end - 1])) --end;
  return slice(message, 0, end);
}

bool step_name_matches(std::string_view message, std::string_view name) {
  return message == name || base_name(message) == name;
}

std::string_view likely_step_name(std::string_view message) {
  const std::string_view base = base_name(message);
  for (const std::string_view likely : kLikelyNames) {
    if (equal_ignoring_case(base, likely)) return base;
  }
  return {};
}

}  // namespace gpuprof
