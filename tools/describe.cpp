// SPDX-License-Identifier: Apache-2.0
#include "tools/describe.h"

#include <fmt/format.h>

#include <algorithm>

#include "formats/core/early_window.h"
#include "formats/core/names.h"
#include "formats/views/left_out_text.h"
#include "tools/analysis/recording_slowdown.h"
#include "tools/console.h"

namespace gpuprof {
namespace {

Json describe_devices(const dump::Header& header) {
  Json out = Json::array();
  for (const dump::Device& device : header.device()) {
    out.push_back({{"id", device.id()},
                   {"name", device.name()},
                   {"total_memory_bytes", device.total_memory_bytes()},
                   {"compute_capability", std::to_string(device.compute_major()) + "." +
                                              std::to_string(device.compute_minor())},
                   {"multiprocessors", device.multiprocessors()}});
  }
  return out;
}

Json describe_settings(const dump::Header& header) {
  Json out = Json::array();
  for (const dump::Setting& setting : header.setting()) {
    out.push_back(
        {{"name", setting.name()}, {"value", setting.value()}, {"source", setting.source()}});
  }
  return out;
}

const char* clock_name(dump::ClockSource source) {
  switch (source) {
    case dump::CLOCK_SOURCE_TSC: return "tsc";
    case dump::CLOCK_SOURCE_CNTVCT: return "cntvct";
    default: return "monotonic";
  }
}

Json describe_versions(const dump::Header& header) {
  return {{"gpuprof", header.tool_version()},  {"format", header.format_version()},
          {"driver", header.driver_version()}, {"runtime", header.runtime_version()},
          {"cupti", header.cupti_version()},   {"nccl", header.nccl_version()}};
}

Json counters_json(const Process& process) {
  Json out = Json::array();
  for (const CounterSummary& counter : summarize_counters(process)) {
    Json row = {{"name", counter.name}, {"unit", counter.unit}, {"count", counter.count}};
    if (counter.device != Shape::kAbsent) row["device"] = counter.device;
    if (counter.is_bits) {
      row["bits"] = counter.bits;
    } else {
      row["min"] = counter.min, row["mean"] = counter.mean, row["max"] = counter.max;
    }
    out.push_back(std::move(row));
  }
  return out;
}

Json communicators_json(const Process& process) {
  Json out = Json::array();
  for (const dump::Communicator& each : process.summary.communicator()) {
    out.push_back({{"handle", each.handle()},
                   {"identity", fmt::format("{:016x}", each.identity())},
                   {"rank_count", each.rank_count()},
                   {"rank", each.rank()},
                   {"name", each.name()},
                   {"description", each.description()}});
  }
  return out;
}

Json nvlinks_json(const Process& process) {
  Json out = Json::array();
  for (const dump::NvLinks& each : process.summary.nvlinks()) {
    out.push_back({{"device", each.device()},
                   {"active", each.active()},
                   {"nvml_version", each.version()},
                   {"mbytes_per_s", each.mbytes_per_s()}});
  }
  return out;
}

Json network_ports_json(const Process& process) {
  Json out = Json::array();
  for (const dump::NetworkPort& each : process.summary.network_port()) {
    out.push_back({{"adapter", each.adapter()},
                   {"port", each.number()},
                   {"mbits_per_s", each.mbits_per_s()},
                   {"link_layer", each.link_layer()}});
  }
  return out;
}

void add_sample(CounterSummary& to, double value) {
  if (to.count == 0 || value < to.min) to.min = value;
  if (to.count == 0 || value > to.max) to.max = value;
  to.mean += value;  // the sum, until all are there
  ++to.count;
}

}  // namespace

Json describe_header(const Process& process) {
  const dump::Header& header = process.header;
  Json command = Json::array();
  for (const std::string& argument : header.command()) command.push_back(argument);
  return {{"path", process.path},
          {"source", process.source == Source::kineto ? "kineto" : "dump"},
          {"completeness", completeness_name(process.completeness)},
          {"recovered", process.recovered},
          {"has_header", process.has_header},
          {"host", header.host()},
          {"pid", header.pid()},
          {"start", header.os_start_time()},
          {"rank", header.rank()},
          {"world_size", header.world_size()},
          {"local_rank", header.local_rank()},
          {"parent_pid", header.parent_pid()},
          {"parent_start", header.parent_start_time()},
          {"worker", static_cast<int64_t>(header.worker()) - 1},
          {"run", header.run()},
          {"job", header.job()},
          {"node", static_cast<int64_t>(header.node()) - 1},
          {"attempt", header.attempt()},
          {"user", header.user()},
          {"window", header.window()},
          {"command", command},
          {"executable", header.executable()},
          {"schedule", header.schedule()},
          {"step_source", process.step_source},
          {"window_begin_mono_ns", process.monotonic(process.window_begin)},
          {"window_end_mono_ns", process.monotonic(process.window_end)},
          {"window_begin_unix_ns", process.window_begin},
          {"clock", clock_name(header.clock().source())},
          {"clock_note", header.clock_note()},
          {"stack_note", header.stack_note()},
          {"samples_note", header.samples_note()},
          {"native_samples_note", header.native_samples_note()},
          {"gpu_times_missing", process.gpu_times_missing},
          {"versions", describe_versions(header)},
          {"devices", describe_devices(header)},
          {"settings", describe_settings(header)}};
}

GraphWork count_graph_work(const Trace& trace, const Process& process) {
  std::vector<bool> in_graph;  // by shape
  for (const Shape& shape : trace.shapes) {
    in_graph.push_back(is_stream_work(shape.kind) && shape.kind != Kind::gpu_graph && shape.graph);
  }
  GraphWork work{};
  if (std::find(in_graph.begin(), in_graph.end(), true) == in_graph.end()) return work;
  for (uint32_t i = 0; i < process.events.size(); ++i) {
    const ShapeIndex shape = process.events.shape_of(i);
    if (!in_graph[number(shape)]) continue;
    const EventExtra& extra = process.extra(process.events[i]);
    if (extra.value == 0) continue;
    ++work.nodes;
    work.named += process.graph_node(trace.shapes[shape], extra) != nullptr;
  }
  return work;
}

// Null: not known.
Json slowdown_json(const Process& process) {
  const auto slower = analysis::recording_slowdown(process);
  if (!slower) return nullptr;
  return {{"steps_before", slower->steps_before},
          {"before_us", slower->before_us},
          {"window_us", slower->window_us},
          {"percent", slower->percent()}};
}

// Null: no budget was set.
Json budget_json(const Process& process) {
  const RecordingBudget& budget = process.budget;
  if (budget.allowed_pct == 0) return nullptr;
  Json left_out = Json::array();
  for (const RecordingBudget::LeftOut& each : budget.left_out) {
    const Step* const step = process.step_at(each.since);
    left_out.push_back({{"kind", left_out_name(each.kind)},
                        {"since_mono_ns", process.monotonic(each.since)},
                        {"since_step", step ? Json(step->step) : Json(nullptr)},
                        {"cost_percent", each.cost_pct > 0 ? Json(each.cost_pct) : Json(nullptr)}});
  }
  const bool known = budget.until != 0;
  return {{"percent", budget.allowed_pct},
          {"left_out", left_out},
          {"cost_percent", known ? Json(budget.cost_pct()) : Json(nullptr)},
          {"cost_since_mono_ns", known ? Json(process.monotonic(budget.since)) : Json(nullptr)},
          {"cost_until_mono_ns", known ? Json(process.monotonic(budget.until)) : Json(nullptr)}};
}

// Null: not known.
Json own_cost_json(const Process& process) {
  if (!own_cost_known(process)) return nullptr;
  const OwnCost cost = own_cost(process);
  return {{"hooks_ns", cost.hooks_ns},
          {"drain_cpu_ns", cost.drain_ns},
          {"samples_cpu_ns", process.summary.samples_cpu_ns()},
          {"cupti_ns", cost.cupti_ns},
          {"percent", cost.percent}};
}

Json describe_summary(const Trace& trace, const Process& process) {
  const std::span<const Step> steps = process.window_steps();
  Json step_json = {{"count", steps.size()}, {"log", process.steps.size()}};
  if (!steps.empty()) {
    step_json["first"] = steps.front().step;
    step_json["last"] = steps.back().step;
  }
  const ImpossibleTimes times = impossible_times(trace, process);
  const GraphWork graph_work = count_graph_work(trace, process);
  Json out = {{"complete", process.completeness == Completeness::complete},
              {"steps", step_json},
              {"partial", process.summary.partial()},
              {"early", is_early_window(process.header.window())},
              {"left_out", process.summary.left_out()},
              {"end_reason", process.summary.end_reason()},
              {"event_count", process.events.size()},
              {"events", counts_json(count_events(trace, process))},
              {"losses", losses_json(process.losses)},
              {"graph_nodes", process.graph_nodes.size()},
              {"graph_work", {{"nodes", graph_work.nodes}, {"named", graph_work.named}}},
              {"counters", counters_json(process)},
              {"communicators", communicators_json(process)},
              {"nvlinks", nvlinks_json(process)},
              {"network_ports", network_ports_json(process)},
              {"samples", process.samples.size()},
              {"process_cpu_ns", process.summary.process_cpu_ns()},
              {"heap_samples", process.heap.size()},
              {"cupti_attach_ns", process.summary.cupti_attach_ns()},
              {"gpu_times_from", process.summary.gpu_times_from()},
              {"gpu_time_error_ns", process.summary.gpu_time_error_ns()},
              {"impossible_times",
               {{"of", times.works},
                {"early", times.early},
                {"earliest_ns", times.earliest_ns},
                {"repeated", times.repeated}}},
              {"cupti_api", process.summary.cupti_api()},
              {"slowdown", slowdown_json(process)},
              {"budget", budget_json(process)},
              {"own_cost", own_cost_json(process)}};
  if (!losses_known(trace, process)) out.erase("losses");
  return out;
}

std::string describe_impossible(const ImpossibleTimes& times) {
  const auto pieces = [](uint64_t count, const char* one, const char* more) {
    return count == 1 ? fmt::format("1 piece of it {}", one)
                      : fmt::format("{} pieces of it {}", count, more);
  };
  std::string text;
  if (times.early > 0) {
    text = pieces(times.early, "begins before its call", "begin before their calls") +
           ", by up to " + format_duration(static_cast<double>(times.earliest_ns));
  }
  if (times.repeated > 0) {
    if (!text.empty()) text += ", ";
    text += pieces(times.repeated, "has the times of the piece before",
                   "have the times of the piece before");
  }
  return text;
}

std::vector<CounterSummary> summarize_counters(const Process& process) {
  std::vector<CounterSummary> out;
  const auto finish = [&out] {
    CounterSummary& last = out.back();
    if (last.count == 0) return out.pop_back();
    last.mean /= static_cast<double>(last.count);
  };
  for (const CounterSeries& series : process.counters) {
    const CounterText& text = kCounterTexts[static_cast<size_t>(series.counter)];
    const bool bits = series.counter == Counter::throttle_reasons;
    out.push_back({text.name, text.unit, series.device, 0, 0, 0, 0, bits, 0});
    for (const CounterSeries::Point& point : series.points) {
      add_sample(out.back(), static_cast<double>(point.value));
      out.back().bits |= point.value;
    }
    finish();
  }
  for (const NamedCounter& counter : process.named_counters) {
    const std::string name = counter.key.empty() || counter.key == counter.name
                                 ? counter.name
                                 : counter.name + " " + counter.key;
    out.push_back({name, "", counter.device, 0, 0, 0, 0, false, 0});
    for (const NamedCounter::Point& point : counter.points) add_sample(out.back(), point.value);
    finish();
  }
  return out;
}

std::map<Kind, uint64_t> count_events(const Trace& trace, const Process& process) {
  std::map<Kind, uint64_t> counts;
  for (const Event& event : process.events) ++counts[trace.shape(event).kind];
  return counts;
}

Json losses_json(const std::array<uint64_t, kLossKinds>& losses) {
  Json out = Json::object();
  for (size_t i = 0; i < losses.size(); ++i) {
    if (losses[i] != 0) out[std::string(loss_name(static_cast<Loss>(i)))] = losses[i];
  }
  return out;
}

Json counts_json(const std::map<Kind, uint64_t>& counts) {
  Json out = Json::object();
  for (const auto& [kind, count] : counts) out[std::string(kind_name(kind))] = count;
  return out;
}

const char* completeness_name(Completeness completeness) {
  switch (completeness) {
    case Completeness::complete: return "complete";
    case Completeness::truncated: return "truncated";
    case Completeness::damaged: return "damaged";
  }
  return "";
}

std::string dump_json(const Json& json, int indent) {
  return json.dump(indent, ' ', false, Json::error_handler_t::replace);
}

std::string describe_budget(const Process& process) {
  const RecordingBudget& budget = process.budget;
  std::string text = fmt::format("{:.4g} % of the window", budget.allowed_pct);
  const char* separator = ": not recorded are ";
  for (const RecordingBudget::LeftOut& each : budget.left_out) {
    text += separator + left_out_words(each.kind, describe_since(process, each));
    if (each.cost_pct > 0) text += fmt::format(", where they took {:.2f} %", each.cost_pct);
    separator = "; ";
  }
  if (budget.left_out.empty()) text += ": nothing was left out";
  text += budget.until == 0
              ? "; what recording costs so is not known"
              : fmt::format("; recording cost {:.2f} % of the {} {}", budget.cost_pct(),
                            format_duration(static_cast<double>(budget.until - budget.since)),
                            budget.left_out.empty() ? "of the window" : "after that");
  return text;
}

OwnCost own_cost(const Process& process) {
  const dump::Summary& summary = process.summary;
  OwnCost cost{summary.hook_cost_ns(), summary.drain_cpu_ns(), summary.cupti_overhead_ns(), 0};
  const int64_t length = process.window_end - process.window_begin;
  if (length > 0) {
    const uint64_t total = cost.hooks_ns + cost.cupti_ns;
    cost.percent = 100.0 * static_cast<double>(total) / static_cast<double>(length);
  }
  return cost;
}

bool own_cost_known(const Process& process) {
  return process.source == Source::dump && process.completeness == Completeness::complete &&
         !process.recovered;
}

// Nothing else counts them: who counts as a window ends was killed before.
uint64_t calls_without_work(const Trace& trace, const Process& process) {
  if (!process.recovered || !process.gpu_times_missing.empty()) return 0;
  const EventTable& events = process.events;
  uint64_t count = 0;
  for (uint32_t i = 0; i < events.size(); ++i) {
    if (events.correlation_of(i) == 0 || events.partner_of(i) != EventIndex::none) continue;
    const Shape& shape = trace.shapes[events.shape_of(i)];
    const bool works =
        shape.kind == Kind::launch || shape.kind == Kind::copy || shape.kind == Kind::set;
    if (!works || shape.result != 0 || (shape.flags & kFlagCaptured)) continue;
    count += !std::binary_search(process.shadowed.begin(), process.shadowed.end(),
                                 static_cast<EventIndex>(i));
  }
  return count;
}

bool losses_known(const Trace& trace, const Process& process) {
  return process.source == Source::dump &&
         (process.recovered ? calls_without_work(trace, process) == 0
                            : process.completeness == Completeness::complete);
}

}  // namespace gpuprof
