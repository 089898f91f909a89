// SPDX-License-Identifier: Apache-2.0
#include "tools/analysis/verdict.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "tools/analysis/evidence.h"
#include "tools/analysis/gpu_shares.h"
#include "tools/analysis/hidden_savings.h"
#include "tools/analysis/lost_records.h"
#include "tools/analysis/no_verdict.h"
#include "tools/analysis/short_windows.h"
#include "tools/analysis/spread.h"
#include "tools/analysis/statistics.h"
#include "tools/analysis/throttle.h"
#include "tools/analysis/walks.h"

namespace gpuprof::analysis {
namespace {

struct CauseRow {
  Cause cause;
  const char* name;
  Fix fix;    // none: not from a replay
  Part part;  // whose share it has
  const char* advice;
};

constexpr CauseRow kCauses[] = {
    {Cause::data_loading, "data_loading", Fix::data_loading, Part::data_loading,
     "Give the DataLoader more workers (num_workers), pinned memory and prefetching, or make the "
     "preparation of a sample cheaper, until a batch is ready when the step asks for it."},
    {Cause::kernel_launch, "kernel_launch", Fix::kernel_launch, Part::kernel_launch,
     "The host cannot issue work as fast as the GPU does it: use CUDA graphs or torch.compile, "
     "fuse small kernels, use foreach/fused optimizers, or raise the batch size."},
    {Cause::allocation, "allocation", Fix::allocation, Part::allocation,
     "Allocate once and reuse, or use a caching allocator (cudaMallocAsync with a release "
     "threshold; in PyTorch, avoid empty_cache() and retries: expandable_segments:True)."},
    {Cause::synchronization, "synchronization", Fix::synchronization, Part::synchronization,
     "Do not wait for the GPU in each step: read losses with .item() every N steps, copy with "
     "non_blocking=True, replace device synchronization by stream waits on events."},
    {Cause::communication, "communication", Fix::communication, Part::communication,
     "Overlap collectives with backward (DDP buckets, FSDP prefetch), send less (bf16 or "
     "compressed gradients, accumulation), or use fewer, larger collectives."},
    {Cause::transfer, "transfer", Fix::transfer, Part::transfer,
     "Copy from pinned memory with non_blocking=True on a stream of its own, one batch ahead; "
     "keep on the GPU what is copied back and forth."},
    {Cause::straggler, "straggler", Fix::straggler, Part::communication,
     "The other ranks wait for the slow one: check its GPU's clocks and temperature, its share of "
     "the data, its host's CPU load and network; swap the node if it stays slow."},
    {Cause::gpu_throttled, "gpu_throttled", Fix::none, Part::compute,
     "The GPU lowers its clock: check cooling and the power limit (nvidia-smi -q -d "
     "PERFORMANCE,POWER)."},
    {Cause::host_work, "host_work", Fix::host_work, Part::other,
     "Take what the host does between its calls out of the training thread, do it less often, or "
     "do it while the GPU works (logging, checkpoints, metrics, preparation of data in the loop). "
     "In a server, waiting for requests counts here, too: then it has time to spare."},
    {Cause::machine_busy, "machine_busy", Fix::machine_busy, Part::other,
     "Other programs, or a CPU limit, keep the program from running: give each rank processors of "
     "its own, run fewer threads and data loader workers (OMP_NUM_THREADS, num_workers), or raise "
     "the container's CPU limit. What else limits the program is certain only then."},
    {Cause::compute, "compute", Fix::none, Part::compute,
     "The GPU is the limit: lower precision, faster kernels, or more GPUs would make steps "
     "shorter."},
};

constexpr bool in_order(std::span<const CauseRow> rows) {
  for (size_t i = 0; i < rows.size(); ++i) {
    if (rows[i].cause != static_cast<Cause>(i)) return false;
  }
  return true;
}
static_assert(std::size(kCauses) == kCauseCount && in_order(kCauses),
              "a row for each Cause, in the order of the enum");

const CauseRow& row_of(Cause cause) { return kCauses[static_cast<size_t>(cause)]; }

// Of the time: more than this, and what is not known may outweigh all that is.
constexpr double kMostUnknownPct = 50;
// Of the known time. Where the GPU works for less, its work is not what a step takes: of a GPU
// twice as fast less than 40 % of the step would come.
constexpr double kLimitBusyPct = 80;
constexpr double kLeastBusyPct = 50;  // of all time
// A window without steps in which the GPU works for less is start-up, or waiting.
constexpr double kHardlyAnyWorkPct = 10;
constexpr double kMostLost = 0.02;  // records that were lost, to pieces of GPU work

// Whether the cause's time is a part of the step by itself.
bool has_own_part(Cause cause) {
  return cause != Cause::straggler && cause != Cause::communication &&
         cause != Cause::gpu_throttled && cause != Cause::machine_busy;
}

void add_spread(const Report& report, Part part, Verdict& verdict) {
  const Spread spread = spread_of(report, part);
  verdict.spread_known = true;
  verdict.median_pct = spread.median_pct;
  verdict.low_pct = spread.low_pct;
  verdict.high_pct = spread.high_pct;
  verdict.few_steps = spread.few;
  // What rests on one step of many is known for that step.
  if (spread.few > 0) verdict.confidence *= 0.3 + 1.4 * spread.steady;
  const std::string text = describe(spread, report);
  const auto second = verdict.evidence.begin() + (verdict.evidence.empty() ? 0 : 1);
  if (!text.empty()) verdict.evidence.insert(second, text);
}

// A loader that the GPU waits for in many steps, if not in most: work that is queued hides it in
// those. Its waits for a processor are not among them.
bool is_late_again_and_again(const Report& report, const Verdict& verdict) {
  constexpr size_t kOneOfSteps = 4;
  return verdict.cause == Cause::data_loading &&
         verdict.few_steps * kOneOfSteps >= report.steps.size();
}

double percent_less(double base, double less) {
  return base > 0 ? std::max(0.0, 100 * (base - less) / base) : 0;
}

uint64_t loss_of(const Report& report, Loss loss) {
  return report.losses[static_cast<size_t>(loss)];
}

}  // namespace

std::string_view cause_name(Cause cause) { return row_of(cause).name; }

void Judge::add_window(std::span<const Timeline> timelines, const RankComparison& ranks,
                       const Replay& replay) {
  double steps = 0;
  for (size_t i = 0; i < timelines.size(); ++i) {
    const Timeline& timeline = timelines[i];
    const auto own = static_cast<double>(timeline.steps.size());
    steps += own;
    works_ += timeline.works;
    orphans_ += timeline.orphans;
    counted_twice_ += dropped_and_known(timeline);
    add_work_of_marked_steps(timeline, work_);
    if (timeline.period_confidence > 0) {
      step_confidence_ = std::min(step_confidence_, timeline.period_confidence);
    }
    cut_off_ = cut_off_ || (timeline.process->completeness != Completeness::complete &&
                            !timeline.process->recovered);
    damaged_ = damaged_ || timeline.process->completeness == Completeness::damaged;
    untimed_steps_ = untimed_steps_ || timeline.untimed_steps > 0;
    killed_ = killed_ || (timeline.process->recovered && !all_calls(timeline).at_end());
    if (!timeline.process->gpu_times_missing.empty()) {
      gpu_times_missing_ = timeline.process->gpu_times_missing;
    }
    by_clock_ = by_clock_ && goes_by_clock(*timeline.process);
    note_step_log(timeline);
    source_.add(*timeline.process);
    host_waits_.add(timeline);
    if (const auto cut = short_window(*timeline.process)) {
      short_window_ = fmt::format("{}: record {}", cut->why, cut->what);
    }
    if (ranks.comparable && ranks.speeds[i].collectives) {
      waited_us_ += ranks.speeds[i].exposed_us * own;
      steadily_waited_us_ += ranks.speeds[i].exposed_median_us * own;
      waited_steps_ += own;
    }
    const Throttle throttle = throttle_of(timeline);
    if (!throttle.cost_known) throttled_at_unknown_cost_ = throttle.text;
    if (throttle.slower_pct > throttled_pct_) {
      throttled_pct_ = throttle.slower_pct;
      throttle_text_ = throttle.text;
    }
  }
  compared_.add(timelines, ranks);
  if (ranks.windows_differ) {
    for (size_t i = 0; i < timelines.size(); ++i) {
      if (!timelines[i].steps.empty())
        joint_steps_ = std::min(joint_steps_, ranks.joint_steps[i].size());
    }
  }
  for (const auto& [step, us] : ranks.exposed_us) {
    waits_of_steps_[{timelines.front().process->header.window(), step}] += us;
  }
  apart_ = apart_ || ranks.apart;
  replay_ended_ = replay_ended_ && replay.ended();
  if (!replay.contradiction().empty()) contradiction_ = replay.contradiction();
  replay_seconds_ = std::max(replay_seconds_, replay.would_take_seconds());
  const double recorded = replay.recorded_step_time();
  if (recorded <= 0) return;
  recorded_ns_ += recorded * steps;
  weight_ += steps;
  for (const Timeline& timeline : timelines) {
    const StreamShares shares = stream_shares_of(timeline);
    has_streams_ = has_streams_ || shares.working > 1;
    busiest_ns_ += shares.computes_ns;
  }
  const double unchanged = replay.step_time(Fix::none);
  for (size_t i = 0; i < kFixes; ++i) {
    const auto fix = static_cast<Fix>(i);
    const bool same = fix == Fix::none || (fix == Fix::straggler && !ranks.comparable);
    step_ns_[i] += (same ? unchanged : replay.step_time(fix)) * steps;
    median_ns_[i] += replay.median_step_time(same ? Fix::none : fix) * steps;
  }
}

// A stream's kernels run one after the other, whatever the host does.
double Judge::most_saved_pct(Cause cause) const {
  const bool shortens_work = cause == Cause::straggler || cause == Cause::gpu_throttled;
  return shortens_work ? 100 : percent_less(step_ns_[0], busiest_ns_);
}

// The step log of the whole run says what steps that stand out cost in it. The window alone cannot.
void Judge::note_step_log(const Timeline& timeline) {
  constexpr size_t kTimesTheWindow = 3;
  constexpr double kLong = 1.5;  // times the median
  const std::vector<Step>& log = timeline.process->steps;
  if (!timeline.nested_source.empty()) return;  // it is of brackets, or of longer steps
  if (log.empty() || log.size() < kTimesTheWindow * timeline.steps.size()) return;
  std::vector<double> lengths;
  for (const Step& step : log) lengths.push_back(static_cast<double>(step.end - step.begin));
  const double middle = quantile(lengths, 0.5);
  double sum = 0, beyond = 0;
  for (const double length : lengths) {
    sum += length;
    if (length > kLong * middle) beyond += length - middle;
  }
  if (sum > 0) long_steps_pct_ = std::max(long_steps_pct_, 100 * beyond / sum);
}

// A guess is worse than no answer.
std::string Judge::reason_against(const Report& report) const {
  if (report.standstill && !report.standstill->over()) return describe(*report.standstill);
  std::set<uint64_t> numbers;
  for (const StepRow& row : report.steps) numbers.insert(row.anatomy.step);
  const bool few = report.whole_windows || numbers.size() < 2;
  if (few && !short_window_.empty()) return short_window_;
  if (report.steps.empty() && untimed_steps_ && !cut_off_) {
    return "no step has complete GPU times: the process was killed or is still running; record at "
           "least 3 steps";
  }
  if (report.steps.empty() && cut_off_) {
    return "no step is left: the file was cut off, or is damaged";
  }
  if (report.steps.empty()) return without_steps(source_);
  if (few && !report.whole_windows) return "one step is too few: record at least three";
  if (works_ == 0 && cut_off_) {
    return damaged_ ? "the file is damaged, and no GPU work is left"
                    : "the file was cut off before its GPU work";
  }
  if (works_ == 0 && killed_ && gpu_times_missing_.empty()) {
    return "CUPTI gave no GPU times yet: the process was killed or is still running";
  }
  if (!report.gpu_timed) {
    return gpu_times_missing_.empty() ? "no work on a GPU was recorded"
                                      : "no GPU times: " + gpu_times_missing_;
  }
  if (!report.unrecorded.empty()) {
    return fmt::format(
        "GPU work of some kinds was not recorded ({}), so that the GPU may have worked where it "
        "seems idle: record kernel, memcpy and memset (GPUPROF_ACTIVITIES)",
        report.unrecorded);
  }
  if (const std::string reason = only_issuing(work_); !reason.empty()) return reason;
  if ((report.whole_windows || by_clock_) && report.gpu_utilization_pct < kHardlyAnyWorkPct) {
    const LargestPart most = largest_idle_part(report);
    return fmt::format(
        "{}, and the GPU works for {:.1f} % of what was recorded: start-up or waiting, of which "
        "nothing follows for the program's steps. Most of the rest is {} ({:.1f} %)",
        report.whole_windows                     ? "no step is marked"
        : report.step_source.starts_with("time") ? "steps are stretches of wall time"
                                                 : "steps are not marked",
        report.gpu_utilization_pct, most.name, most.percent);
  }
  if (report.unknown_pct() > kMostUnknownPct) {
    return fmt::format(
        "for {:.0f} % of {} time it is not known what the GPU did: work of before the window is "
        "not recorded. Record more steps",
        report.unknown_pct(), report.unit());
  }
  if (!replay_ended_ && replay_seconds_ > 0) {
    return fmt::format(
        "the replay was given up, so that no saving is known: it would take {:.0f} s. The parts of "
        "steps and the tables hold. Report fewer ranks, or fewer steps",
        replay_seconds_);
  }
  if (!replay_ended_) {
    return "the replay was given up, so that no saving is known: ranks do so much between two "
           "moments without a collective under way that it does not fit into memory. The parts of "
           "steps and the tables hold. Report fewer ranks, or name the files of one";
  }
  if (!contradiction_.empty()) {
    return fmt::format(
        "the clocks of ranks differ, so that no saving is known: {}. The parts of steps and the "
        "tables hold. Set the hosts' clocks by NTP or PTP, or report the files of one host",
        contradiction_);
  }
  if (recorded_ns_ <= 0) return "the recorded work cannot be told apart by steps";
  const uint64_t untimed = loss_of(report, Loss::graph_untimed);
  // Any of them may be most of a step.
  if (2 * untimed >= report.steps.size() && untimed > 0) {
    return fmt::format(
        "{} launches of CUDA graphs have no GPU times (graph_untimed): attach before the graphs "
        "are captured (GPUPROF_SCHEDULE=skip_first=0)",
        untimed);
  }
  if (const uint64_t parts = loss_of(report, Loss::write_error)) {
    return fmt::format(
        "parts of the dump could not be written ({}, write_error), and what they held is not known",
        parts);
  }
  if (lacks_work(report)) {
    return fmt::format("{} records were lost or have no times, beside {} pieces of GPU work",
                       lost_work(report), works_);
  }
  return {};
}

// Records without which the GPU seems idle where it worked, or a call's work is missing. What is
// beside GPU work (names, stacks, samples), what a graph's own time has (event_captured), and kinds
// that nobody asked for (cupti_unknown) are not.
uint64_t Judge::lost_work(const Report& report) const {
  uint64_t lost = 0;
  for (const Loss loss : {Loss::buffer_full, Loss::cupti_dropped, Loss::bad_timestamp,
                          Loss::unfinished_gpu, Loss::cupti_incomplete, Loss::event_untimed}) {
    lost += loss_of(report, loss);
  }
  return lost - std::min(lost, counted_twice_);
}

bool Judge::lacks_work(const Report& report) const {
  return static_cast<double>(lost_work(report)) > kMostLost * static_cast<double>(works_);
}

double Judge::confidence(const Report& report) const {
  const double error = report.replay_error_pct / 100;
  const size_t seen = report.whole_windows ? 1 : std::min(joint_steps_, report.steps.size());
  const double steps = std::min(1.0, static_cast<double>(seen) / 5);
  const double explained = 1 - (report.device_idle_pct + report.unknown_pct()) / 100;
  return std::clamp(explained * (1 - 4 * error) * (0.5 + 0.5 * steps) * step_confidence_, 0.05,
                    0.99);
}

// Ranks whose windows are of other steps.
void Judge::say_joint_steps(Report& report) const {
  if (joint_steps_ == SIZE_MAX) return;
  const std::string steps = joint_steps_ == 0   ? "no step"
                            : joint_steps_ == 1 ? "one step"
                                                : fmt::format("{} steps", joint_steps_);
  add_finding<FindingKind::joint_steps>(
      report.findings, static_cast<double>(joint_steps_), steps,
      apart_
          ? "too few to tell which rank waits for another. What causes would save is that of each "
            "rank alone, and communication has the waits in it"
          : "what causes would save, and what ranks wait for each other, is of these");
}

// On a busy machine steps are long for what they do: a share of them is a small one.
double Judge::least_host_work_pct(const Report& report) {
  const double with_processor = 1 - report.no_processor_sum_pct() / 100;
  return std::max(kWorthNamingPct, kHostWorkWorthNamingPct * with_processor);
}

void Judge::add_causes(double waited_pct, Report& report) const {
  const double base = step_ns_[0];
  for (const CauseRow& row : kCauses) {
    if (row.cause == Cause::compute) continue;
    Verdict verdict{row.cause, report.breakdown_pct[static_cast<size_t>(row.part)],
                    0,         confidence(report),
                    {},        row.advice};
    if (row.fix != Fix::none) {
      verdict.saves_pct = std::min(percent_less(base, step_ns_[static_cast<size_t>(row.fix)]),
                                   most_saved_pct(row.cause));
    }
    if (row.cause == Cause::communication) {
      verdict.share_pct = std::max(0.0, verdict.share_pct - waited_pct);
    } else if (row.cause == Cause::straggler) {
      const StragglerCost cost = straggler_of_median_step(waited_pct, report);
      verdict.share_pct = cost.share_pct, verdict.saves_pct = cost.saves_pct;
    } else if (row.cause == Cause::host_work) {
      verdict.share_pct = std::max(0.0, verdict.share_pct - report.device_idle_pct);
    } else if (row.cause == Cause::machine_busy) {
      verdict.share_pct = report.no_processor_sum_pct();
    } else if (row.cause == Cause::gpu_throttled) {
      verdict.share_pct = verdict.saves_pct = throttled_pct_ * report.breakdown_pct[0] / 100;
      if (!throttle_text_.empty()) verdict.evidence.push_back(throttle_text_);
    }
    if (has_own_part(row.cause)) {
      verdict.share_pct =
          std::max(0.0, verdict.share_pct - report.no_processor_pct[static_cast<size_t>(row.part)]);
    }
    const double least =
        row.cause == Cause::host_work ? least_host_work_pct(report) : kWorthNamingPct;
    if (verdict.share_pct < least || verdict.saves_pct < least) continue;
    if (row.cause == Cause::straggler) {
      const StragglerCost cost = straggler_of_all_steps(waited_pct, report);
      verdict.share_pct = cost.share_pct, verdict.saves_pct = cost.saves_pct;
    }
    add_evidence(report, verdict);
    if (row.cause == Cause::straggler) say_of_median_step(waited_pct, report, verdict);
    compared_.say(report, verdict);
    if (has_own_part(row.cause)) add_spread(report, row.part, verdict);
    add_hidden(report, has_own_part(row.cause) ? std::optional(row.part) : std::nullopt,
               has_streams_, exposed_pct(report, waited_pct), verdict);
    report.verdict.push_back(std::move(verdict));
  }
}

// On a machine that kept threads waiting for a processor a pause proves nothing: of threads that
// make no calls of the program's (the driver's, a loader's) such waits are not recorded.
void Judge::leave_out_pauses(Report& report) const {
  if (!machine_was_busy(report)) return;
  std::erase_if(report.verdict, [&](const Verdict& verdict) {
    if (verdict.few_steps == 0 || !has_own_part(verdict.cause)) return false;
    if (is_late_again_and_again(report, verdict)) return false;
    const double steady = spread_of(report, row_of(verdict.cause).part).steady;
    if (steady * std::min(verdict.saves_pct, verdict.share_pct) >= kWorthNamingPct) return false;
    report.pauses.push_back(fmt::format("{} {:.1f} % in {} of {}", cause_name(verdict.cause),
                                        verdict.share_pct, verdict.few_steps, all_steps(report)));
    return true;
  });
  for (Verdict& verdict : report.verdict) {
    if (verdict.cause != Cause::machine_busy || report.pauses.empty()) continue;
    verdict.evidence.push_back(pauses_text(report));
  }
}

// A fix may also hide time of other causes (without a wait in each step, loading overlaps with
// work). That is true, and said, but does not make it the first cause. Nor do few steps, unless the
// run's log has more of them. Those that have next to nothing steady stand by all that they have.
void Judge::sort_causes(double waited_pct, Report& report) const {
  using Weight = std::pair<double, double>;  // steady, or 0; all
  std::vector<std::pair<Weight, Verdict>> weighted;
  for (Verdict& verdict : report.verdict) {
    double all = std::min(verdict.saves_pct, verdict.share_pct);
    if (verdict.cause == Cause::straggler) {
      const StragglerCost cost = straggler_of_median_step(waited_pct, report);
      all = std::min(cost.saves_pct, cost.share_pct);
    }
    double weight = all;
    if (verdict.few_steps > 0 && !is_late_again_and_again(report, verdict)) {
      const double steady = spread_of(report, row_of(verdict.cause).part).steady;
      weight = std::max(all * steady, std::min(all, long_steps_pct_));
    }
    weighted.emplace_back(Weight(weight < kWorthNamingPct ? 0 : weight, all), std::move(verdict));
  }
  std::stable_sort(weighted.begin(), weighted.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  report.verdict.clear();
  for (auto& [weight, verdict] : weighted) report.verdict.push_back(std::move(verdict));
}

// The GPU is the limit only where its own work fills most of the time that is known and the
// program's.
bool gpu_is_the_limit(const Report& report, double waited_pct) {
  const double known_pct =
      100 - report.unknown_pct() - report.breakdown_pct[static_cast<size_t>(Part::profiler)];
  // Of a process with several GPUs the one that works most: they may work in turn.
  const double works_pct = std::min(report.gpu_utilization_pct, report.busiest_gpu_pct);
  const double busy_pct = works_pct - exposed_pct(report, waited_pct);
  return busy_pct >= kLeastBusyPct && busy_pct >= kLimitBusyPct * known_pct / 100;
}

// Communication and copies that no kernel runs beside, and that steps would be no shorter without:
// something else takes as long as the GPU. Empty: there is little of them, or they are causes.
std::string Judge::saves_nothing(double waited_pct, const Report& report) const {
  constexpr double kCountsPct = 10;
  const auto named = [&](Cause cause) {
    return std::any_of(report.verdict.begin(), report.verdict.end(),
                       [&](const Verdict& verdict) { return verdict.cause == cause; });
  };
  double sum = 0;
  std::string what;
  const auto add = [&](Cause cause, double percent) {
    if (named(cause) || percent < kWorthNamingPct) return;
    sum += percent;
    what += fmt::format("{}{} {:.1f} %", what.empty() ? "" : " and ", cause_name(cause), percent);
  };
  add(Cause::communication, report.breakdown_pct[static_cast<size_t>(Part::communication)] -
                                exposed_pct(report, waited_pct));
  add(Cause::transfer, report.breakdown_pct[static_cast<size_t>(Part::transfer)]);
  if (sum < kCountsPct) return {};
  return fmt::format(
      "beside compute ({:.1f} % of {} time) the GPU spends time in {}, and without that alone {}s "
      "would be no shorter: {}",
      report.breakdown_pct[0], report.unit(), what, report.unit(), host_waits_.what_else_limits());
}

// So that nobody takes a small cause for the reason of a step's whole length.
void Judge::say_what_limits_beyond(double waited_pct, Report& report) const {
  if (report.verdict.empty() || !gpu_is_the_limit(report, waited_pct)) return;
  if (std::string text = saves_nothing(waited_pct, report); !text.empty()) {
    report.verdict.back().evidence.push_back(std::move(text));
    return;
  }
  report.verdict.back().evidence.push_back(
      fmt::format("beyond {} the GPU's own work is the limit: compute is {:.1f} % of {} time",
                  report.verdict.size() == 1 ? "this" : "these causes", report.breakdown_pct[0],
                  report.unit()));
}

bool Judge::add_compute(double waited_pct, Report& report) const {
  if (!gpu_is_the_limit(report, waited_pct)) return false;
  Verdict healthy{Cause::compute,
                  report.breakdown_pct[0],
                  0,
                  confidence(report),
                  {},
                  row_of(Cause::compute).advice};
  add_evidence(report, healthy);
  add_spread(report, Part::compute, healthy);
  report.verdict.push_back(std::move(healthy));
  return true;
}

// Clocks that were lowered in every sample.
void Judge::find_throttle(Report& report) const {
  if (throttled_at_unknown_cost_.empty()) return;
  add_finding<FindingKind::gpu_throttled>(report.findings, 100, throttled_at_unknown_cost_);
}

void Judge::decide(Report& report) const {
  find_throttle(report);
  report.work_lost = works_ > 0 && lacks_work(report);
  report.reason = reason_against(report);
  if (!report.reason.empty()) return leave_out_unknown_causes(report);
  report.replay_error_pct = 100 * std::abs(step_ns_[0] - recorded_ns_) / recorded_ns_;
  const double waited_pct =
      waited_steps_ > 0 ? 100 * waited_us_ / waited_steps_ / report.step_time.mean_us : 0;
  say_joint_steps(report);
  add_causes(waited_pct, report);
  leave_out_unknown_causes(report);
  leave_out_pauses(report);
  sort_causes(waited_pct, report);
  add_rank_jitter(exposed_pct(report, waited_pct), waits_of_steps_, report);
  if (stalls_outweigh_causes(report)) {
    report.reason = stalled_reason(report);
    report.verdict.clear();
    return;
  }
  say_what_limits_beyond(waited_pct, report);
  if (!report.verdict.empty()) return;
  const double idle_pct =
      report.breakdown_pct[static_cast<size_t>(Part::other)] - report.device_idle_pct;
  if (orphans_ == works_ && idle_pct >= kHostWorkWorthNamingPct) {
    report.reason = without_calls(idle_pct, report.unit(), source_);
    return;
  }
  if (gpu_is_the_limit(report, waited_pct)) {
    report.reason = saves_nothing(waited_pct, report);
    if (!report.reason.empty()) return;
  }
  if (add_compute(waited_pct, report)) return;
  report.reason = report.unknown_causes.empty()
                      ? nothing_explains(report, exposed_pct(report, waited_pct))
                      : records_are_missing(report);
}

}  // namespace gpuprof::analysis
