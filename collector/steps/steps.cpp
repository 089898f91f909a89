// SPDX-License-Identifier: Apache-2.0
#include "collector/steps/steps.h"

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

void StepTracker::start(const StepSpec& spec, uint64_t process_start, bool armed) {
  *this = StepTracker{};
  wanted_ = spec_ = spec;
  chosen_ = spec.source;
  process_start_ = process_start;
  armed_ = armed;
  automatic_ = spec.source == StepSource::automatic;
  for (const StepSource source : {StepSource::manual, StepSource::optimizer, StepSource::sync}) {
    Candidate& candidate = candidates_[static_cast<size_t>(source)];
    candidate.boundaries[0] = process_start;
    candidate.count = 1;
  }
}

bool StepTracker::is_candidate(StepSource source) const {
  switch (source) {
    case StepSource::automatic:
    case StepSource::kernel:    // nobody said which
    case StepSource::profiler:  // may_bracket()
    case StepSource::period:    // it could take what comes before the training for its steps
    case StepSource::time: return false;
    default: return true;
  }
}

// Whether a cudaProfilerStart is to open the window, whatever else marks steps.
bool StepTracker::may_bracket() const {
  return automatic_ && !armed_ && chosen_ != StepSource::manual &&
         !candidates_[static_cast<size_t>(StepSource::manual)].fired;
}

// Not what comes for other reasons, too: a server that waits for its GPU now and then goes by time.
bool StepTracker::may_follow_time(StepSource source) const {
  return fell_back_ && !held_ && chosen_ == StepSource::time &&
         (source == StepSource::manual || source == StepSource::optimizer ||
          source == StepSource::nvtx);
}

StepTracker::Result StepTracker::mark(const StepMark& mark) {
  if (!wants(mark.source)) return {};
  if (mark.source == StepSource::profiler && chosen_ != StepSource::profiler) {
    chosen_ = StepSource::profiler;
    spec_.every = 1;
    out_[0] = mark.ticks;
    return {1, out_, true};
  }
  if (mark.source == StepSource::optimizer && !optimizers_.ends_step(mark.key)) return {};
  if (is_silent(mark.source)) return come_back(mark);
  if (chosen_ == StepSource::automatic || may_follow_time(mark.source)) return candidate_mark(mark);
  Candidate& candidate = candidates_[static_cast<size_t>(mark.source)];
  if (++candidate.marks < spec_.every) return {};
  candidate.marks = 0;
  out_[0] = mark.ticks;
  return {1, out_, false};
}

StepTracker::Result StepTracker::candidate_mark(const StepMark& mark) {
  Candidate& candidate = candidates_[static_cast<size_t>(mark.source)];
  const bool every_nth = mark.source == StepSource::nccl || mark.source == StepSource::graph;
  if (every_nth && !recurs(candidate, mark)) return {};
  if (candidate.count < kKept) candidate.boundaries[candidate.count++] = mark.ticks;
  // A collective or a graph that comes once is no step.
  candidate.fired = !every_nth || candidate.count > 1;
  if (candidate.count < 3) return {};
  for (size_t above = 1; above < static_cast<size_t>(mark.source); ++above) {
    if (candidates_[above].fired) return {};
  }
  if (mark.source == StepSource::nccl && mark.name)
    copy_text(mark.name, spec_.name, sizeof spec_.name);
  if (every_nth) spec_.every = candidate.period;
  return choose(mark.source);
}

// Whether the mark is the candidate's first, or the one that is waited for.
bool StepTracker::recurs(Candidate& candidate, const StepMark& mark) const {
  constexpr uint32_t kLongestPeriod = 4096;
  ++candidate.marks;
  const bool first = candidate.count == 0;
  if (!first && mark.key != candidate.key) {
    if (candidate.marks < kLongestPeriod) return false;
    candidate = Candidate{};  // that one does not come again: wait for another
    candidate.marks = 1;
  } else if (!first) {
    if (candidate.count > 1 && candidate.marks != candidate.period) {
      candidate.boundaries[0] = candidate.boundaries[candidate.count - 1];
      candidate.count = 1;
    }
    candidate.period = candidate.marks;
  }
  candidate.key = mark.key;
  candidate.marks = 0;
  return true;
}

StepTracker::Result StepTracker::choose(StepSource source) {
  Candidate& candidate = candidates_[static_cast<size_t>(source)];
  chosen_ = source;
  candidate.marks = 0;
  // Steps are counted already: several at once could pass over the schedule's window.
  const size_t first = looked_again_ || fell_back_ ? candidate.count - 1 : 0;
  std::memcpy(out_, candidate.boundaries + first, (candidate.count - first) * sizeof out_[0]);
  return {candidate.count - first, out_, true};
}

bool StepTracker::look_again() {
  switch (chosen_) {
    case StepSource::optimizer:
    case StepSource::nvtx:
    case StepSource::nccl:
    case StepSource::graph:
    case StepSource::sync: break;
    default: return false;
  }
  if (!automatic_) return false;
  if (chosen_ == StepSource::optimizer || chosen_ == StepSource::nvtx) {
    silent_ = chosen_;
    silent_spec_ = spec_;
  }
  chosen_ = StepSource::automatic;
  spec_ = wanted_;
  looked_again_ = true;
  for (Candidate& candidate : candidates_) candidate = Candidate{};
  return true;
}

StepTracker::Result StepTracker::come_back(const StepMark& mark) {
  chosen_ = silent_;
  spec_ = silent_spec_;
  silent_ = StepSource::automatic;
  out_[0] = mark.ticks;
  return {1, out_, true};
}

bool StepTracker::nvtx_matches(std::string_view message) {
  if (!wants(StepSource::nvtx)) return false;
  const StepSpec& spec = is_silent(StepSource::nvtx) ? silent_spec_ : spec_;
  if (spec.name[0]) return step_name_matches(message, spec.name);
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
  // Sources that mark a begin start with their first mark.
  if (chosen_ == StepSource::automatic || chosen_ == StepSource::nvtx ||
      chosen_ == StepSource::period || chosen_ == StepSource::profiler) {
    return {};
  }
  out_[0] = process_start_;
  return {1, out_, false};
}

StepTracker::Result StepTracker::fall_back_to_time(double milliseconds, uint64_t now) {
  chosen_ = StepSource::time;
  fell_back_ = true;
  spec_.milliseconds = milliseconds;
  Result result = first_boundary();
  if (looked_again_) out_[0] = now;
  result.chosen_now = true;
  return result;
}

size_t StepTracker::describe(char* out, size_t size) const {
  StepSpec shown = spec_;
  shown.source = chosen_;
  return format_step(shown, out, size);
}

}  // namespace gpuprof
