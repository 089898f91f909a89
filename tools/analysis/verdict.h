// SPDX-License-Identifier: Apache-2.0
// From figures to causes: what slows the steps down, what it costs, what to do about it.
#pragma once

#include <array>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tools/analysis/host_waits.h"
#include "tools/analysis/no_verdict.h"
#include "tools/analysis/ranks.h"
#include "tools/analysis/ranks/compared_time.h"
#include "tools/analysis/ranks/rank_jitter.h"
#include "tools/analysis/replay/replay.h"
#include "tools/analysis/report.h"

namespace gpuprof::analysis {

// Causes that cost, and would save, less than this are not worth a line.
inline constexpr double kWorthNamingPct = 2;
// What the host does of its own is not known by its calls: a thread that the operating system kept
// waiting looks the same. A share of the time that is no known wait for a processor.
inline constexpr double kHostWorkWorthNamingPct = 5;

struct StragglerCost {
  double share_pct = 0, saves_pct = 0;
};

class Judge {
 public:
  // All ranks of one window, and its replay. Keeps sums only.
  void add_window(std::span<const Timeline> timelines, const RankComparison& ranks,
                  const Replay& replay);

  // Fills `verdict`, or `reason`, of a report whose other figures are there.
  void decide(Report& report) const;

 private:
  std::string reason_against(const Report& report) const;
  uint64_t lost_work(const Report& report) const;
  bool lacks_work(const Report& report) const;
  void find_throttle(Report& report) const;
  void say_joint_steps(Report& report) const;
  double confidence(const Report& report) const;
  void note_step_log(const Timeline& timeline);
  double most_saved_pct(Cause cause) const;
  // Of the median step it is named, and stands in the order; shown is what all steps have.
  StragglerCost straggler_of_median_step(double waited_pct, const Report& report) const;
  StragglerCost straggler_of_all_steps(double waited_pct, const Report& report) const;
  void say_of_median_step(double waited_pct, const Report& report, Verdict& verdict) const;
  static double least_host_work_pct(const Report& report);
  void add_causes(double waited_pct, Report& report) const;
  void leave_out_pauses(Report& report) const;
  void sort_causes(double waited_pct, Report& report) const;
  bool add_compute(double waited_pct, Report& report) const;
  std::string saves_nothing(double waited_pct, const Report& report) const;
  void say_what_limits_beyond(double waited_pct, Report& report) const;

  std::array<double, kFixes> step_ns_{};    // by Fix, weighted with steps
  std::array<double, kFixes> median_ns_{};  // likewise, of the median step
  double step_confidence_ = 1;              // the least of steps that were found
  double recorded_ns_ = 0;
  double busiest_ns_ = 0;     // kernels of the stream that has most of them, all steps and ranks
  bool has_streams_ = false;  // some process has work on more than one
  double weight_ = 0;         // steps
  HostWaits host_waits_;
  // In collectives, for other ranks, while no GPU of the process computes.
  double waited_us_ = 0, waited_steps_ = 0;
  WaitsOfSteps waits_of_steps_;
  double steadily_waited_us_ = 0;  // the same by the median step of each rank
  ComparedTime compared_;
  size_t joint_steps_ = SIZE_MAX;  // of ranks that have others beside them, the fewest in a window
  bool apart_ = false;             // in some window ranks have too few for that: each alone
  double long_steps_pct_ = 0;      // of the whole run: what long steps take beyond others
  double throttled_pct_ = 0;       // of the compute time: lost to a lower clock
  std::string throttle_text_;
  std::string short_window_;               // text: a limit ended a window before it had two steps
  std::string throttled_at_unknown_cost_;  // text; empty: no GPU
  size_t works_ = 0, orphans_ = 0;
  WorkOfMarkedSteps work_;
  RecordSource source_;
  uint64_t counted_twice_ = 0;  // of the records that were lost
  bool replay_ended_ = true;
  double replay_seconds_ = 0;   // that it would have taken, where that is why it did not end
  bool cut_off_ = false;        // some file
  bool damaged_ = false;        // likewise
  bool untimed_steps_ = false;  // some were left out
  bool killed_ = false;         // a process that had called CUDA
  bool by_clock_ = true;        // windows are of wall time, of each process
  std::string gpu_times_missing_;
  std::string contradiction_;  // of ranks' clocks, in the replay
};

// The verdict on a pipeline whose operations are named, in place of the one on steps and calls.
void judge_pipeline(Report& report);

}  // namespace gpuprof::analysis
