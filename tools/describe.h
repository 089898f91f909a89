// SPDX-License-Identifier: Apache-2.0
// What a dump says of itself, as JSON: `gpuprof info` and the first and last lines of `gpuprof
// parse`.
#pragma once

#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "formats/trace/trace.h"
#include "formats/views/impossible_times.h"

namespace gpuprof {

using Json = nlohmann::ordered_json;

// Figures are to be read: a thousandth of a unit is below what is measured.
inline double rounded(double value) { return std::round(value * 1000) / 1000; }

// Header, window, versions, devices, settings. Times are CLOCK_MONOTONIC nanoseconds of that
// process.
Json describe_header(const Process& process);

// Counts, losses, steps of the window, how the window ended, the profiler's own cost.
Json describe_summary(const Trace& trace, const Process& process);

// What the samples of a counter were, over the window.
struct CounterSummary {
  std::string name, unit;
  uint32_t device;  // Shape::kAbsent: of the process
  size_t count;
  double min, mean, max;
  bool is_bits;  // each sample is a set of bits: then only `bits`, all of them together, means
                 // anything
  uint64_t bits;
};
std::vector<CounterSummary> summarize_counters(const Process& process);

// Events by kind, in the order of the kinds; what was lost by cause, without zeros.
std::map<Kind, uint64_t> count_events(const Trace& trace, const Process& process);
Json losses_json(const std::array<uint64_t, kLossKinds>& losses);
Json counts_json(const std::map<Kind, uint64_t>& counts);

// Work of nodes of CUDA graphs, and how much of it is known by the call that was captured.
struct GraphWork {
  uint64_t nodes, named;
};
GraphWork count_graph_work(const Trace& trace, const Process& process);

// As "3 pieces of it begin before their calls, by up to 2.0 us"; empty where there are none.
std::string describe_impossible(const ImpossibleTimes& times);

const char* completeness_name(Completeness completeness);

// One line; bytes that are not UTF-8 are replaced.
std::string dump_json(const Json& json, int indent = -1);

// The profiler's own work in the window. Hooks and CUPTI hold the program up; the drain thread does
// not.
struct OwnCost {
  uint64_t hooks_ns, drain_ns, cupti_ns;
  double percent;  // hooks and CUPTI, of the window's length; 0 when that is not known
};
OwnCost own_cost(const Process& process);
// Of dumps that are whole: the summary, which comes last, says it.
bool own_cost_known(const Process& process);
// Of what is missing in dumps that are whole, or read from a ring that has the GPU work of all
// calls; other tools' traces tell nothing.
bool losses_known(const Trace& trace, const Process& process);
// Of what is read from a ring: calls that start GPU work, of which CUPTI had not delivered any.
uint64_t calls_without_work(const Trace& trace, const Process& process);

// What GPUPROF_BUDGET allowed and left out, and what recording cost then. Of a process that has
// one.
std::string describe_budget(const Process& process);

}  // namespace gpuprof
