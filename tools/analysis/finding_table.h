// SPDX-License-Identifier: Apache-2.0
// The kinds of findings, of findings.def: names, limits and texts. docs/REPORT.md defines each.
#pragma once

#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

namespace gpuprof::analysis {

enum class FindingKind : uint8_t {
#define GPUPROF_FINDING(kind, limit, other_limit, text) kind,
#include "tools/analysis/findings.def"
#undef GPUPROF_FINDING
};

// As docs/REPORT.md writes it: 5 %, 256 MB. No unit: there is no limit.
struct Limit {
  double value = 0;
  const char* unit = "";
};

struct FindingRow {
  FindingKind kind;
  std::string_view name;  // in JSON
  Limit limit, other_limit;
  const char* text;  // fmt's syntax
};

inline constexpr FindingRow kFindings[] = {
#define LIMIT(value, unit) \
  Limit { value, unit }
#define NO_LIMIT \
  Limit {}
#define GPUPROF_FINDING(kind, limit, other_limit, text) \
  {FindingKind::kind, #kind, limit, other_limit, text},
#include "tools/analysis/findings.def"
#undef GPUPROF_FINDING
#undef NO_LIMIT
#undef LIMIT
};
inline constexpr size_t kFindingKinds = std::size(kFindings);

constexpr const FindingRow& finding_row(FindingKind kind) {
  return kFindings[static_cast<size_t>(kind)];
}

// Whether it ends a program, now or after more steps: the report says such a thing first.
constexpr bool ends_program(FindingKind kind) {
  switch (kind) {
    case FindingKind::job_stands:
    case FindingKind::out_of_memory:
    case FindingKind::near_out_of_memory:
    case FindingKind::memory_growth:
    case FindingKind::host_memory_growth: return true;
    default: return false;
  }
}

struct Finding {
  FindingKind kind;
  std::string text;  // one line for people
  double value;      // the figure in it
};

// How many values a text takes: those of findings.def have no other braces.
constexpr size_t values_in(std::string_view text) {
  size_t count = 0;
  for (const char c : text) count += c == '{';
  return count;
}

// Appends a finding. `args` are the values of its text: the compiler checks their number and types.
template <FindingKind kKind, typename... Args>
void add_finding(std::vector<Finding>& out, double value, const Args&... args) {
  constexpr const char* kText = finding_row(kKind).text;
  static_assert(values_in(kText) == sizeof...(Args), "as many as the text in findings.def takes");
  out.push_back({kKind, fmt::format(kText, args...), value});
}

}  // namespace gpuprof::analysis
