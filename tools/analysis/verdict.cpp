// SPDX-License-Identifier: Apache-2.0
#include "tools/analysis/verdict.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "tools/analysis/evidence.h"
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

double percent_less(double base, double less) {
  return base > 0 ? std::max(0.0, 100 * (base - less) / base) : 0;
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
    if (timeline.period_confidence > 0) {
      step_confidence_ = std::min(step_confidence_, timeline.period_confidence);
    }
    cut_off_ = cut_off_ || (timeline.process->completeness != Completeness::complete &&
                            !timeline.process->recovered);
    untimed_steps_ = untimed_steps_ || timeline.untimed_steps > 0;
    killed_ = killed_ || (timeline.process->recovered && !all_calls(timeline).at_end());
    if (!timeline.process->gpu_times_missing.empty()) {
      gpu_times_missing_ = timeline.process->gpu_times_missing;
    }
    if (ranks.comparable && ranks.speeds[i].collectives) {
      waited_us_ += ranks.speeds[i].waited_us * own;
      waited_steps_ += own;
    }
    const Throttle throttle = throttle_of(timeline);
    if (throttle.slower_pct > throttled_pct_) {
      throttled_pct_ = throttle.slower_pct;
      throttle_text_ = throttle.text;
    }
  }
  const double recorded = replay.recorded_step_time();
  if (recorded <= 0) return;
  recorded_ns_ += recorded * steps;
  weight_ += steps;
  const double unchanged = replay.step_time(Fix::none);
  for (size_t i = 0; i < kFixes; ++i) {
    const auto fix = static_cast<Fix>(i);
    const bool same = fix == Fix::none || (fix == Fix::straggler && !ranks.comparable);
    step_ns_[i] += (same ? unchanged : replay.step_time(fix)) * steps;
  }
}

// A guess is worse than no answer.
std::string Judge::reason_against(const Report& report) const {
  if (report.steps.empty() && untimed_steps_ && !cut_off_) {
    return "the process was killed, or looked at, before CUPTI gave the GPU times of a whole step";
  }
  if (report.steps.empty() && cut_off_) {
    return "no step is left: the file was cut off, or is damaged";
  }
  if (report.steps.empty()) {
    return "no step was recorded: mark steps (gpuprof run --step), or record a longer window";
  }
  std::vector<uint64_t> numbers;
  for (const StepRow& row : report.steps) numbers.push_back(row.anatomy.step);
  std::sort(numbers.begin(), numbers.end());
  numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
  if (numbers.size() < 2 && !report.whole_windows)
    return "one step is too few: record at least three";
  if (works_ == 0 && cut_off_) return "the file was cut off before the GPU's work in it";
  if (works_ == 0 && killed_ && gpu_times_missing_.empty()) {
    return "the process was killed, or looked at, before CUPTI gave any GPU times";
  }
  if (!report.gpu_timed) {
    return gpu_times_missing_.empty() ? "no work on a GPU was recorded"
                                      : "no GPU times: " + gpu_times_missing_;
  }
  if (recorded_ns_ <= 0) return "the recorded work cannot be told apart by steps";
  const uint64_t untimed = report.losses[static_cast<size_t>(Loss::graph_untimed)];
  // Any of them may be most of a step.
  if (2 * untimed >= report.steps.size() && untimed > 0) {
    return fmt::format(
        "{} launches of CUDA graphs have no GPU times (graph_untimed): attach before the graphs "
        "are captured (GPUPROF_SCHEDULE=skip_first=0)",
        untimed);
  }
  uint64_t lost = 0;
  for (const Loss loss : {Loss::buffer_full, Loss::cupti_dropped, Loss::bad_timestamp,
                          Loss::unfinished_gpu, Loss::cupti_incomplete}) {
    lost += report.losses[static_cast<size_t>(loss)];
  }
  if (static_cast<double>(lost) > 0.02 * static_cast<double>(works_)) {
    return fmt::format("{} records were lost or have no times, beside {} pieces of GPU work", lost,
                       works_);
  }
  return {};
}

double Judge::confidence(const Report& report) const {
  const double error = report.replay_error_pct / 100;
  const size_t seen = report.whole_windows ? 1 : report.steps.size();
  const double steps = std::min(1.0, static_cast<double>(seen) / 5);
  return std::clamp((1 - 4 * error) * (0.5 + 0.5 * steps) * step_confidence_, 0.05, 0.99);
}

// Ranks that wait for each other though none is slow throughout: no cause has that time, since
// nobody's mean would make steps shorter.
void Judge::find_rank_jitter(double waited_pct, Report& report) const {
  constexpr double kWorthSayingPct = 5, kMostOfTimePct = 75;
  const bool straggler =
      std::any_of(report.verdict.begin(), report.verdict.end(),
                  [](const Verdict& verdict) { return verdict.cause == Cause::straggler; });
  waited_pct = std::min(waited_pct, report.breakdown_pct[static_cast<size_t>(Part::communication)]);
  if (straggler || waited_pct < kWorthSayingPct) return;
  const auto most = std::max_element(
      report.speeds.begin(), report.speeds.end(),
      [](const RankSpeed& a, const RankSpeed& b) { return a.last_pct < b.last_pct; });
  if (most->last_pct > kMostOfTimePct) return;
  report.findings.push_back(
      {"rank_jitter",
       fmt::format("For {:.0f} % of {} time ranks wait in collectives for the last one to come, "
                   "and no rank is slow throughout: {} is last most often, {:.0f} % of the "
                   "time. Work that differs between ranks from step to step does that (lengths of "
                   "sequences, data loading, the host)",
                   waited_pct, report.unit(),
                   most->rank >= 0 ? fmt::format("rank {}", most->rank) : std::string("one"),
                   most->last_pct),
       waited_pct});
}

void Judge::decide(Report& report) const {
  report.reason = reason_against(report);
  if (!report.reason.empty()) return;
  const double base = step_ns_[0];
  report.replay_error_pct = 100 * std::abs(base - recorded_ns_) / recorded_ns_;
  const double waited_pct =
      waited_steps_ > 0 ? 100 * waited_us_ / waited_steps_ / report.step_time.mean_us : 0;

  for (const CauseRow& row : kCauses) {
    if (row.cause == Cause::compute) continue;
    Verdict verdict{row.cause, report.breakdown_pct[static_cast<size_t>(row.part)],
                    0,         confidence(report),
                    {},        row.advice};
    if (row.fix != Fix::none) {
      verdict.saves_pct = percent_less(base, step_ns_[static_cast<size_t>(row.fix)]);
    }
    if (row.cause == Cause::communication) {
      verdict.share_pct = std::max(0.0, verdict.share_pct - waited_pct);
    } else if (row.cause == Cause::straggler) {
      verdict.share_pct = std::min(verdict.share_pct, waited_pct);
    } else if (row.cause == Cause::host_work) {
      verdict.share_pct = std::max(0.0, verdict.share_pct - report.device_idle_pct);
    } else if (row.cause == Cause::gpu_throttled) {
      verdict.share_pct = verdict.saves_pct = throttled_pct_ * report.breakdown_pct[0] / 100;
      if (!throttle_text_.empty()) verdict.evidence.push_back(throttle_text_);
    }
    const double least = row.cause == Cause::host_work ? kHostWorkWorthNamingPct : kWorthNamingPct;
    if (verdict.share_pct < least || verdict.saves_pct < least) continue;
    add_evidence(report, verdict);
    const double hidden = verdict.saves_pct - verdict.share_pct;
    if (hidden >= kWorthNamingPct) {
      verdict.evidence.push_back(
          fmt::format("{:.1f} % of the saving is time of other causes, which the host would then "
                      "spend while the GPU works",
                      hidden));
    }
    report.verdict.push_back(std::move(verdict));
  }
  // A fix may also hide time of other causes (without a wait in each step, loading overlaps with
  // work). That is true, and said, but does not make it the first cause.
  const auto own_saving = [](const Verdict& v) { return std::min(v.saves_pct, v.share_pct); };
  std::stable_sort(
      report.verdict.begin(), report.verdict.end(),
      [&](const Verdict& a, const Verdict& b) { return own_saving(a) > own_saving(b); });
  find_rank_jitter(waited_pct, report);
  if (!report.verdict.empty()) return;
  const double idle_pct =
      report.breakdown_pct[static_cast<size_t>(Part::other)] - report.device_idle_pct;
  if (orphans_ == works_ && idle_pct >= kHostWorkWorthNamingPct) {
    report.reason = fmt::format(
        "no GPU works for {:.1f} % of {} time, and the program's calls were not recorded, which "
        "would say why: record them, too (GPUPROF_PRESET=default)",
        idle_pct, report.unit());
    return;
  }
  Verdict healthy{Cause::compute,
                  report.breakdown_pct[0],
                  0,
                  confidence(report),
                  {},
                  row_of(Cause::compute).advice};
  add_evidence(report, healthy);
  report.verdict.push_back(std::move(healthy));
}

}  // namespace gpuprof::analysis
