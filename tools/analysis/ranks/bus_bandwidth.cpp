// SPDX-License-Identifier: Apache-2.0
#include "tools/analysis/ranks/bus_bandwidth.h"

#include <algorithm>

namespace gpuprof::analysis {
namespace {

struct Row {
  std::string_view function;
  bool for_each_rank;  // S is of all ranks together
  double factor;       // of (n - 1) / n; 0: f is 1
  bool together;
  bool uneven;  // each rank may have a size of its own
};
constexpr Row kRows[] = {
    {"ncclAllReduce", false, 2, true, false},    {"ncclAllGather", true, 1, true, false},
    {"ncclReduceScatter", true, 1, true, false}, {"ncclAlltoAll", true, 1, true, false},
    {"ncclGather", true, 1, false, false},       {"ncclScatter", true, 1, false, false},
    {"ncclBroadcast", false, 0, false, false},   {"ncclReduce", false, 0, false, false},
    {"ncclSend", false, 0, false, false},        {"ncclRecv", false, 0, false, false},
    {"all_to_allv", false, 1, false, true},      {"ncclAllToAllv", false, 1, false, true},
};
constexpr Row kOther{"", false, 0, false, false};

const Row& row_of(std::string_view function) {
  const auto* const at = std::find_if(std::begin(kRows), std::end(kRows), [&](const Row& row) {
    return row.function == plain_collective(function);
  });
  return at == std::end(kRows) ? kOther : *at;
}

}  // namespace

std::string_view plain_collective(std::string_view function) {
  constexpr std::string_view kConfig = "Config";
  if (function == "ncclBcast") return "ncclBroadcast";
  if (function.size() > kConfig.size() && function.ends_with(kConfig)) {
    function.remove_suffix(kConfig.size());
  }
  return function;
}

uint64_t collective_bytes(std::string_view function, uint64_t own, uint32_t ranks) {
  return row_of(function).for_each_rank ? own * std::max(1u, ranks) : own;
}

bool counts_each_rank(std::string_view function) { return row_of(function).for_each_rank; }

double bus_factor(std::string_view function, uint32_t ranks) {
  const double factor = row_of(function).factor;
  if (factor == 0) return 1;
  const double n = std::max(1u, ranks);
  return factor * (n - 1) / n;
}

bool is_uneven(std::string_view function) { return row_of(function).uneven; }

bool leaves_together(std::string_view function) { return row_of(function).together; }

}  // namespace gpuprof::analysis
