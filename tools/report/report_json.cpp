// SPDX-License-Identifier: Apache-2.0
#include "tools/report/report_json.h"

#include <algorithm>
#include <cmath>

#include "formats/views/left_out_text.h"

namespace gpuprof {
namespace {

using namespace analysis;

Json steps_json(const Report& report) {
  Json out = Json::array();
  for (const StepRow& row : report.steps) {
    Json step = {
        {"rank", row.rank},
        {"process", row.process},
        {"window", row.window},
        {"step", row.anatomy.step},
        {"duration_us", rounded(static_cast<double>(row.anatomy.end - row.anatomy.begin) / 1000)}};
    for (size_t i = 0; report.depth == Depth::all && i < kParts; ++i) {
      step["parts_us"][part_name(static_cast<Part>(i))] =
          rounded(static_cast<double>(row.anatomy.parts[i]) / 1000);
    }
    out.push_back(std::move(step));
  }
  return out;
}

Json processes_json(const Report& report) {
  Json out = Json::array();
  for (const ProcessRow& row : report.processes) {
    out.push_back({{"rank", row.rank}, {"host", row.host}, {"pid", row.pid}});
  }
  return out;
}

Json breakdown_json(const Report& report) {
  Json out = Json::object();
  for (size_t i = 0; i < kParts; ++i) {
    out[part_name(static_cast<Part>(i))] = rounded(report.breakdown_pct[i]);
  }
  return out;
}

Json verdict_json(const Report& report) {
  Json out = Json::array();
  for (const Verdict& verdict : report.verdict) {
    Json row = {{"cause", cause_name(verdict.cause)},
                {"share_pct", rounded(verdict.share_pct)},
                {"saves_pct", rounded(verdict.saves_pct)},
                {"confidence", rounded(verdict.confidence)},
                {"evidence", verdict.evidence},
                {"advice", verdict.advice}};
    if (verdict.spread_known) {
      row["share_by_step_pct"] = {{"median", rounded(verdict.median_pct)},
                                  {"low", rounded(verdict.low_pct)},
                                  {"high", rounded(verdict.high_pct)}};
      row["few_steps"] = verdict.few_steps;
    }
    out.push_back(std::move(row));
  }
  return out;
}

Json kernels_json(const Tables& tables) {
  Json out = Json::array();
  for (const KernelRow& row : tables.kernels) {
    out.push_back({{"name", row.name},
                   {"short_name", row.short_name},
                   {"count", row.count},
                   {"total_us", rounded(row.total_us)},
                   {"mean_us", rounded(row.total_us / static_cast<double>(row.count))},
                   {"grid", {row.grid.x, row.grid.y, row.grid.z}},
                   {"block", {row.block.x, row.block.y, row.block.z}},
                   {"launch_shapes", row.shapes},
                   {"occupancy_pct", row.occupancy_pct > 0 ? Json(row.occupancy_pct) : Json()},
                   {"tensor_cores", row.tensor_cores},
                   {"communication", row.kind == WorkClass::communication}});
  }
  return out;
}

Json families_json(const Tables& tables) {
  Json out = Json::array();
  for (const FamilyRow& row : tables.kernel_families) {
    const double percent = row.total_us > 0 ? 100 / row.total_us : 0;
    out.push_back({{"name", row.name},
                   {"count", row.count},
                   {"total_us", rounded(row.total_us)},
                   {"tensor_core_pct", rounded(percent * row.tensor_core_us)},
                   {"tensor_core_unknown_pct", rounded(percent * row.tensor_core_unknown_us)}});
  }
  return out;
}

Json operators_json(const std::vector<OperatorRow>& rows) {
  Json out = Json::array();
  for (const OperatorRow& row : rows) {
    out.push_back({{"name", row.name},
                   {"kind", row.kind},
                   {"count", row.count},
                   {"cpu_us", rounded(row.cpu_us)},
                   {"cpu_self_us", rounded(row.cpu_self_us)},
                   {"cpu_call_us", rounded(row.cpu_call_us)},
                   {"gpu_us", rounded(row.gpu_us)},
                   {"gpu_self_us", rounded(row.gpu_self_us)},
                   {"memory_bytes", row.memory_bytes},
                   {"memory_self_bytes", row.memory_self_bytes},
                   {"flop", row.flop}});
    if (row.kind == "module") out.back()["gpu_backward_us"] = rounded(row.gpu_backward_us);
  }
  return out;
}

// Operators by name and what else tells calls apart; that stands in a field of the grouping's name.
void add_grouped(const Report& report, Json& out) {
  static constexpr const char* kNames[] = {"name", "shape", "stack", "layer", "line"};
  const char* const by = kNames[static_cast<size_t>(report.grouping)];
  if (report.grouping == Grouping::name) return;
  Json rows = operators_json(report.operators.grouped);
  for (size_t i = 0; i < rows.size(); ++i) rows[i][by] = report.operators.grouped[i].by;
  out["operators_by"] = {{"by", by}, {"rows", std::move(rows)}};
}

Json places_json(const OperatorTables& tables) {
  Json out = Json::array();
  for (const PlaceRow& row : tables.places) {
    out.push_back({{"place", row.place},
                   {"kind", row.kind},
                   {"count", row.count},
                   {"total_us", rounded(row.total_us)}});
  }
  return out;
}

Json loading_json(const DataLoading& loading) {
  return {
      {"limit", limit_name(loading.limit)},          {"waited_us", rounded(loading.waited_us)},
      {"starting_us", rounded(loading.starting_us)}, {"workers", loading.workers},
      {"usable_cpus", loading.usable_cpus},          {"on_cpu_pct", rounded(loading.on_cpu_pct)},
      {"queued_pct", rounded(loading.queued_pct)},   {"disk_pct", rounded(loading.disk_pct)},
      {"read_mb", rounded(loading.read_mb)}};
}

Json line_json(const CodeLine& line) {
  Json parts = Json::array();
  for (const CodeLine::Part& part : line.parts) {
    parts.push_back({{"function", part.function}, {"pct", rounded(part.pct)}});
  }
  return {{"place", line.place()},     {"file", line.file},     {"line", line.line},
          {"function", line.function}, {"within", line.within}, {"parts", std::move(parts)}};
}

void add_worker_lines(const WorkerLines& in, Json& out) {
  if (in.workers == 0) return;
  Json lines = Json::array();
  for (const WorkerLine& line : in.lines) {
    lines.push_back(line_json(line));
    lines.back()["busy_us"] = rounded(line.busy_us);
    lines.back()["busy_pct"] = rounded(line.busy_pct);
  }
  out["data_workers"] = {{"workers", in.workers},
                         {"samples", in.samples},
                         {"busy_pct", rounded(in.busy_pct)},
                         {"cpu_pct", rounded(in.cpu_pct)}};
  out["worker_lines"] = std::move(lines);
}

Json owners_json(const std::vector<OwnerRow>& rows) {
  Json out = Json::array();
  for (const OwnerRow& row : rows) {
    out.push_back({{"name", row.name}, {"bytes", row.bytes}, {"count", row.count}});
  }
  return out;
}

Json calls_json(const std::vector<CallRow>& rows) {
  Json out = Json::array();
  for (const CallRow& row : rows) {
    out.push_back({{"name", row.name}, {"count", row.count}, {"total_us", rounded(row.total_us)}});
  }
  return out;
}

Json collectives_json(const Tables& tables) {
  Json out = Json::array();
  for (const CollectiveRow& row : tables.collectives) {
    out.push_back({{"name", row.name},
                   {"group", row.group},
                   {"count", row.count},
                   {"bytes", row.unsized ? Json() : Json(row.bytes)},
                   {"total_us", rounded(row.total_us)}});
  }
  return out;
}

Json groups_json(const Tables& tables) {
  Json out = Json::array();
  for (const GroupRow& row : tables.process_groups) {
    out.push_back({{"name", row.name},
                   {"description", row.description},
                   {"ranks", row.ranks.empty() ? Json::array() : Json::parse(row.ranks)},
                   {"collectives", row.count}});
  }
  return out;
}

Json collective_times_json(const CollectiveTimes& times) {
  Json out = Json::array();
  for (const CollectiveTimesRow& row : times.rows) {
    out.push_back(
        {{"name", row.function},
         {"group", row.group},
         {"members", members_text(row)},
         {"size", size_text(row)},
         {"ranks", row.ranks},
         {"calls", row.calls},
         {"matched", row.matched},
         {"bytes", row.bytes},
         {"transfer_us", rounded(row.transfer_us)},
         {"waiting_us",
          row.by_copies < row.matched || row.matched == 0 ? Json(rounded(row.waiting_us)) : Json()},
         {"exposed_us", rounded(row.exposed_us)},
         {"overlapped_us", rounded(row.overlapped_us)},
         {"algorithm_gb_per_s", rounded(row.algorithm_gbs)},
         {"bus_gb_per_s", rounded(row.bus_gbs)}});
    if (row.by_copies > 0) {
      out.back()["copy_engine_calls"] = row.by_copies;
      out.back()["between_copies_us"] = rounded(row.between_us);
    }
    if (row.peak.gbs <= 0) continue;
    out.back()["link"] = row.peak.link;
    out.back()["link_gb_per_s"] = rounded(row.peak.gbs);
  }
  return out;
}

Json links_json(const std::vector<LinkRow>& links) {
  Json out = Json::array();
  for (const LinkRow& link : links) {
    out.push_back({{"from", link.from},
                   {"to", link.to},
                   {"messages", link.messages},
                   {"bytes", link.bytes},
                   {"transfer_us", rounded(link.transfer_us)},
                   {"gb_per_s", rounded(link.gbs())}});
  }
  return out;
}

void add_collective_times(const CollectiveTimes& times, Json& out) {
  out["collective_times"] = collective_times_json(times);
  out["collective_calls"] = {
      {"calls", times.calls}, {"matched", times.matched}, {"different", times.different}};
  out["links"] = links_json(times.links);
  out["host_links"] = links_json(times.host_links);
  Json waits = Json::array();
  for (const auto& row : times.waits.waits_us) {
    waits.push_back(Json::array());
    for (const double us : row) waits.back().push_back(rounded(us));
  }
  out["rank_waits"] = {{"names", times.waits.names}, {"us", std::move(waits)}};
}

Json copies_json(const Tables& tables) {
  Json out = Json::array();
  for (const CopyRow& row : tables.copies) {
    out.push_back({{"name", row.name},
                   {"count", row.count},
                   {"bytes", row.bytes},
                   {"total_us", rounded(row.total_us)},
                   {"gb_per_s", rounded(row.gigabytes_per_second())},
                   {"pageable", row.pageable}});
  }
  return out;
}

Json stragglers_json(const Report& report) {
  Json out = Json::array();
  for (const RankSpeed& speed : report.speeds) {
    out.push_back({{"rank", speed.rank},
                   {"compute_factor", rounded(speed.compute)},
                   {"data_loading_factor", rounded(speed.data_loading)},
                   {"host_factor", rounded(speed.host)},
                   {"compute_us", rounded(speed.compute_us)},
                   {"waited_us", rounded(speed.waited_us)},
                   {"last_pct", rounded(speed.last_pct)}});
  }
  return out;
}

Json pipeline_json(const Pipeline& in) {
  const auto shares = [](const std::vector<PipelineShare>& rows) {
    Json out = Json::array();
    for (const PipelineShare& row : rows) {
      out.push_back({{"name", row.name},
                     {"explains", rounded(row.explains)},
                     {"factor", rounded(row.factor)}});
    }
    return out;
  };
  return {{"steps", in.steps},
          {"data_parallel", in.data_ranks},
          {"stages", in.stages},
          {"recorded_us", rounded(in.recorded_us)},
          {"simulated_us", rounded(in.simulated_us)},
          {"ideal_us", rounded(in.ideal_us)},
          {"slowdown", rounded(in.slowdown)},
          {"worst_workers", rounded(in.worst_workers)},
          {"last_stage", rounded(in.last_stage)},
          {"slow_steps", in.slow_steps},
          {"slow_since", in.slow_since},
          {"by_stage", shares(in.stage_shares)},
          {"by_kind", shares(in.kind_shares)},
          {"slow_workers", shares(in.slow_workers)},
          {"worst_kind", shares({in.worst_kind})[0]}};
}

Json memory_json(const Tables& tables) {
  int64_t peak = 0, end = 0;
  uint64_t allocations = 0, releases = 0;
  bool known = true;
  for (const Memory& memory : tables.memory) {
    known = known && memory.before_known;
    peak = std::max(peak, memory.peak_bytes);
    end = std::max(end, memory.end_bytes);
    allocations += memory.allocations;
    releases += memory.releases;
  }
  return {{"peak_bytes", peak},
          {"end_bytes", end},
          {"before_known", known},
          {"allocations", allocations},
          {"releases", releases}};
}

void add_host_samples(const Report& report, Json& out) {
  constexpr size_t kMostStacks = 500;
  const HostSamples& in = report.host_samples;
  Json lines = Json::array(), stacks = Json::array(), waiting = Json::array();
  for (const HostLine& line : in.lines) {
    lines.push_back(line_json(line));
    lines.back()["idle_us"] = rounded(line.idle_us);
    lines.back()["idle_pct"] = rounded(100 * line.idle_us / in.idle_us);
    lines.back()["samples"] = line.samples;
  }
  for (size_t i = 0; i < std::min(kMostStacks, in.stacks.size()); ++i) {
    stacks.push_back({{"frames", in.stacks[i].frames}, {"idle_us", rounded(in.stacks[i].idle_us)}});
  }
  for (const WaitingLine& line : in.waiting) {
    waiting.push_back(line_json(line));
    waiting.back()["wait_us"] = rounded(line.wait_us);
    waiting.back()["wait_pct"] = rounded(100 * line.wait_us / in.wait_us);
    waiting.back()["samples"] = line.samples;
  }
  out["host_samples"] = {{"samples", in.samples},
                         {"idle_us", rounded(in.idle_us)},
                         {"idle_covered_pct", rounded(100 * report.sampled_share())},
                         {"wait_us", rounded(in.wait_us)}};
  out["python_lines"] = std::move(lines);
  out["waiting_lines"] = std::move(waiting);
  out["python_stacks"] = std::move(stacks);
}

void add_host_memory(const HostMemory& in, Json& out) {
  Json rows = Json::array();
  for (const HostMemoryRow& row : in.rows) {
    rows.push_back({{"place", row.place},
                    {"bytes", std::round(row.bytes)},
                    {"count", std::round(row.count)},
                    {"held_bytes", std::round(row.held_bytes)},
                    {"samples", row.samples}});
  }
  out["host_memory"] = {{"samples", in.samples},
                        {"bytes", std::round(in.bytes)},
                        {"count", std::round(in.count)},
                        {"held_bytes", std::round(in.held_bytes)}};
  out["host_allocations"] = std::move(rows);
}

Json rounded_json(const std::vector<double>& values) {
  Json out = Json::array();
  for (const double value : values) out.push_back(rounded(value));
  return out;
}

Json samples_json(const std::vector<MemorySample>& samples) {
  Json times = Json::array(), bytes = Json::array();
  for (const MemorySample& sample : samples) {
    times.push_back(rounded(sample.time_us));
    bytes.push_back(sample.bytes);
  }
  return {{"time_us", std::move(times)}, {"bytes", std::move(bytes)}};
}

// Times begin with the first of all steps.
Json curves_json(const Report& report) {
  int64_t begin = INT64_MAX;
  for (const Curves& curves : report.curves) {
    if (curves.bin_us > 0) begin = std::min(begin, curves.begin_ns);
  }
  Json out = Json::array();
  for (const Curves& curves : report.curves) {
    if (curves.bin_us <= 0) continue;
    Json queues = Json::array();
    for (const QueueRow& row : curves.queues) {
      queues.push_back({{"device", row.stream.device},
                        {"stream", row.stream.stream},
                        {"max", row.most},
                        {"mean", rounded(row.mean)}});
    }
    out.push_back({{"rank", curves.rank},
                   {"process", curves.process},
                   {"window", curves.window},
                   {"begin_us", rounded(static_cast<double>(curves.begin_ns - begin) / 1000)},
                   {"bin_us", rounded(curves.bin_us)},
                   {"utilization_pct", rounded_json(curves.utilization_pct)},
                   {"queue_length", rounded_json(curves.queue_length)},
                   {"queues", std::move(queues)},
                   {"device_memory", samples_json(curves.device_memory)},
                   {"tensor_memory", samples_json(curves.tensor_memory)}});
  }
  return out;
}

Json thread_states_json(const Report& report) {
  Json out = Json::array();
  for (const ThreadStates& row : report.thread_states) {
    out.push_back({{"rank", row.rank},
                   {"thread", row.thread},
                   {"name", row.name},
                   {"steps", row.steps},
                   {"running_pct", rounded(row.running_pct)},
                   {"waiting_pct", rounded(row.waiting_pct)},
                   {"asleep_pct", rounded(row.asleep_pct)},
                   {"covered_pct", rounded(row.covered_pct)}});
  }
  return out;
}

// What Depth::tables leaves out.
void add_judgement(const Report& report, Json& out) {
  out["breakdown_pct"] = breakdown_json(report);
  out["device_idle_pct"] = rounded(report.device_idle_pct);
  if (report.processor_wait_us) {
    Json parts = Json::object();
    for (size_t i = 0; i < kParts; ++i) {
      parts[part_name(static_cast<Part>(i))] = rounded(report.no_processor_pct[i]);
    }
    out["without_processor"] = {{"us_per_step", rounded(*report.processor_wait_us)},
                                {"idle_pct", std::move(parts)}};
  }
  out["overlapped_pct"] = {{"communication", rounded(report.overlapped_pct[0])},
                           {"transfer", rounded(report.overlapped_pct[1])}};
  out["verdict"] = verdict_json(report);
  out["reason"] = report.reason;
  out["replay_error_pct"] = rounded(report.replay_error_pct);
  out["gpu"]["timed"] = report.gpu_timed;
  out["gpu"]["utilization_pct"] = rounded(report.gpu_utilization_pct);
  out["gpu"]["utilization_is_least"] = report.utilization_is_least();
  out["gpu"]["busiest_pct"] = rounded(std::min(report.busiest_gpu_pct, report.gpu_utilization_pct));
  out["stragglers"] = stragglers_json(report);
  add_collective_times(report.collective_times, out);
  if (report.pipeline) out["pipeline"] = pipeline_json(*report.pipeline);
  add_host_samples(report, out);
}

}  // namespace

Json left_out_json(const LeftOutKinds& left_out) {
  Json out = Json::array();
  for (const LeftOutKind& each : left_out.kinds) {
    out.push_back({{"kind", left_out_name(each.kind)},
                   {"windows", each.windows},
                   {"of", left_out.windows},
                   {"since", each.since}});
  }
  return out;
}

Json report_json(const Report& report) {
  Json out = {{"schema", kReportSchema}, {"ranks", report.ranks}};
  out["program"] = {{"command", report.program.command},
                    {"hosts", report.program.hosts},
                    {"gpus", report.program.gpus}};
  out["processes"] = processes_json(report);
  out["steps"] = steps_json(report);
  out["whole_windows"] = report.whole_windows;
  out["step_source"] = report.step_source;
  out["step_time_us"] = {{"median", rounded(report.step_time.median_us)},
                         {"mean", rounded(report.step_time.mean_us)},
                         {"p95", rounded(report.step_time.p95_us)}};
  out["tables_only"] = report.depth == Depth::tables;
  if (report.depth == Depth::all) add_judgement(report, out);
  out["findings"] = Json::array();
  for (const Finding& finding : report.findings) {
    out["findings"].push_back({{"kind", finding_row(finding.kind).name},
                               {"text", finding.text},
                               {"ends_program", ends_program(finding.kind)},
                               {"value", rounded(finding.value)}});
  }
  if (report.standstill) out[key_of(*report.standstill)] = to_json(*report.standstill);
  out["gpu"]["tensor_core_pct"] = rounded(report.tables.tensor_core_pct);
  out["gpu"]["tensor_core_unknown_pct"] = rounded(report.tables.tensor_core_unknown_pct);
  out["gpu"]["tiny_kernels_pct"] = rounded(report.tables.tiny_kernels_pct);
  out["kernels"] = kernels_json(report.tables);
  const Arithmetic& arithmetic = report.operators.arithmetic;
  if (arithmetic.flop_per_step > 0) {
    out["gpu"]["flop_per_step"] = arithmetic.flop_per_step;
    out["gpu"]["tflops"] = rounded(arithmetic.tflops);
    out["gpu"]["counted_time_pct"] = rounded(arithmetic.counted_time_pct);
    if (arithmetic.mfu_pct > 0) out["gpu"]["mfu_pct"] = rounded(arithmetic.mfu_pct);
  }
  out["kernel_families"] = families_json(report.tables);
  out["operators"] = operators_json(report.operators.operators);
  out["modules"] = operators_json(report.operators.modules);
  out["places"] = places_json(report.operators);
  add_grouped(report, out);
  out["memory_owners"] = owners_json(report.operators.memory_owners);
  if (report.host_memory.samples > 0) add_host_memory(report.host_memory, out);
  if (report.loading) out["data_loading"] = loading_json(*report.loading);
  add_worker_lines(report.worker_lines, out);
  out["collectives"] = collectives_json(report.tables);
  out["process_groups"] = groups_json(report.tables);
  out["thread_states"] = thread_states_json(report);
  out["copies"] = copies_json(report.tables);
  out["synchronizations"] = calls_json(report.tables.synchronizations);
  out["allocations"] = calls_json(report.tables.allocations);
  out["launches"] = {{"count", report.tables.launches},
                     {"total_us", rounded(report.tables.launch_us)}};
  out["memory"] = memory_json(report.tables);
  out["curves"] = curves_json(report);
  const std::vector<std::string> unknown = unknown_parts(report.left_out);
  if (!report.left_out.kinds.empty() || !unknown.empty()) {
    out["left_out_kinds"] = left_out_json(report.left_out);
    out["unknown_parts"] = unknown;
    out["unknown_causes"] = Json::array();
    for (const Cause cause : report.unknown_causes) {
      out["unknown_causes"].push_back(cause_name(cause));
    }
    out["why_unknown"] = why_not_known(report.left_out);
  }
  if (report.losses_known) out["losses"] = losses_json(report.losses);
  out["overhead"] = Json::object();
  if (report.own_cost_pct) out["overhead"]["own_cost_pct"] = rounded(*report.own_cost_pct);
  return out;
}

}  // namespace gpuprof
