// SPDX-License-Identifier: Apache-2.0
// Step sources: which marks are step boundaries. With `auto` all candidates count from the start;
// one is chosen when it has 3 boundaries and no source above it has fired, and its count carries
// over. No clock, no I/O; the caller holds a lock around every call.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "formats/core/settings.h"

namespace gpuprof {

class StepTracker {
 public:
  // `process_start` is boundary 0 of the sources that mark an end (manual, sync) and of time.
  void start(const StepSpec& spec, uint64_t process_start);

  // Boundaries that a mark adds to the step log: 0, 1, or (when `auto` has just chosen) all so far.
  struct Result {
    size_t count;
    const uint64_t* ticks;
    bool chosen_now;
  };
  Result mark(StepSource source, uint64_t ticks);
  // Boundary 0 of a named source that marks ends, due as soon as the session starts.
  Result first_boundary();

  // Whether an NVTX message of this text is a mark of the wanted or of a likely name. For `auto`
  // the first likely name that fires is kept.
  bool nvtx_matches(std::string_view message);

  // The source in force; automatic while none is chosen.
  StepSource source() const { return chosen_; }
  bool wants(StepSource source) const {
    return chosen_ == source ||
           (chosen_ == StepSource::automatic && source != StepSource::automatic);
  }
  // `auto` gave up waiting: `time` with this period takes over. Its boundary 0 is process start;
  // what follows is counted from now, or the jump would pass over the schedule's window.
  Result fall_back_to_time(double milliseconds);
  const StepSpec& spec() const { return spec_; }
  // For the dump: "nvtx:step", "sync:1", "auto".
  size_t describe(char* out, size_t size) const;

 private:
  static constexpr size_t kSources = 5;
  static constexpr size_t kKept = 4;
  struct Candidate {
    uint64_t boundaries[kKept];
    size_t count;
    bool fired;
    uint32_t marks;  // sync:N counts to N
  };
  Result take(StepSource source, uint64_t ticks);

  StepSpec spec_{};
  StepSource chosen_ = StepSource::automatic;
  Candidate candidates_[kSources]{};
  uint64_t out_[kKept]{};
};

// `message` is NAME, or NAME, one of " #_:" or nothing, and digits.
bool step_name_matches(std::string_view message, std::string_view name);

}  // namespace gpuprof
