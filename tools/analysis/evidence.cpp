// SPDX-License-Identifier: Apache-2.0
#include "tools/analysis/evidence.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>
#include <string>
#include <utility>

#include "formats/core/names.h"
#include "tools/analysis/spread.h"
#include "tools/analysis/straggler.h"
#include "tools/analysis/verdict.h"
#include "tools/analysis/wait_advice.h"
#include "tools/console.h"

namespace gpuprof::analysis {
namespace {

// What a part costs, and the step in which it took longest: where that has most of all, the cause
// is one of a moment, not of the program.
std::string worst_step(const Report& report, Part part) {
  constexpr size_t kFewSteps = 5;
  const auto part_us = [part](const StepRow& row) {
    const auto index = static_cast<size_t>(part);
    const int64_t not_its =
        (part == Part::other ? row.anatomy.device_idle : 0) + row.anatomy.no_processor[index];
    return static_cast<double>(row.anatomy.parts[index] - not_its) / 1000;
  };
  const auto worst =
      std::max_element(report.steps.begin(), report.steps.end(),
                       [&](const StepRow& a, const StepRow& b) { return part_us(a) < part_us(b); });
  if (worst == report.steps.end()) return {};
  double sum = 0;
  for (const StepRow& row : report.steps) sum += part_us(row);
  const std::string each = format_us(report.per_unit(sum));
  const std::string cost =
      part == Part::transfer
          ? fmt::format("no kernel runs beside copies for {} a {}", each, report.unit())
          : fmt::format("the GPU is idle {} a {} for it", each, report.unit());
  if (report.whole_windows && report.steps.size() == 1) return cost;
  const double percent = sum > 0 ? 100 * part_us(*worst) / sum : 0;
  const bool alone = percent >= 50 && report.steps.size() >= kFewSteps;
  const std::string most =
      alone ? fmt::format("{:.0f} % of it in one of {},", percent, all_steps(report))
            : std::string("most in");
  return fmt::format(
      "{}; {} {} {}{}: {} of {}", cost, most, report.unit(),
      report.whole_windows ? worst->window : worst->anatomy.step,
      report.ranks > 1 && worst->rank >= 0 ? fmt::format(" on rank {}", worst->rank)
                                           : std::string(),
      format_us(part_us(*worst)),
      format_us(static_cast<double>(worst->anatomy.end - worst->anatomy.begin) / 1000));
}

void calls(const Report& report, const std::vector<CallRow>& rows, Verdict& verdict) {
  for (size_t i = 0; i < std::min<size_t>(3, rows.size()); ++i) {
    const CallRow& row = rows[i];
    verdict.evidence.push_back(fmt::format(
        "{}: {:.1f} calls a {}, {} each", row.name, report.per_unit(static_cast<double>(row.count)),
        report.unit(), format_us(row.total_us / static_cast<double>(row.count))));
  }
}

// The lines of code where most of it happens.
void places(const Report& report, std::string_view kind, Verdict& verdict) {
  size_t named = 0;
  for (const PlaceRow& row : report.operators.places) {
    if (row.kind != kind || ++named > 3) continue;
    verdict.evidence.push_back(
        fmt::format("at {}: {:.1f} calls a {}, {} each", row.place,
                    report.per_unit(static_cast<double>(row.count)), report.unit(),
                    format_us(row.total_us / static_cast<double>(row.count))));
  }
}

// The Python lines that ran meanwhile, by host samples.
void lines(const Report& report, Part part, Verdict& verdict) {
  const auto time = [part](const HostLine& line) {
    return line.part_us[static_cast<size_t>(part)];
  };
  double all = 0;
  uint32_t samples = 0;
  std::vector<const HostLine*> rows;
  for (const HostLine& line : report.host_samples.lines) {
    all += time(line);
    samples += line.part_samples[static_cast<size_t>(part)];
    rows.push_back(&line);
  }
  std::stable_sort(rows.begin(), rows.end(),
                   [&](const HostLine* a, const HostLine* b) { return time(*a) > time(*b); });
  const std::string of_what = of_that_time(report.sampled_share(part));
  for (size_t i = 0; i < std::min<size_t>(2, rows.size()); ++i) {
    const double percent = 100 * time(*rows[i]) / std::max(all, 1.0);
    if (percent < 10) break;
    verdict.evidence.push_back(fmt::format(
        "Python line {} ran in {:.0f} % {}{}{}", rows[i]->place(), percent, of_what,
        rows[i]->calls().empty() ? std::string() : ", " + rows[i]->calls(), few_samples(samples)));
  }
  const double waited = report.no_processor_pct[static_cast<size_t>(part)];
  if (!rows.empty() && waited >= kWorthNamingPct) {
    verdict.evidence.push_back(
        fmt::format("samples also cover {:.1f} % of {} time in which their thread had no processor",
                    waited, report.unit()));
  }
}

// The lines that wait, by host samples from within the calls.
void waiting_lines(const Report& report, Verdict& verdict) {
  const HostSamples& in = report.host_samples;
  uint32_t samples = 0;
  for (const WaitingLine& line : in.waiting) samples += line.samples;
  for (size_t i = 0; i < std::min<size_t>(2, in.waiting.size()); ++i) {
    const WaitingLine& line = in.waiting[i];
    const double percent = 100 * line.wait_us / std::max(in.wait_us, 1.0);
    if (percent < 10) break;
    verdict.evidence.push_back(fmt::format(
        "Python line {} waits: {:.0f} % of the sampled time in calls that do{}{}", line.place(),
        percent, line.calls().empty() ? std::string() : ", " + line.calls(), few_samples(samples)));
  }
}

void worker_lines(const Report& report, Verdict& verdict) {
  const WorkerLines& workers = report.worker_lines;
  for (size_t i = 0; i < std::min<size_t>(2, workers.lines.size()); ++i) {
    if (workers.lines[i].busy_pct < 10) break;
    verdict.evidence.push_back("in the workers " + describe(workers.lines[i]));
  }
}

// The operators that the host spends most time in.
// By the time in which they keep the host busy: not that in which they wait for the GPU.
void host_operators(const Report& report, Verdict& verdict) {
  const auto busy_us = [](const OperatorRow* row) { return row->cpu_self_us - row->cpu_wait_us; };
  std::vector<const OperatorRow*> rows;
  for (const OperatorRow& row : report.operators.operators) {
    if (row.kind == "operator" && !names_data_loading(row.name)) rows.push_back(&row);
  }
  const size_t named = std::min<size_t>(3, rows.size());
  std::partial_sort(
      rows.begin(), rows.begin() + static_cast<int64_t>(named), rows.end(),
      [&](const OperatorRow* a, const OperatorRow* b) { return busy_us(a) > busy_us(b); });
  for (size_t i = 0; i < named; ++i) {
    verdict.evidence.push_back(
        fmt::format("{}: {:.1f} calls a {}, {} of the host's time each", rows[i]->name,
                    report.per_unit(static_cast<double>(rows[i]->count)), report.unit(),
                    format_us(busy_us(rows[i]) / static_cast<double>(rows[i]->count))));
  }
}

constexpr double kSomePct = 0.5;  // below it the text has 0 %
constexpr const char* kAdviceWithoutSmallKernels =
    "The host cannot issue work as fast as the GPU does it: use CUDA graphs, torch.compile or "
    "foreach/fused optimizers, or raise the batch size.";

constexpr const char* kAdviceOnGraphs =
    "The host launches CUDA graphs, and the GPU has none left: what the host does between their "
    "launches takes long. Make that shorter, do it while the GPU works, launch the next graph "
    "before the last one ends, or put more into a graph.";
constexpr const char* kAdviceBetweenLaunches =
    "The launches themselves take little of that time: what takes long is what the host does "
    "between them. Make that shorter, or do it while the GPU works; of a framework's own part, "
    "CUDA "
    "graphs or torch.compile take it away.";

// To issue the same in fewer calls would gain little.
bool calls_take_little(const Report& report, const Verdict& verdict) {
  constexpr double kSmallPart = 0.15;  // of the idle time
  const Tables& tables = report.tables;
  const double idle_us =
      verdict.share_pct / 100 * report.step_time.mean_us * static_cast<double>(report.steps.size());
  const double operators_us = std::accumulate(
      report.operators.operators.begin(), report.operators.operators.end(), 0.0,
      [](double sum, const OperatorRow& row) {
        return sum + (row.kind == "operator" ? row.cpu_self_us - row.cpu_wait_us : 0);
      });
  return tables.launch_us + operators_us < kSmallPart * idle_us;
}

void launches(const Report& report, Verdict& verdict) {
  const Tables& tables = report.tables;
  if (!tables.launches) return;
  if (tables.tiny_kernels_pct < kSomePct) verdict.advice = kAdviceWithoutSmallKernels;
  if (calls_take_little(report, verdict)) verdict.advice = kAdviceBetweenLaunches;
  if (2 * tables.graph_launches > tables.launches) verdict.advice = kAdviceOnGraphs;
  verdict.evidence.push_back(
      fmt::format("{:.0f} launches a {}, {} in the call; {:.0f} % of kernels run for less than {}",
                  report.per_unit(static_cast<double>(tables.launches)), report.unit(),
                  format_us(tables.launch_us / static_cast<double>(tables.launches)),
                  tables.tiny_kernels_pct, format_us(static_cast<double>(kTinyKernelNs) / 1000)));
}

void communication(const Report& report, Verdict& verdict) {
  for (const CollectiveRow& row : report.tables.collectives) {
    if (verdict.evidence.size() >= 3) break;
    const uint64_t count = std::max<uint64_t>(1, row.count);
    verdict.evidence.push_back(fmt::format(
        "{}: {:.1f} a {}, {} on the GPU each{}", row.name,
        report.per_unit(static_cast<double>(row.count)), report.unit(),
        format_us(row.total_us / static_cast<double>(count)),
        row.bytes ? fmt::format(", {}", format_bytes(row.bytes / count)) : std::string()));
  }
  const double exposed = report.breakdown_pct[static_cast<size_t>(Part::communication)];
  const double waits = exposed - verdict.share_pct;  // straggler's and rank_jitter's
  verdict.evidence.push_back(fmt::format(
      "{:.0f} % of {} time overlaps compute, {:.0f} % does not{}", report.overlapped_pct[0],
      report.unit(), exposed,
      waits < kSomePct ? std::string()
                       : fmt::format(", of which {:.1f} % are waits for other ranks, not counted "
                                     "here",
                                     waits)));
  if (report.ranks < report.world_size) {
    verdict.evidence.push_back(fmt::format(
        "{} of the job's {} ranks {} here: what {} for the others is in that time, too. The files "
        "of all ranks tell the two apart",
        report.ranks, report.world_size, report.ranks == 1 ? "is" : "are",
        report.ranks == 1 ? "it waits" : "they wait"));
  } else if (report.processes.size() == 1) {
    verdict.evidence.push_back(
        "the files of one rank are here: what it waits for others is in that time, too");
  }
}

constexpr const char* kAdviceOnDeviceCopies =
    "Most of this is copies and sets within GPU memory: write results where they are needed (out=, "
    "buffers that are kept), avoid clone(), contiguous(), cat() and changes of layout, use "
    "zero_grad(set_to_none=True), or let torch.compile fuse them.";

constexpr const char* kAdviceOnPeerCopies =
    "Most of this is copies from GPU to GPU: issue them on a stream of their own, beside kernels, "
    "place GPUs that exchange most where NVLink joins them (nvidia-smi topo -m), or send less.";

constexpr const char* kHostCopies[] = {"HtoD", "DtoH", "HtoA", "AtoH", "HtoH"};

constexpr const char* kAdviceOnPinnedCopies =
    "These copies are of pinned memory and do not block: issue them on a stream of their own, one "
    "batch ahead; keep on the GPU what is copied back and forth.";

// "Memcpy HtoD: 1.0 a step, 1.0 MiB each, 24.1 GB/s"
std::string copy_text(const Report& report, const CopyRow& row) {
  constexpr double kSomeRate = 0.05;  // below it the text has 0.0
  const double rate = row.gigabytes_per_second();
  return fmt::format("{}: {:.1f} a {}, {} each{}{}{}", row.name,
                     report.per_unit(static_cast<double>(row.count)), report.unit(),
                     format_bytes(row.bytes / row.count),
                     rate < kSomeRate ? std::string() : fmt::format(", {:.1f} GB/s", rate),
                     row.pageable ? ", pageable memory" : "",
                     10 * row.exposed_us < row.total_us ? ", nearly all under compute" : "");
}

void copies(const Report& report, Verdict& verdict) {
  constexpr double kNextToNothing = 0.05;  // of the copy that costs most
  std::vector<const CopyRow*> rows;
  for (const CopyRow& row : report.tables.copies) rows.push_back(&row);
  std::stable_sort(rows.begin(), rows.end(), [](const CopyRow* a, const CopyRow* b) {
    return a->exposed_us > b->exposed_us;
  });
  for (size_t i = 0; i < std::min<size_t>(3, rows.size()); ++i) {
    if (rows[i]->total_us < kNextToNothing * rows[0]->exposed_us) continue;
    verdict.evidence.push_back(copy_text(report, *rows[i]));
  }
  constexpr double kNearlyAll = 0.9;
  double all = 0, within = 0, between = 0;  // a GPU's memory, several GPUs
  double asynchronous = 0;
  for (const CopyRow& row : report.tables.copies) {
    const bool of_host =
        std::any_of(std::begin(kHostCopies), std::end(kHostCopies),
                    [&](const char* way) { return row.name.find(way) != std::string::npos; });
    all += row.exposed_us;
    asynchronous += row.exposed_asynchronous_us;
    if (row.name.find("PtoP") != std::string::npos) {
      between += row.exposed_us;
    } else if (!of_host) {
      within += row.exposed_us;
    }
  }
  if (2 * within > all) {
    verdict.advice = kAdviceOnDeviceCopies;
  } else if (2 * between > all) {
    verdict.advice = kAdviceOnPeerCopies;
  } else if (asynchronous >= kNearlyAll * (all - within - between)) {
    verdict.advice = kAdviceOnPinnedCopies;
  }
}

struct NamedRank {
  const RankSpeed* speed = nullptr;  // null: there is none
  const SlowRank* pattern = nullptr;
};

// One that is slow in most steps since some step, and whose slowness the saving is of: in the
// median step, too. Else, of ranks of which it is, or of all, the one that waits least in the
// median step.
NamedRank slow_rank_of(const Report& report) {
  const bool any = std::any_of(report.speeds.begin(), report.speeds.end(), [](const auto& speed) {
    return speed.collectives && slowness_of(speed) > 1;
  });
  const auto may_be = [&](const RankSpeed& speed) {
    return speed.collectives && (!any || slowness_of(speed) > 1);
  };
  for (const SlowRank& each : report.slow_ranks) {
    if (each.pattern != SlowPattern::persistent) continue;
    for (const RankSpeed& speed : report.speeds) {
      if (may_be(speed) && speed.rank == each.rank) return {&speed, &each};
    }
  }
  NamedRank out;
  for (const RankSpeed& speed : report.speeds) {
    const bool less = !out.speed || speed.waited_median_us < out.speed->waited_median_us;
    if (may_be(speed) && less) out.speed = &speed;
  }
  return out;
}

// The rank that the others wait for, and what it is slower in.
void straggler(const Report& report, Verdict& verdict) {
  const auto [slow, found] = slow_rank_of(report);
  if (!slow) return;
  std::string what;
  const auto add = [&](double factor, double us, const char* name) {
    if (factor < 1.02) return;
    what += fmt::format("{}{} {:.2f} x the median ({} a {})", what.empty() ? "" : ", ", name,
                        factor, format_us(us), report.unit());
  };
  add(slow->compute, slow->compute_us, "kernels");
  add(slow->data_loading, slow->data_loading_us, "data loading");
  if (slowness_of(*slow) == slow->host) add(slow->host, slow->host_us, "host");
  double waited = 0;
  bool least = true;
  for (const RankSpeed& speed : report.speeds) {
    if (&speed == slow || !speed.collectives) continue;
    waited = std::max(waited, speed.waited_median_us);
    least &= speed.waited_median_us >= slow->waited_median_us;
  }
  // Work that has no time of its own in RankSpeed: copies, allocations, launches.
  if (what.empty() && found) what = excess_of(*found);
  if (what.empty()) what = "its work is as long as the others', but begins later";
  const std::string_view how = least ? "waits least (" : "is slow (it waits ";
  const std::string who =
      slow->rank >= 0 ? fmt::format("rank {}", slow->rank) : std::string("one process");
  verdict.evidence.push_back(fmt::format("{} {}{} in the median {}): {}", who, how,
                                         format_us(slow->waited_median_us), report.unit(), what));
  verdict.evidence.push_back(fmt::format(
      "the others wait{} up to {} in the median {}, in collectives; it comes last in {:.0f} % "
      "of them",
      least ? " for it" : "", format_us(waited), report.unit(), slow->last_pct));
}

}  // namespace

std::string of_that_time(double sampled_share) {
  constexpr double kNearlyAll = 0.9;
  if (sampled_share >= kNearlyAll) return "of that time";
  return fmt::format("of the {:.0f} % of that time that samples cover", 100 * sampled_share);
}

bool machine_was_busy(const Report& report) {
  const double us = report.processor_wait_us.value_or(0), step_us = report.step_time.mean_us;
  const double percent = step_us > 0 ? 100 * us / step_us : 0;
  return percent >= finding_row(FindingKind::machine_busy).limit.value ||
         report.no_processor_sum_pct() >= kWorthNamingPct;
}

std::string pauses_text(const Report& report) {
  return fmt::format("pauses of few {}s may be the machine's, too, and are not named as causes: {}",
                     report.unit(), fmt::join(report.pauses, ", "));
}

std::string machine_busy_text(const Report& report) {
  const double us = report.processor_wait_us.value_or(0);
  const double percent = report.step_time.mean_us > 0 ? 100 * us / report.step_time.mean_us : 0;
  std::string out = fmt::format(
      "the machine was busy: {} a {} ({:.1f} %) without a processor on the thread that {}s run on, "
      "which could have run",
      format_us(us), report.unit(), percent, report.unit());
  if (!report.gpu_timed) return out;
  return out + fmt::format(
                   "; for {:.1f} % of {} time the GPU was idle while a thread that issues its work "
                   "had none",
                   report.no_processor_sum_pct(), report.unit());
}

void add_evidence(const Report& report, Verdict& verdict) {
  switch (verdict.cause) {
    case Cause::data_loading:
      verdict.evidence.push_back(worst_step(report, Part::data_loading));
      if (report.loading) {
        verdict.evidence.push_back(describe(*report.loading));
        verdict.advice = advice_for(*report.loading);
      }
      worker_lines(report, verdict);
      places(report, "data_loading", verdict);
      lines(report, Part::data_loading, verdict);
      break;
    case Cause::kernel_launch:
      verdict.evidence.push_back(worst_step(report, Part::kernel_launch));
      launches(report, verdict);
      host_operators(report, verdict);
      lines(report, Part::kernel_launch, verdict);
      break;
    case Cause::allocation:
      verdict.evidence.push_back(worst_step(report, Part::allocation));
      calls(report, report.tables.allocations, verdict);
      places(report, "allocation", verdict);
      lines(report, Part::allocation, verdict);
      break;
    case Cause::synchronization:
      verdict.evidence.push_back(worst_step(report, Part::synchronization));
      calls(report, report.tables.synchronizations, verdict);
      if (std::string advice = wait_advice(report.tables); !advice.empty()) {
        verdict.advice = std::move(advice);
      }
      places(report, "synchronization", verdict);
      waiting_lines(report, verdict);
      lines(report, Part::synchronization, verdict);
      break;
    case Cause::communication: communication(report, verdict); break;
    case Cause::transfer:
      verdict.evidence.push_back(worst_step(report, Part::transfer));
      copies(report, verdict);
      places(report, "transfer", verdict);
      break;
    case Cause::straggler: straggler(report, verdict); break;
    case Cause::gpu_throttled: break;
    case Cause::host_work:
      verdict.evidence.push_back(worst_step(report, Part::other));
      lines(report, Part::other, verdict);
      break;
    case Cause::machine_busy: verdict.evidence.push_back(machine_busy_text(report)); break;
    case Cause::compute:
      verdict.evidence.push_back(
          fmt::format("the GPU works {:.1f} % of the time", report.gpu_utilization_pct));
      if (report.unknown_pct() >= 1) {
        verdict.evidence.push_back(fmt::format(
            "for {:.1f} % of the time it is not known what the GPU did", report.unknown_pct()));
      }
      break;
  }
}

}  // namespace gpuprof::analysis
