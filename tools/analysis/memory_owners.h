// SPDX-License-Identifier: Apache-2.0
// Who holds GPU memory: what the allocations of one process belong to, at their peak and after the
// steps.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "formats/views/memory_curves.h"
#include "formats/views/slices.h"

namespace gpuprof::analysis {

// What holds GPU memory: an operator, a range, a module, a line of code.
struct OwnerRow {
  std::string name;
  uint64_t count = 0;  // allocations
  int64_t bytes = 0;
  bool at_line = false;  // the name has the line of code
};

// Learns the owner of each allocation of a window, and sums up what they hold. Of what was
// allocated before, the memory log's list says who. Bytes of the framework's allocator where it
// says addresses, else of the driver's calls. Tables have most bytes first. Not thread-safe.
class MemoryOwners {
 public:
  explicit MemoryOwners(const Process& process) : process_(process) {}

  // `at_line`: the name has the line of code.
  void note(EventIndex event, const std::string& owner, bool at_line);

  // What was held when most was.
  std::vector<OwnerRow> at_peak(const MemoryCurves& curves) const;
  // What was allocated after the first step and before the last, and still held in the end; empty
  // of fewer than three steps.
  std::vector<OwnerRow> kept(const MemoryCurves& curves, std::span<const Step> steps) const;

 private:
  // Of an allocation of the window, or of one before it.
  std::string owner_text(EventIndex event, const LiveAllocation* before) const;

  const Process& process_;
  std::unordered_map<uint32_t, uint32_t> owner_by_event_;  // to names_
  std::map<std::string, uint32_t> ids_;
  std::vector<std::string> names_;
  std::set<std::string> at_lines_;  // owners that have a line of code
};

int64_t bytes_of(const std::vector<OwnerRow>& rows);

}  // namespace gpuprof::analysis
