// SPDX-License-Identifier: Apache-2.0
// Step sources: which marks are step boundaries. With `auto` all candidates count from the start;
// one is chosen when it has 3 boundaries and no source above it has fired, and its count carries
// over. No clock, no I/O; the caller holds a lock around every call. With `auto`, cudaProfilerStart
// takes the place of any other source but manual, also of one that was chosen: the program asks for
// just that window.
//
// Collectives, graph launches and synchronizations come for other reasons, too: cuDNN that tries
// its algorithms synchronizes many times in the first forward pass. So `auto` takes them only
// where no other source is to be expected. Where PyTorch is loaded its optimizers have their
// chance first (Patience). What was taken gives way as soon as the program marks its steps itself
// (gpuprof_step, optimizers, NVTX ranges). Before and in the first window it does so at once, and
// counting begins anew. Marks in a burst, within milliseconds and then none for much longer, were
// none either.
//
// Synchronizations may be of what comes before the steps, such as XLA's choice of its algorithms:
// one before each that is tried. A graph or a collective that recurs while none has come for as
// long as they ever came takes their place. (Of few of them the next rule holds.)
//
// A source that `auto` chose may fall silent: a step whose optimizer was seen while it was warmed
// up, and which is one CUDA graph from then on. Then `auto` looks again: for such a graph, and for
// the program's own marks. It goes back to an optimizer or an NVTX range that comes again after
// all; in the first window at its third mark, and drops what was recorded.
//
// `auto` falls back to `time`, which gives way to a program's own marks (gpuprof_step, optimizers,
// NVTX ranges), to calls of modules and to a graph that recurs, however late. Loading a model may
// take longer than `auto` waits, and a server for its requests.
//
// A program may have several optimizers: a step ends where one of them, the leader, has stepped
// (leading_optimizer.h).
//
// What an inference engine does while it makes its CUDA graphs is start-up (start_up.h): warm-ups
// and captures. When it makes more of them, what was inferred from marks by then is forgotten, and
// a source is chosen anew.
//
// In PyTorch's inference a step is a call of the outermost module; of several modules the one that
// is called most (leading_module.h). Calls that want gradients may be of a training.
//
// Of several GPUs of a process, each with marks of its own, one leads (leading_device.h).
//
// Every Nth: nccl, kernel, graph and sync count to N. As candidates of `auto`, nccl and graph find
// N themselves: after N marks the same one (collective with its buffer, graph) comes again, twice
// in a row.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "collector/steps/leading_device.h"
#include "collector/steps/leading_module.h"
#include "collector/steps/leading_optimizer.h"
#include "collector/steps/start_up.h"
#include "formats/core/settings.h"

namespace gpuprof {

// One mark, as the hook that saw it tells it.
struct StepMark {
  StepSource source;
  uint64_t ticks;
  // nccl, graph, optimizer, forward: what tells one collective, graph, optimizer or module from
  // another
  uint64_t key = 0;
  const char* name = nullptr;       // nccl: the collective's
  uint32_t thread = 0;              // that made it
  int32_t device = kUnknownDevice;  // the GPU that was current there
  bool trains = true;               // forward: gradients are wanted
  bool may_train = false;           // forward: if not, the program still has an optimizer
  size_t graphs = 0;                // the most executable graphs that ever lived at once
};

// How long `auto` waits for better sources, in ticks of the marks.
struct Patience {
  uint64_t optimizers = 0;  // from the first mark on, where PyTorch is loaded,
  uint64_t cycle = 0;       // and until this many steps have passed
  uint64_t burst = 0;       // marks that end within this time may be a burst
  uint64_t start_up = 0;    // from the first mark on, in which more graphs are start-up
};

class StepTracker {
 public:
  // `process_start` is boundary 0 of the sources that mark an end and of time. Where windows are
  // opened by triggers only (`armed`), `auto` takes no notice of cudaProfilerStart.
  void start(const StepSpec& spec, uint64_t process_start, bool armed = false);
  void set_patience(const Patience& patience) { patience_ = patience; }
  // PyTorch is loaded and tells of its optimizers' steps.
  void expect_optimizers() { expects_optimizers_ = true; }

  // Boundaries that a mark adds to the step log: 0, 1, or (when `auto` has just chosen) all so far.
  struct Result {
    size_t count;
    const uint64_t* ticks;
    bool chosen_now;
    bool restarts = false;  // what was counted before were no steps: these are the first boundaries
    bool comes_back = false;  // of the source that had fallen silent
    bool starts_up = false;   // the source that was chosen is none any more, `ticks` is the mark
  };
  Result mark(const StepMark& mark);
  // Boundary 0 of a named source that marks ends, due as soon as the session starts.
  Result first_boundary();

  // Whether an NVTX message of this text is a mark of the wanted or of a likely name. For `auto`
  // the first likely name that fires is kept.
  bool nvtx_matches(std::string_view message);

  // The source in force; automatic while none is chosen.
  StepSource source() const { return chosen_; }
  bool wants(StepSource source) const {
    return chosen_ == source || (chosen_ == StepSource::automatic && is_candidate(source)) ||
           (source == StepSource::profiler && may_bracket()) || is_silent(source) ||
           may_follow_time(source) || may_give_way_to(source) || may_follow_syncs(source);
  }
  // The source that `auto` chose has fallen silent: any other may be chosen, with boundaries from
  // now on. False: it was named, or is none that others could take the place of.
  bool look_again();
  // The program ends: what waited for a better source (a module's calls, graphs) is taken, if it
  // has 3 boundaries and none above it has fired. All of its boundaries.
  Result settle();
  // While a window is open its steps stay what they are, whatever comes again. `first`: none was
  // complete before it; what is recorded by a source that was taken for want of a better one can
  // still be dropped.
  void hold_source(bool held, bool first = false) {
    held_ = held;
    held_first_ = held && first;
  }
  // A window is complete: counting goes on from where it is.
  void keep_count() {
    keeps_count_ = true;
    ++windows_;
  }
  // What is forgotten as start-up had opened or prepared a window.
  void lost_window() { start_up_.lost_window(); }
  // When something last said that steps may be near: a call of a module, of which there are too few
  // yet, or one more graph of a start-up. 0: nothing has.
  uint64_t last_sign() const { return last_sign_; }
  // Whether one may come back: it is no time for the clock then.
  bool waits_for_source() const { return silent_ != StepSource::automatic; }
  // `auto` gave up waiting: `time` with this period takes over. Its boundary 0 is process start;
  // what follows is counted from now, or the jump would pass over the schedule's window. Where
  // steps have been counted already, `now` is the next boundary.
  Result fall_back_to_time(double milliseconds, uint64_t now);
  const StepSpec& spec() const { return spec_; }
  // The GPU whose marks are the steps, where others mark, too; else kUnknownDevice.
  int32_t leading_device() const { return leaders_[static_cast<size_t>(chosen_)].among_others(); }
  uint32_t leading_thread() const { return leaders_[static_cast<size_t>(chosen_)].thread(); }
  // For the dump: "nvtx:step", "sync:1", "auto".
  size_t describe(char* out, size_t size) const;

 private:
  static constexpr size_t kSources = static_cast<size_t>(StepSource::time) + 1;
  static constexpr size_t kKept = 4;
  static constexpr size_t kWaiting = 1024;
  static constexpr size_t kInferred = 4;
  struct Candidate {
    size_t count;  // boundaries, as far as they are kept
    bool fired;
    uint32_t marks;   // since the last boundary
    uint32_t period;  // marks between the last two boundaries, where `auto` looks for N
    uint32_t others;  // marks since then of any function, there
    uint64_t key;     // the mark that is waited for, there
    const char* name;
  };
  // Marks that follow each other, until one comes much later.
  struct Run {
    uint64_t begin, last;
    size_t count;
    size_t bursts;  // runs before that were bursts
  };
  static bool is_own_mark(StepSource source) {
    return source == StepSource::manual || source == StepSource::optimizer ||
           source == StepSource::nvtx;
  }
  static bool is_inferred(StepSource source) {
    return source == StepSource::forward || source == StepSource::nccl ||
           source == StepSource::graph || source == StepSource::sync;
  }
  // Synchronizations, in ticks: the first one, the newest, and what lay before that.
  struct Syncs {
    uint64_t first, last, gap, count;
  };
  bool may_drop() const { return !held_ || (held_first_ && !keeps_count_); }
  bool may_give_way_to(StepSource source) const;
  Result take(const StepMark& mark);
  bool is_start_up(const StepMark& mark);
  bool begin_anew(uint64_t ticks);
  bool may_follow_syncs(StepSource source) const;
  void note_sync(uint64_t ticks);
  Result follow_syncs(const StepMark& mark);
  Result take_place(StepSource source);
  bool waits_for_optimizers(const StepMark& mark, size_t count);
  uint64_t* kept(StepSource source);
  void keep(StepSource source, uint64_t ticks);
  bool ends_burst(const StepMark& mark);
  Result give_way(const StepMark& mark);
  bool is_candidate(StepSource source) const;
  bool may_bracket() const;
  bool may_follow_time(StepSource source) const;
  Result candidate_mark(const StepMark& mark);
  void find_every(const StepMark& mark);
  bool recurs(Candidate& candidate, const StepMark& mark);
  // `anew`: what was counted before is forgotten.
  Result choose(StepSource source, bool anew = false);
  Result come_back(const StepMark& mark);
  bool is_silent(StepSource source) const {
    return silent_ == source && source != StepSource::automatic && may_drop();
  }

  StepSpec wanted_{}, spec_{};  // what was asked for; what is in force
  StepSpec silent_spec_{};
  StepSource silent_ = StepSource::automatic;  // was chosen, and is taken back when it comes
  bool looked_again_ = false, fell_back_ = false, held_ = false;
  uint64_t process_start_ = 0;
  bool armed_ = false;
  bool automatic_ = false;  // nobody named a source
  StepSource chosen_ = StepSource::automatic;
  Candidate candidates_[kSources]{};
  LeadingOptimizer optimizers_{};
  LeadingModule modules_{};
  StartUp start_up_{};
  LeadingDevice leaders_[kSources]{};
  Patience patience_{};
  bool expects_optimizers_ = false, held_first_ = false, keeps_count_ = false;
  uint32_t windows_ = 0;         // complete
  uint64_t first_inferred_ = 0;  // ticks of the first mark of such a source
  uint64_t last_sign_ = 0;
  Run run_{};
  Syncs syncs_{};
  char likely_name_[sizeof StepSpec::name] = {};  // nvtx: the one that fired first
  uint64_t kept_[kSources][kKept]{};              // boundaries of candidates: the first ones,
  uint64_t waiting_[kInferred][kWaiting]{};       // of those that may have to wait: the newest
  uint64_t out_[kKept]{};
};

}  // namespace gpuprof
