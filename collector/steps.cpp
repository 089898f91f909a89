// SPDX-License-Identifier: Apache-2.0
#include "collector/steps.h"

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

// The message without its number: "step 12" -> "step".
std::string_view base_name(std::string_view message) {
  size_t end = message.size();
  while (end && message[end - 1] >= '0' && message[end - 1] <= '9') --end;
  if (end && end < message.size() && std::strchr(" #_:", message[end - 1])) --end;
  return slice(message, 0, end);
}

}  // namespace

bool step_name_matches(std::string_view message, std::string_view name) {
  return message == name || base_name(message) == name;
}

void StepTracker::start(const StepSpec& spec, uint64_t process_start) {
  *this = StepTracker{};
  spec_ = spec;
  chosen_ = spec.source;
  for (const StepSource source : {StepSource::manual, StepSource::sync, StepSource::time}) {
    Candidate& candidate = candidates_[static_cast<size_t>(source)];
    candidate.boundaries[0] = process_start;
    candidate.count = 1;
  }
}

StepTracker::Result StepTracker::mark(StepSource source, uint64_t ticks) {
  if (!wants(source)) return {};
  Candidate& candidate = candidates_[static_cast<size_t>(source)];
  if (source == StepSource::sync && ++candidate.marks < spec_.every) return {};
  candidate.marks = 0;
  return take(source, ticks);
}

StepTracker::Result StepTracker::take(StepSource source, uint64_t ticks) {
  Candidate& candidate = candidates_[static_cast<size_t>(source)];
  if (chosen_ == source) {
    out_[0] = ticks;
    return {1, out_, false};
  }
  candidate.fired = true;
  if (candidate.count < kKept) candidate.boundaries[candidate.count++] = ticks;
  if (candidate.count < 3) return {};
  for (size_t above = 1; above < static_cast<size_t>(source); ++above) {
    if (candidates_[above].fired) return {};
  }
  chosen_ = source;
  std::memcpy(out_, candidate.boundaries, sizeof out_);
  return {candidate.count, out_, true};
}

bool StepTracker::nvtx_matches(std::string_view message) {
  if (!wants(StepSource::nvtx)) return false;
  if (spec_.name[0]) return step_name_matches(message, spec_.name);
  const std::string_view base = base_name(message);
  for (const std::string_view likely : kLikelyNames) {
    if (!equal_ignoring_case(base, likely)) continue;
    const size_t size = base.size() < sizeof spec_.name - 1 ? base.size() : sizeof spec_.name - 1;
    std::memcpy(spec_.name, base.data(), size);
    spec_.name[size] = '\0';
    return true;
  }
  return false;
}

StepTracker::Result StepTracker::first_boundary() {
  if (chosen_ == StepSource::automatic || chosen_ == StepSource::nvtx) return {};
  return {1, candidates_[static_cast<size_t>(chosen_)].boundaries, false};
}

StepTracker::Result StepTracker::fall_back_to_time(double milliseconds) {
  chosen_ = StepSource::time;
  spec_.milliseconds = milliseconds;
  Result result = first_boundary();
  result.chosen_now = true;
  return result;
}

size_t StepTracker::describe(char* out, size_t size) const {
  StepSpec shown = spec_;
  shown.source = chosen_;
  return format_step(shown, out, size);
}

}  // namespace gpuprof
