// SPDX-License-Identifier: Apache-2.0
#include "tools/parquet/job_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include "formats/views/left_out_text.h"
#include "tools/analysis/ranks/clocks.h"
#include "tools/describe.h"

namespace gpuprof::parquet_export {
namespace {

using namespace analysis;

template <typename Words>
std::string joined(const Words& words, const char* between) {
  return fmt::format("{}", fmt::join(words, between));
}

std::string gpu_names(const dump::Header& header) {
  std::vector<std::string> out;
  for (const dump::Device& device : header.device()) {
    if (std::find(out.begin(), out.end(), device.name()) == out.end()) out.push_back(device.name());
  }
  return joined(out, ", ");
}

size_t gpus_of(const Timeline& timeline) {
  std::set<uint32_t> out;
  for (const Stream& stream : timeline.streams) out.insert(stream.name.device);
  return out.size();
}

struct Energy {
  double joules = 0;
  int64_t ns = 0;
};

// Between two samples power goes in a straight line.
Energy energy_of(const Process& process) {
  Energy out;
  for (const CounterSeries& series : process.counters) {
    if (series.counter != Counter::power) continue;
    for (size_t i = 1; i < series.points.size(); ++i) {
      const CounterSeries::Point &a = series.points[i - 1], &b = series.points[i];
      const double milliwatts = static_cast<double>(a.value + b.value) / 2;
      out.joules += milliwatts / 1e3 * static_cast<double>(b.time - a.time) / 1e9;
      out.ns += b.time - a.time;
    }
  }
  return out;
}

using P = Processes;

void put_header(Row<P>& row, const Exported& source) {
  const Process& process = *source.process;
  const dump::Header& h = process.header;
  row.put(P::process, source.id);
  row.put_if(h.rank() >= 0, P::rank, h.rank());
  row.put_if(h.world_size() > 0, P::world_size, h.world_size());
  // Without a launcher's rank there is no local one either.
  row.put_if(process.has_header && h.local_rank() >= 0 && h.rank() >= 0, P::local_rank,
             h.local_rank());
  row.put(P::window_no, h.window());
  row.text(P::host, h.host());
  row.put_if(h.node() > 0, P::node, h.node() - 1);
  row.put_if(h.pid() > 0, P::pid, h.pid());
  row.text(P::user_name, h.user());
  row.text(P::command, joined(h.command(), " "));
  row.put(P::data_worker, process.is_data_worker());
  row.text(P::gpuprof_version, h.tool_version());
  row.put_if(h.driver_version() > 0, P::driver_version, h.driver_version());
  row.put_if(h.runtime_version() > 0, P::runtime_version, h.runtime_version());
  row.put_if(h.cupti_version() > 0, P::cupti_version, h.cupti_version());
  row.put_if(h.nccl_version() > 0, P::nccl_version, h.nccl_version());
  row.text(P::gpu, gpu_names(h));
  const bool sized = h.device_size() > 0 && h.device(0).total_memory_bytes() > 0;
  row.put_if(sized, P::gpu_memory_bytes, sized ? h.device(0).total_memory_bytes() : 0);
}

void put_run(Row<P>& row, const Exported& source) {
  const Process& process = *source.process;
  const bool timed = source.timeline && source.timeline->gpu_timed;
  row.put_if(timed, P::gpus, timed ? gpus_of(*source.timeline) : 0);
  row.put(P::window_begin_ns, process.window_begin);
  row.put(P::window_end_ns, process.window_end);
  const bool stepped = !process.steps.empty();
  row.put_if(stepped, P::run_begin_ns, stepped ? process.steps.front().begin : 0);
  row.put_if(stepped, P::run_end_ns, stepped ? process.steps.back().end : 0);
  row.put(P::run_steps, process.steps.size());
  row.text(P::completeness, completeness_name(process.completeness));
  row.text(P::end_reason, process.summary.end_reason());
  row.text(P::step_source, source.timeline ? source.timeline->step_source()
                                           : std::string_view(process.step_source));
  row.put(P::gpu_timed, timed);
  row.text(P::gpu_times_missing, process.gpu_times_missing);
}

void put_cost(Row<P>& row, const Exported& source) {
  const Process& process = *source.process;
  row.put(P::events, process.events.size());
  const uint64_t lost = std::accumulate(process.losses.begin(), process.losses.end(), uint64_t{0});
  const bool counted = losses_known(*source.trace, process);
  row.put_if(counted, P::lost, lost);
  row.text(P::losses, counted ? dump_json(losses_json(process.losses)) : "");
  const bool known = own_cost_known(process);
  const OwnCost cost = own_cost(process);
  row.real_if(known, P::own_cost_pct, cost.percent);
  row.put_if(known, P::hooks_ns, cost.hooks_ns);
  row.put_if(known, P::cupti_ns, cost.cupti_ns);
  row.put_if(known, P::drain_ns, cost.drain_ns);
  const uint64_t error = process.summary.gpu_time_error_ns();
  row.put_if(error > 0, P::gpu_time_error_ns, error);
  const Energy energy = energy_of(process);
  row.real_if(energy.ns > 0, P::energy_j, energy.joules);
  row.put_if(energy.ns > 0, P::energy_time_ns, energy.ns);
}

void put_clock(Row<P>& row, const Process& process, const std::vector<HostClock>& clocks) {
  const auto clock = std::find_if(clocks.begin(), clocks.end(), [&](const HostClock& each) {
    return each.host == process.header.host() && each.collectives > 0;
  });
  const bool known = clock != clocks.end();
  row.put_if(known, P::clock_offset_ns, known ? clock->offset_us * 1000 : 0);
  row.real_if(known, P::clock_drift_ppm, known ? clock->drift_ppm : 0);
  row.put_if(known, P::clock_error_ns, known ? clock->error_us * 1000 : 0);
}

// Columns of the kinds follow each other, from `samples` on.
static_assert(static_cast<size_t>(P::waits_until_ns) - static_cast<size_t>(P::samples_until_ns) ==
              static_cast<size_t>(ShedKind::waits) - static_cast<size_t>(ShedKind::samples));

void put_budget(Row<P>& row, const Process& process) {
  const RecordingBudget& budget = process.budget;
  row.real_if(budget.allowed_pct > 0, P::budget_pct, budget.allowed_pct);
  row.text(P::left_out, left_out_list(process));
  for (size_t kind = 1; kind < kShedKinds; ++kind) {
    const auto* const found = budget.left_out_of(static_cast<ShedKind>(kind));
    // Of another tool's trace, or an export, all that is known is what it says.
    row.put_if(found || process.source == Source::dump,
               static_cast<P>(static_cast<size_t>(P::samples_until_ns) + kind - 1),
               found ? found->since : process.window_end);
  }
}

// Columns that number the parts of a step follow each other.
template <typename Enum>
Enum part_column(Enum first, size_t part) {
  return static_cast<Enum>(static_cast<size_t>(first) + part);
}
static_assert(static_cast<size_t>(Steps::unknown_ns) - static_cast<size_t>(Steps::compute_ns) ==
              kParts - 1);
static_assert(static_cast<size_t>(Reports::unknown_pct) -
                  static_cast<size_t>(Reports::compute_pct) ==
              kParts - 1);

void put_step(Row<Steps>& row, const Exported& source, const KindSet& unset,
              const StepAnatomy& step) {
  using S = Steps;
  const dump::Header& h = source.process->header;
  const bool timed = source.timeline->gpu_timed;
  row.put(S::process, source.id);
  row.put_if(h.rank() >= 0, S::rank, h.rank());
  row.put(S::window_no, h.window());
  row.put(S::step, step.step);
  row.put(S::begin_ns, step.begin);
  row.put(S::duration_ns, step.end - step.begin);
  for (size_t i = 0; i < kParts; ++i) {
    row.put_if(timed && is_known(static_cast<Part>(i), *source.process, step.end, unset),
               part_column(S::compute_ns, i), step.parts[i]);
  }
  row.put_if(timed, S::overlapped_communication_ns, step.overlapped[0]);
  row.put_if(timed, S::overlapped_transfer_ns, step.overlapped[1]);
  row.put_if(timed, S::device_idle_ns, step.device_idle);
  row.put(S::whole_window, source.timeline->whole_window);
}

using R = Reports;

// What the program is, and when it ran.
void put_program(Row<R>& row, const Trace& trace, const Report& report) {
  int64_t begin = INT64_MAX, end = INT64_MIN;
  for (const Process& process : trace.processes) {
    begin = std::min(begin, process.window_begin);
    end = std::max(end, process.window_end);
  }
  const dump::Header& first = trace.processes.front().header;
  row.put(R::ranks, report.ranks);
  row.put_if(report.world_size > 0, R::world_size, report.world_size);
  row.put(R::begin_ns, begin);
  row.put(R::end_ns, end);
  row.text(R::command, report.program.command);
  row.text(R::user_name, first.user());
  row.text(R::gpu, joined(report.program.gpus, ", "));
  row.put(R::hosts, report.program.hosts.size());
  row.put_if(first.driver_version() > 0, R::driver_version, first.driver_version());
  row.put(R::steps, report.steps.size());
  row.put(R::whole_windows, report.whole_windows);
}

void put_figures(Row<R>& row, const Report& report) {
  const bool stepped = !report.steps.empty(), timed = report.gpu_timed && stepped;
  row.real_if(stepped, R::step_median_us, report.step_time.median_us);
  row.real_if(stepped, R::step_mean_us, report.step_time.mean_us);
  row.real_if(stepped, R::step_p95_us, report.step_time.p95_us);
  for (size_t i = 0; i < kParts; ++i) {
    row.real_if(timed && is_known(static_cast<Part>(i), report.left_out),
                part_column(R::compute_pct, i), report.breakdown_pct[i]);
  }
  row.real_if(timed, R::device_idle_pct, report.device_idle_pct);
  row.real_if(timed, R::gpu_utilization_pct, report.gpu_utilization_pct);
  row.real_if(timed, R::tensor_core_pct, report.tables.tensor_core_pct);
  row.real_if(timed, R::tiny_kernels_pct, report.tables.tiny_kernels_pct);
  const Arithmetic& arithmetic = report.operators.arithmetic;
  const bool counted = arithmetic.flop_per_step > 0;
  row.real_if(counted, R::flop_per_step, arithmetic.flop_per_step);
  row.real_if(counted, R::tflops, arithmetic.tflops);
  row.real_if(counted && arithmetic.mfu_pct > 0, R::mfu_pct, arithmetic.mfu_pct);
  row.real_if(counted, R::counted_time_pct, arithmetic.counted_time_pct);
  row.real_if(report.own_cost_pct.has_value(), R::own_cost_pct, report.own_cost_pct.value_or(0));
  row.real_if(timed, R::replay_error_pct, report.replay_error_pct);
  row.text(R::reason, report.reason);
  row.text(R::left_out, describe(report.left_out));
  row.text(R::unknown_causes, names_of(report.unknown_causes));
}

}  // namespace

void add_processes(std::span<const Exported> sources, TableFile& file) {
  if (sources.empty()) return;
  const std::vector<HostClock> clocks = clocks_of(*sources.front().trace);
  for (const Exported& source : sources) {
    file.add<P>([&](Row<P>& row) {
      put_header(row, source);
      put_run(row, source);
      put_cost(row, source);
      put_budget(row, *source.process);
      put_clock(row, *source.process, clocks);
    });
  }
}

void add_steps(std::span<const Exported> sources, TableFile& file) {
  std::vector<std::pair<const Exported*, const StepAnatomy*>> order;
  for (const Exported& source : sources) {
    if (!source.steps) continue;
    for (const StepAnatomy& step : *source.steps) order.push_back({&source, &step});
  }
  std::stable_sort(order.begin(), order.end(), [](const auto& a, const auto& b) {
    return std::tie(a.second->step, a.second->begin) < std::tie(b.second->step, b.second->begin);
  });
  std::vector<KindSet> unset;  // of each source
  for (const Exported& source : sources) unset.push_back(unset_kinds(*source.process));
  for (const auto& [source, step] : order) {
    const auto number = static_cast<size_t>(source - sources.data());
    file.add<Steps>([&, source = source, step = step](Row<Steps>& row) {
      put_step(row, *source, unset[number], *step);
    });
  }
}

void add_report(const Trace& trace, const Report& report, TableFile& file) {
  file.add<R>([&](Row<R>& row) {
    put_program(row, trace, report);
    put_figures(row, report);
  });
}

void add_verdicts(const Report& report, TableFile& file) {
  using V = Verdicts;
  int32_t position = 0;
  for (const Verdict& verdict : report.verdict) {
    file.add<V>([&](Row<V>& row) {
      row.put(V::ranks, report.ranks);
      row.put(V::position, ++position);
      row.text(V::cause, cause_name(verdict.cause));
      row.real(V::share_pct, verdict.share_pct);
      row.real(V::saves_pct, verdict.saves_pct);
      row.real(V::confidence, verdict.confidence);
      row.real_if(verdict.spread_known, V::median_pct, verdict.median_pct);
      row.real_if(verdict.spread_known, V::low_pct, verdict.low_pct);
      row.real_if(verdict.spread_known, V::high_pct, verdict.high_pct);
      row.put_if(verdict.spread_known, V::few_steps, verdict.few_steps);
      row.text(V::evidence, joined(verdict.evidence, "\n"));
      row.text(V::advice, verdict.advice);
    });
  }
}

void add_findings(const Report& report, TableFile& file) {
  using F = Findings;
  int32_t position = 0;
  for (const Finding& finding : report.findings) {
    file.add<F>([&](Row<F>& row) {
      row.put(F::ranks, report.ranks);
      row.put(F::position, ++position);
      row.text(F::kind, finding_row(finding.kind).name);
      row.text(F::message, finding.text);
      row.put(F::ends_program, ends_program(finding.kind));
      row.real(F::value, finding.value);
    });
  }
}

}  // namespace gpuprof::parquet_export
