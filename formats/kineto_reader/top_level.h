// SPDX-License-Identifier: Apache-2.0
// What a trace file says beside its events: members of its outermost object.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "formats/gpuprof.pb.h"
#include "formats/kineto_reader/texts.h"
#include "formats/trace/trace.h"

namespace gpuprof::kineto {

// A kind of records that GPUPROF_BUDGET left out of a process, in our exports.
struct LeftOutOf {
  int64_t pid = 0;
  RecordingBudget::LeftOut left_out{};
  double budget_pct = 0;
};

struct TopLevel {
  dump::Header header;           // host, rank, world size, devices, versions
  int64_t base_nanoseconds = 0;  // to add to all times
  std::string metadata;          // members that are none of these, strict JSON
  std::string distributed;       // likewise: distributedInfo without rank and world size
  bool ours = false;             // we wrote the file
  std::vector<LeftOutOf> left_out;
  TextFaults faults;
};

enum class TopStop {
  events,     // behind the '[' of traceEvents
  end,        // behind the outermost '}'
  need_more,  // within a member: go on from here with more text
  wrong,      // no JSON
};

// Reads members from text[at] on, which is behind '{' or behind a member, and moves `at` behind
// what it has read. Text must be followed by kScanPadding readable bytes.
TopStop read_top_level(std::string_view text, size_t& at, TopLevel& out);

}  // namespace gpuprof::kineto
