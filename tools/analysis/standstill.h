// SPDX-License-Identifier: Apache-2.0
// A job that stands, or stood when its windows were cut: all ranks stopped issuing work long before
// the last sign of life. Some have issued fewer collectives, or steps, than the others, which wait
// for them, or show no more sign of life.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "formats/trace/trace.h"
#include "tools/describe.h"

namespace gpuprof::analysis {

struct Standstill {
  std::vector<int32_t> behind;  // ranks with the fewest collectives, or steps, or signs of life
  int64_t since = 0;            // Unix ns: the last call of the first of these to stop
  int64_t silent_ns = 0;        // from then to the last sign of life of any rank
  uint64_t step = 0;            // that was under way on it
  bool step_known = false;
  // Collectives, or steps: of those behind, and of the others at most.
  uint64_t issued = 0, others_issued = 0;
  bool gone = false;                // told by signs of life
  bool counts_differ = false;       // some rank is known to have issued less than another
  uint32_t communicator_ranks = 0;  // 0: not told by collectives
  // The first collective that those behind have not issued: "ncclAllReduce".
  std::string waiting_in;
  std::string state;  // "stopped": of the process of the first, where it lives here; else ""
  // Of windows that are over: what ended them ("max_s"), as in Summary.end_reason. What came after
  // is not recorded. Empty: the job stands still, as far as is known.
  std::string ended_by;
  bool went_on = false;  // some rank's ring has steps of after the window

  bool over() const { return !ended_by.empty(); }
};

// Of the newest window of each rank. Nothing: the job goes on, has ended in order, or it is not
// known. A sign of life is a record, the window's end, or an anchor of the clock, which a live
// process takes each second.
std::optional<Standstill> standstill_of(const Trace& trace);

// One line for people; for programs an object, and its name beside others: "standstill", "stood".
std::string describe(const Standstill& standstill);
const char* key_of(const Standstill& standstill);
Json to_json(const Standstill& standstill);

}  // namespace gpuprof::analysis
