// SPDX-License-Identifier: Apache-2.0
#include "collector/steps/step_tracker.h"

#include <algorithm>
#include <cstring>
#include <new>

#include "formats/core/steps/step_names.h"
#include "formats/core/text.h"

namespace gpuprof {
namespace {

// A silence is so many times longer than the burst before it, and than the longest burst: a loop
// that the operating system keeps waiting for a processor is no burst.
constexpr uint64_t kBurstGap = 4;
constexpr size_t kMostBursts = 8;  // who marks like this all the time does so each step
constexpr uint64_t kLongestCycle = 256;
// Synchronizations are over after so many of their distances, as any source that falls silent, and
// after as long as they came. Of fewer than these look_again() decides (boundaries.cpp).
constexpr uint64_t kSilentSyncs = 20, kFewSyncs = 16;

}  // namespace

void StepTracker::start(const StepSpec& spec, uint64_t process_start, bool armed) {
  new (this) StepTracker;  // too large for the stack of a thread of the program's
  wanted_ = spec_ = spec;
  chosen_ = spec.source;
  process_start_ = process_start;
  armed_ = armed;
  automatic_ = spec.source == StepSource::automatic;
  for (const StepSource source : {StepSource::manual, StepSource::optimizer, StepSource::sync}) {
    keep(source, process_start);
  }
}

uint64_t* StepTracker::kept(StepSource source) {
  switch (source) {
    case StepSource::nccl: return waiting_[0];
    case StepSource::graph: return waiting_[1];
    case StepSource::sync: return waiting_[2];
    case StepSource::forward: return waiting_[3];
    default: return kept_[static_cast<size_t>(source)];
  }
}

void StepTracker::keep(StepSource source, uint64_t ticks) {
  size_t& count = candidates_[static_cast<size_t>(source)].count;
  uint64_t* const boundaries = kept(source);
  if (is_inferred(source) && count == kWaiting) {  // counting begins later, then
    count = kWaiting / 2;
    std::memmove(boundaries, boundaries + kWaiting - count, count * sizeof *boundaries);
  }
  if (is_inferred(source) || count < kKept) boundaries[count++] = ticks;
}

bool StepTracker::is_candidate(StepSource source) const {
  // A validation or a checkpoint looks the same to calls of modules, collectives and
  // synchronizations.
  if (waits_for_source() && is_inferred(source) && source != StepSource::graph) return false;
  switch (source) {
    case StepSource::automatic:
    case StepSource::kernel:    // nobody said which
    case StepSource::profiler:  // may_bracket()
    case StepSource::period:    // it could take what comes before the training for its steps
    case StepSource::time: return false;
    case StepSource::manual:
    case StepSource::optimizer:
    case StepSource::nvtx:
    case StepSource::forward:
    case StepSource::nccl:
    case StepSource::graph:
    case StepSource::sync: return true;
  }
  return false;
}

// Whether a cudaProfilerStart is to open the window, whatever else marks steps.
bool StepTracker::may_bracket() const {
  return automatic_ && !armed_ && chosen_ != StepSource::manual &&
         !candidates_[static_cast<size_t>(StepSource::manual)].fired;
}

// Not what comes for other reasons, too: a server that waits for its GPU now and then goes by time.
bool StepTracker::may_follow_time(StepSource source) const {
  return fell_back_ && !held_ && chosen_ == StepSource::time &&
         (is_own_mark(source) || source == StepSource::forward || source == StepSource::graph);
}

// What is recorded by a source that was taken for want of a better one can be dropped until a
// window of it is complete. A source that has been silent comes back by rules of its own.
bool StepTracker::may_give_way_to(StepSource source) const {
  return automatic_ && is_inferred(chosen_) && is_own_mark(source) &&
         silent_ == StepSource::automatic && may_drop();
}

// As long as what was recorded can be dropped, or one more window can follow.
bool StepTracker::may_follow_syncs(StepSource source) const {
  return automatic_ && chosen_ == StepSource::sync &&
         (source == StepSource::graph || source == StepSource::nccl) &&
         silent_ == StepSource::automatic && may_drop();
}

void StepTracker::note_sync(uint64_t ticks) {
  if (syncs_.first == 0) syncs_.first = syncs_.last = ticks;
  syncs_.gap = ticks > syncs_.last ? ticks - syncs_.last : 0;
  syncs_.last += syncs_.gap;
  ++syncs_.count;
  if (chosen_ != StepSource::sync) return;
  // What recurs between two of them is a part of a step.
  candidates_[static_cast<size_t>(StepSource::graph)] = Candidate{};
  candidates_[static_cast<size_t>(StepSource::nccl)] = Candidate{};
}

StepTracker::Result StepTracker::mark(const StepMark& mark) {
  if (!wants(mark.source)) return {};
  if (mark.source == StepSource::profiler && chosen_ != StepSource::profiler) {
    chosen_ = StepSource::profiler;
    spec_.every = 1;
    out_[0] = mark.ticks;
    return {1, out_, true};
  }
  // Optimizers have a rule of their own, and the clock is nobody's.
  const bool by_thread = mark.source == StepSource::nvtx || mark.source == StepSource::manual ||
                         mark.source == StepSource::forward;
  if (mark.source != StepSource::optimizer && mark.source != StepSource::time &&
      !leaders_[static_cast<size_t>(mark.source)].leads(mark.thread, mark.device, by_thread)) {
    return {};
  }
  const bool gives_up = is_start_up(mark) && begin_anew(mark.ticks);
  const Result result = take(mark);
  if (!gives_up) return result;
  out_[0] = mark.ticks;  // the first of another source
  return {0, out_, false, !keeps_count_, false, true};
}

// More graphs than at the mark before. While a window is open that is kept, steps stay what they
// are.
bool StepTracker::is_start_up(const StepMark& mark) {
  return automatic_ && is_inferred(mark.source) &&
         start_up_.goes_on(mark.ticks, mark.graphs, patience_.start_up, windows_) && may_drop();
}

// What was inferred came from warm-ups and captures. True: a source had been chosen by it.
bool StepTracker::begin_anew(uint64_t ticks) {
  for (const StepSource source :
       {StepSource::forward, StepSource::nccl, StepSource::graph, StepSource::sync}) {
    candidates_[static_cast<size_t>(source)] = Candidate{};
  }
  modules_ = LeadingModule{};
  run_ = Run{};
  syncs_ = Syncs{};
  first_inferred_ = 0;
  last_sign_ = ticks;
  if (!is_inferred(chosen_)) return false;
  chosen_ = StepSource::automatic;
  spec_ = wanted_;
  return true;
}

// A mark of the leader's.
StepTracker::Result StepTracker::take(const StepMark& mark) {
  if (mark.source == StepSource::optimizer && !optimizers_.ends_step(mark.key)) return {};
  if (mark.source == StepSource::forward) {
    const LeadingModule::Call call = modules_.call(mark.key, mark.trains);
    if (call == LeadingModule::Call::other) return {};
    const bool counts = chosen_ == StepSource::automatic || may_follow_time(mark.source);
    if (call == LeadingModule::Call::takes_over && counts) {
      candidates_[static_cast<size_t>(StepSource::forward)] = Candidate{};
    }
  }
  if (is_silent(mark.source)) return come_back(mark);
  if (may_give_way_to(mark.source)) return give_way(mark);
  if (may_follow_syncs(mark.source)) return follow_syncs(mark);
  if (mark.source == StepSource::sync) note_sync(mark.ticks);
  if (chosen_ == StepSource::automatic || may_follow_time(mark.source)) return candidate_mark(mark);
  if (ends_burst(mark) && !keeps_count_) {
    candidates_[static_cast<size_t>(mark.source)].marks = 0;
    out_[0] = mark.ticks;
    return {1, out_, false, true};
  }
  Candidate& candidate = candidates_[static_cast<size_t>(mark.source)];
  if (++candidate.marks < spec_.every) return {};
  candidate.marks = 0;
  out_[0] = mark.ticks;
  return {1, out_, false};
}

StepTracker::Result StepTracker::candidate_mark(const StepMark& mark) {
  Candidate& candidate = candidates_[static_cast<size_t>(mark.source)];
  const bool every_nth = mark.source == StepSource::nccl || mark.source == StepSource::graph;
  if (is_inferred(mark.source) && first_inferred_ == 0) first_inferred_ = mark.ticks;
  if (ends_burst(mark)) {
    candidates_[static_cast<size_t>(StepSource::graph)] = Candidate{};
    candidates_[static_cast<size_t>(StepSource::sync)] = Candidate{};
  }
  if (every_nth && !recurs(candidate, mark)) return {};
  keep(mark.source, mark.ticks);
  // A collective or a graph that comes once is no step.
  candidate.fired = !every_nth || candidate.count > 1;
  if (candidate.count < 3) {
    if (mark.source == StepSource::forward) last_sign_ = mark.ticks;
    return {};
  }
  if (waits_for_optimizers(mark, candidate.count)) return {};
  for (size_t above = 1; above < static_cast<size_t>(mark.source); ++above) {
    if (candidates_[above].fired) return {};
  }
  if (every_nth) find_every(mark);
  return choose(mark.source);
}

// Of a candidate that recurs: the N, and the collective.
void StepTracker::find_every(const StepMark& mark) {
  if (mark.source == StepSource::nccl && mark.name)
    copy_text(mark.name, spec_.name, sizeof spec_.name);
  spec_.every = candidates_[static_cast<size_t>(mark.source)].period;
}

bool StepTracker::waits_for_optimizers(const StepMark& mark, size_t count) {
  if (!expects_optimizers_ || looked_again_ || !is_inferred(mark.source)) return false;
  if (mark.source == StepSource::forward && !mark.trains && !mark.may_train) return false;
  return mark.ticks - first_inferred_ < patience_.optimizers ||
         count <= std::min(patience_.cycle, kLongestCycle);
}

// Whether marks before this one were a burst: close together, then none for much longer. One that
// opens a communicator or waits for all of the GPU now and then is no loop.
bool StepTracker::ends_burst(const StepMark& mark) {
  if (!automatic_ || patience_.burst == 0) return false;
  if (mark.source != StepSource::sync && mark.source != StepSource::graph) return false;
  const uint64_t gap = mark.ticks > run_.last ? mark.ticks - run_.last : 0;
  const uint64_t length = run_.last - run_.begin;
  const bool burst = run_.count >= 3 && run_.bursts < kMostBursts && length < patience_.burst &&
                     gap > kBurstGap * std::max(patience_.burst, length);
  if (burst || run_.count == 0) {
    run_ = {mark.ticks, mark.ticks, 1, run_.bursts + (burst ? 1 : 0)};
  } else {
    run_.last += gap;
    ++run_.count;
  }
  return burst;
}

// The program marks its steps itself, after all. One range alone may be anything.
StepTracker::Result StepTracker::give_way(const StepMark& mark) {
  Candidate& candidate = candidates_[static_cast<size_t>(mark.source)];
  keep(mark.source, mark.ticks);
  if (candidate.count < (keeps_count_ ? 3 : 2)) return {};
  spec_ = wanted_;
  return take_place(mark.source);
}

StepTracker::Result StepTracker::take_place(StepSource source) {
  Result result = choose(source, !keeps_count_);
  result.restarts = !keeps_count_;
  return result;
}

// The synchronizations were none of steps, after all.
StepTracker::Result StepTracker::follow_syncs(const StepMark& mark) {
  Candidate& candidate = candidates_[static_cast<size_t>(mark.source)];
  if (!recurs(candidate, mark)) return {};
  keep(mark.source, mark.ticks);
  const uint64_t silence = mark.ticks > syncs_.last ? mark.ticks - syncs_.last : 0;
  const uint64_t came = syncs_.last - syncs_.first;
  const bool over =
      syncs_.count > kFewSyncs && silence >= std::max(came, kSilentSyncs * syncs_.gap);
  if (candidate.count < 3 || !over) return {};
  spec_ = wanted_;
  find_every(mark);
  return take_place(mark.source);
}

// Whether the mark is the candidate's first, or the one that is waited for.
bool StepTracker::recurs(Candidate& candidate, const StepMark& mark) {
  constexpr uint32_t kLongestPeriod = 4096;
  const bool first = candidate.count == 0;
  // Once it is chosen, collectives of another function are no marks.
  const bool named = !first && mark.name && candidate.name;
  const bool counts = !named || std::strcmp(mark.name, candidate.name) == 0;
  candidate.marks += counts;
  ++candidate.others;
  if (!first && mark.key != candidate.key) {
    if (candidate.others < kLongestPeriod) return false;
    candidate = Candidate{};  // that one does not come again: wait for another
  } else if (!first) {
    if (candidate.count > 1 && candidate.marks != candidate.period) {
      uint64_t* const boundaries = kept(mark.source);
      boundaries[0] = boundaries[candidate.count - 1];
      candidate.count = 1;
    }
    candidate.period = candidate.marks;
  }
  candidate.key = mark.key;
  candidate.name = mark.name;
  candidate.marks = candidate.others = 0;
  return true;
}

StepTracker::Result StepTracker::choose(StepSource source, bool anew) {
  Candidate& candidate = candidates_[static_cast<size_t>(source)];
  chosen_ = source;
  if (source == StepSource::nvtx) copy_text(likely_name_, spec_.name, sizeof spec_.name);
  candidate.marks = 0;
  // Steps are counted already: several at once could pass over the schedule's window.
  const bool counted = !anew && (looked_again_ || fell_back_ || keeps_count_);
  const size_t first = counted ? candidate.count - 1 : 0;
  return {candidate.count - first, kept(source) + first, true};
}

bool StepTracker::look_again() {
  switch (chosen_) {
    case StepSource::optimizer:
    case StepSource::nvtx:
    case StepSource::forward:
    case StepSource::nccl:
    case StepSource::graph:
    case StepSource::sync: break;
    case StepSource::automatic:
    case StepSource::manual:
    case StepSource::profiler:
    case StepSource::kernel:
    case StepSource::period:
    case StepSource::time: return false;
  }
  if (!automatic_) return false;
  if (chosen_ == StepSource::optimizer || chosen_ == StepSource::nvtx) {
    silent_ = chosen_;
    silent_spec_ = spec_;
  }
  chosen_ = StepSource::automatic;
  spec_ = wanted_;
  looked_again_ = true;
  likely_name_[0] = '\0';
  for (Candidate& candidate : candidates_) candidate = Candidate{};
  return true;
}

StepTracker::Result StepTracker::settle() {
  if (chosen_ != StepSource::automatic || looked_again_ || fell_back_) return {};
  for (size_t i = 1; i < kSources; ++i) {
    const auto source = static_cast<StepSource>(i);
    const Candidate& candidate = candidates_[i];
    if (!candidate.fired) continue;
    if (source != StepSource::forward && source != StepSource::graph) return {};
    if (candidate.count < 3) return {};
    if (source == StepSource::graph) spec_.every = candidate.period;
    return choose(source);
  }
  return {};
}

// In a window several times, lest a graph that is captured once more ends it.
StepTracker::Result StepTracker::come_back(const StepMark& mark) {
  const Candidate& candidate = candidates_[static_cast<size_t>(silent_)];
  if (held_) {
    keep(silent_, mark.ticks);
    if (candidate.count < 3) return {};
  }
  chosen_ = silent_;
  spec_ = silent_spec_;
  silent_ = StepSource::automatic;
  if (held_) return {candidate.count, kept(chosen_), true, true, true};
  out_[0] = mark.ticks;
  return {1, out_, true, false, true};
}

bool StepTracker::nvtx_matches(std::string_view message) {
  if (!wants(StepSource::nvtx)) return false;
  const char* const name = is_silent(StepSource::nvtx)   ? silent_spec_.name
                           : chosen_ == StepSource::nvtx ? spec_.name
                                                         : likely_name_;
  if (name[0]) return step_name_matches(message, name);
  const std::string_view base = likely_step_name(message);
  return !base.empty() && copy_text(base, likely_name_, sizeof likely_name_);
}

StepTracker::Result StepTracker::first_boundary() {
  // Sources that mark a begin start with their first mark.
  if (chosen_ == StepSource::automatic || chosen_ == StepSource::nvtx ||
      chosen_ == StepSource::period || chosen_ == StepSource::profiler ||
      chosen_ == StepSource::forward) {
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
