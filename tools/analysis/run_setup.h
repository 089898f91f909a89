// SPDX-License-Identifier: Apache-2.0
// What a run was made with, beside its program: two runs that differ in it may differ for that
// alone.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "formats/trace/trace.h"

namespace gpuprof::analysis {

enum class SetupPart : uint8_t {
  ranks,     // processes with steps
  gpu,       // model
  driver,    // the newest CUDA that it has
  cuda,      // runtime
  nccl,      // version
  steps,     // what marks them
  recorded,  // activities, and settings that are not the default
};
inline constexpr size_t kSetupParts = 7;
const char* setup_name(SetupPart part);  // as in JSON

class RunSetup {
 public:
  void add_run(const Trace& trace);  // of several runs: all values that one has
  const std::set<std::string>& of(SetupPart part) const {
    return values_[static_cast<size_t>(part)];
  }

 private:
  std::set<std::string>& values(SetupPart part) { return values_[static_cast<size_t>(part)]; }
  void add_recorded(const Process& process);

  std::array<std::set<std::string>, kSetupParts> values_;
};

// Of `recorded` what only one side has.
struct SetupDifference {
  SetupPart part;
  std::vector<std::string> base, other;
};

// A part that is not known of one side is not among them.
std::vector<SetupDifference> differences(const RunSetup& base, const RunSetup& other);

// One line for people: "ranks 2 -> 4; GPU ..."; empty if there are none.
std::string describe(const std::vector<SetupDifference>& differences);

}  // namespace gpuprof::analysis
