// SPDX-License-Identifier: Apache-2.0
// gpuprof info: what dumps hold and what they lack.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "formats/core/early_window.h"
#include "formats/core/names.h"
#include "tools/analysis/ranks/clocks.h"
#include "tools/analysis/recording_slowdown.h"
#include "tools/analysis/standstill.h"
#include "tools/command.h"
#include "tools/console.h"
#include "tools/describe.h"
#include "tools/inputs.h"
#include "tools/versions.h"

namespace gpuprof {
namespace {

struct Totals {
  std::map<Kind, uint64_t> events;
  std::array<uint64_t, kLossKinds> losses{};
  bool losses_known = true;  // of all processes
  uint64_t calls_without_work = 0;
  std::set<int32_t> ranks;   // known ones
  std::set<uint64_t> steps;  // of windows
};

Totals total(const Trace& trace) {
  Totals out;
  for (const Process& process : trace.processes) {
    for (const auto& [kind, count] : count_events(trace, process)) out.events[kind] += count;
    for (size_t i = 0; i < kLossKinds; ++i) out.losses[i] += process.losses[i];
    out.losses_known = out.losses_known && losses_known(trace, process);
    out.calls_without_work += calls_without_work(trace, process);
    if (process.has_header && process.header.rank() >= 0) out.ranks.insert(process.header.rank());
    for (const Step& step : process.window_steps()) out.steps.insert(out.steps.end(), step.step);
  }
  return out;
}

uint64_t sum(const std::map<Kind, uint64_t>& counts) {
  uint64_t out = 0;
  for (const auto& [kind, count] : counts) out += count;
  return out;
}

void print_json(const Trace& trace) {
  const Totals totals = total(trace);
  Json out = {{"schema", 1}, {"files", Json::array()}, {"ranks", totals.ranks}};
  for (const Process& process : trace.processes) {
    Json file = describe_header(process);
    file.update(describe_summary(trace, process));
    out["files"].push_back(std::move(file));
  }
  out["steps"] = {{"count", totals.steps.size()}};
  if (!totals.steps.empty()) {
    out["steps"]["first"] = *totals.steps.begin();
    out["steps"]["last"] = *totals.steps.rbegin();
  }
  out["event_count"] = sum(totals.events);
  out["events"] = counts_json(totals.events);
  if (totals.losses_known) out["losses"] = losses_json(totals.losses);
  out["problems"] = Json::array();
  for (const Problem& problem : trace.problems) {
    out["problems"].push_back(
        {{"file", problem.file}, {"offset", problem.offset}, {"reason", problem.reason}});
  }
  out["notes"] = trace.notes;
  out["clocks"] = analysis::clocks_json(trace);
  if (const auto standstill = analysis::standstill_of(trace)) {
    out[analysis::key_of(*standstill)] = analysis::to_json(*standstill);
  }
  put(dump_json(out, 2) + "\n");
}

std::string counts_text(const std::map<Kind, uint64_t>& counts) {
  std::string out = fmt::format("{}", sum(counts));
  const char* separator = ": ";
  for (const auto& [kind, count] : counts) {
    out += fmt::format("{}{} {}", separator, kind_name(kind), count);
    separator = ", ";
  }
  return out;
}

// `known`: there are no others. `without_work`: calls of killed processes.
std::string losses_text(const std::array<uint64_t, kLossKinds>& losses, bool known,
                        uint64_t without_work) {
  std::string out;
  for (size_t i = 0; i < losses.size(); ++i) {
    if (losses[i] == 0) continue;
    out +=
        fmt::format("{}{} {}", out.empty() ? "" : ", ", loss_name(static_cast<Loss>(i)), losses[i]);
  }
  if (known) return out.empty() ? "nothing" : out;
  out += out.empty() ? "not known" : ", and what is not known";
  if (without_work == 0) return out;
  return out + fmt::format(": GPU work of {} call{} had not come from CUPTI", without_work,
                           without_work == 1 ? "" : "s");
}

// CUDA's numbering: 13020 is 13.2.
std::string program_text(const dump::Header& header) {
  std::string command;
  for (const std::string& argument : header.command()) {
    command += command.empty() ? argument : " " + argument;
  }
  std::string rank = header.rank() >= 0 ? fmt::format(", rank {}", header.rank()) : "";
  if (header.rank() >= 0 && header.world_size() > 0) {
    rank += fmt::format(" of {}", header.world_size());
  }
  if (header.parent_pid()) {
    rank += fmt::format(", worker {} of the DataLoader of pid {}", header.worker() - 1,
                        header.parent_pid());
  }
  const std::string host = header.host().empty() ? "" : " on " + header.host();
  return fmt::format("{} (pid {}{}{})", command.empty() ? header.executable() : command,
                     header.pid(), host, rank);
}

// What a killed process left that was in no window.
bool is_outside_windows(const Process& process) {
  return process.recovered && process.header.window_begin_ticks() == 0 &&
         process.summary.window_begin_ticks() == 0;
}

std::string window_text(const Process& process) {
  if (is_outside_windows(process)) return "none was open";
  const std::span<const Step> steps = process.window_steps();
  const dump::Summary& summary = process.summary;
  const bool parents = process.is_data_worker() && summary.last_step() >= summary.first_step();
  std::string out =
      process.source != Source::dump ? ""
      : is_early_window(process.header.window())
          ? "early, recorded from the program's start in case that it ends before its window, "
          : fmt::format("{}, ", process.header.window());
  out += !steps.empty() ? fmt::format("steps {}-{}", steps.front().step, steps.back().step)
         : parents      ? fmt::format("steps {}-{}", summary.first_step(), summary.last_step())
                        : "no whole step";
  if (!process.step_source.empty()) out += fmt::format(" ({})", process.step_source);
  out += ", " + format_duration(static_cast<double>(process.window_end - process.window_begin));
  if (!process.summary.end_reason().empty()) {
    out += fmt::format(", ended by {}{}", process.summary.end_reason(),
                       process.summary.partial() ? " before its last step" : "");
  }
  if (process.summary.left_out()) {
    out += fmt::format("; the newest events, {} before them had to go (max_mb)",
                       process.summary.left_out());
  }
  return out;
}

std::string state_text(const Process& process) {
  std::string out = completeness_name(process.completeness);
  if (process.completeness == Completeness::truncated) {
    out +=
        ": the process was killed or is still running, or the file was cut off; this shows what is "
        "readable";
  }
  if (process.completeness == Completeness::damaged) {
    out += ": parts are unreadable; the rest is shown";
  }
  return out + (process.recovered ? "; recovered from the buffers of the process" : "");
}

// The median, since the first step is mostly the program's start.
std::string step_log_text(const Process& process) {
  if (process.steps.empty()) return "no steps";
  std::vector<int64_t> lengths;
  for (const Step& step : process.steps) lengths.push_back(step.end - step.begin);
  std::sort(lengths.begin(), lengths.end());
  return fmt::format("{} steps{}, {} to {}, median {}", process.steps.size(),
                     process.source == Source::dump ? " since the program started" : "",
                     format_duration(static_cast<double>(lengths.front())),
                     format_duration(static_cast<double>(lengths.back())),
                     format_duration(static_cast<double>(lengths[lengths.size() / 2])));
}

void print_row(const char* name, std::string_view text) { put_line("  {:<10} {}", name, text); }

// A row for each run of devices of the same sort.
void print_devices(const dump::Header& header) {
  for (int i = 0; i < header.device_size();) {
    const dump::Device& first = header.device(i);
    int last = i;
    while (last + 1 < header.device_size() && header.device(last + 1).name() == first.name() &&
           header.device(last + 1).total_memory_bytes() == first.total_memory_bytes()) {
      ++last;
    }
    const std::string ids = last == i ? fmt::format("{}", first.id())
                                      : fmt::format("{}-{}", first.id(), header.device(last).id());
    print_row("device",
              fmt::format("{}: {}, {} multiprocessors, {}", ids, first.name(),
                          first.multiprocessors(), format_bytes(first.total_memory_bytes())));
    i = last + 1;
  }
}

std::string number_text(double value, const std::string& unit) {
  if (unit == "bytes") return format_bytes(static_cast<uint64_t>(value));
  return fmt::format("{:.6g}{}{}", value, unit.empty() ? "" : " ", unit);
}

void print_counters(const Process& process) {
  for (const CounterSummary& counter : summarize_counters(process)) {
    const std::string of =
        counter.device == Shape::kAbsent ? "" : fmt::format("GPU {} ", counter.device);
    const std::string values =
        counter.is_bits
            ? fmt::format("bits {:#x} were set", counter.bits)
            : fmt::format("{} to {}, {} on average", number_text(counter.min, counter.unit),
                          number_text(counter.max, counter.unit),
                          number_text(counter.mean, counter.unit));
    print_row("counter",
              fmt::format("{}{}: {} samples, {}", of, counter.name, counter.count, values));
  }
}

void print_live_memory(const Trace& trace, const Process& process) {
  for (const LiveMemory& live : process.live_memory) {
    uint64_t bytes = 0, count = 0;
    for (const LiveAllocation& each : live.allocations) {
      if (each.is_block()) continue;  // lies in one of CUDA's
      bytes += each.bytes;
      ++count;
    }
    const char* const when = live.moment == LiveMoment::window_begins   ? "when the window began"
                             : live.moment == LiveMoment::out_of_memory ? "when memory ran out"
                                                                        : "in the end";
    std::string text = fmt::format("{} in {} allocations {}", format_bytes(bytes), count, when);
    for (const FailedAllocation& failed : live.failed) {
      text += fmt::format(
          ", {} more were asked for by {}", format_bytes(failed.bytes),
          failed.api == StringIndex::empty ? "a framework's allocator" : trace.text(failed.api));
    }
    print_row("memory", text);
  }
}

std::string gpu_times_text(const Trace& trace, const Process& process) {
  if (!process.gpu_times_missing.empty()) return "missing: " + process.gpu_times_missing;
  std::string text = "present";
  if (process.summary.gpu_times_from() == "events") {
    text =
        "by CUDA events around each launch: from when its stream was free, with a resolution of "
        "0.5 us";
  }
  const auto attach = static_cast<double>(process.summary.cupti_attach_ns());
  const auto error = static_cast<double>(process.summary.gpu_time_error_ns());
  if (attach > 0) text += ", CUPTI attached in " + format_duration(attach);
  if (!process.summary.cupti_api().empty()) text += ", by " + process.summary.cupti_api();
  if (error > 0) text += ", at most " + format_duration(error) + " off";
  const std::string impossible = describe_impossible(impossible_times(trace, process));
  if (!impossible.empty()) text += "; of GPU work, times of some cannot be right: " + impossible;
  return text;
}

// Of CUDA graphs: how much of it is known by the call that was captured.
void print_graph_work(const Trace& trace, const Process& process) {
  const GraphWork work = count_graph_work(trace, process);
  if (work.nodes == 0) return;
  print_row("graph work", fmt::format("{} of {} pieces are named by the call that was captured",
                                      work.named, work.nodes));
}

void print_text(const Trace& trace, const Process& process) {
  const dump::Header& header = process.header;
  put_line("{}", process.path);
  print_row("state", state_text(process));
  if (process.has_header) {
    print_row("program", program_text(header));
    print_row("window", window_text(process));
    if (process.source == Source::dump) print_row("schedule", header.schedule());
  }
  print_row("step log", step_log_text(process));
  print_devices(header);
  if (process.has_header && process.source == Source::dump) {
    print_row(
        "versions",
        fmt::format("gpuprof {}, driver {}, runtime {}, CUPTI {}, NCCL {}", header.tool_version(),
                    cuda_version(header.driver_version()), cuda_version(header.runtime_version()),
                    header.cupti_version() == 0 ? "none" : std::to_string(header.cupti_version()),
                    nccl_version(header.nccl_version())));
  }
  if (process.is_data_worker()) {
    print_row("CPU time", format_duration(static_cast<double>(process.summary.process_cpu_ns())));
  } else if (!is_outside_windows(process)) {
    print_row("GPU times", gpu_times_text(trace, process));
    print_graph_work(trace, process);
  }
  print_row("events", counts_text(count_events(trace, process)));
  print_counters(process);
  if (!header.samples_note().empty()) {
    print_row("samples", "none: " + header.samples_note());
  } else if (header.sample_period_ns() != 0) {
    print_row(
        "samples",
        fmt::format("{} of host stacks, taken in {} of another thread", process.samples.size(),
                    format_duration(static_cast<double>(process.summary.samples_cpu_ns()))));
  }
  if (!header.native_samples_note().empty()) {
    print_row("native frames", "none: " + header.native_samples_note());
  }
  print_live_memory(trace, process);
  print_row("lost", losses_text(process.losses, losses_known(trace, process),
                                calls_without_work(trace, process)));
  if (own_cost_known(process)) {
    const OwnCost cost = own_cost(process);
    print_row(
        "own cost",
        fmt::format("{:.2f} % of the window: hooks {}, CUPTI {}; writing took {} of another thread",
                    cost.percent, format_duration(static_cast<double>(cost.hooks_ns)),
                    format_duration(static_cast<double>(cost.cupti_ns)),
                    format_duration(static_cast<double>(cost.drain_ns))));
  }
  if (process.budget.allowed_pct > 0) print_row("budget", describe_budget(process));
  if (const auto slower = analysis::recording_slowdown(process)) {
    print_row(
        "slowdown",
        fmt::format(
            "steps of the window took {:.1f} % longer than the {} before it (medians {}, {})",
            slower->percent(), slower->steps_before, format_duration(1000 * slower->window_us),
            format_duration(1000 * slower->before_us)));
  }
}

void print_totals(const Trace& trace) {
  const Totals totals = total(trace);
  put_line("{} dumps, {} known ranks", trace.processes.size(), totals.ranks.size());
  print_row("events", counts_text(totals.events));
  print_row("lost", losses_text(totals.losses, totals.losses_known, totals.calls_without_work));
  const std::string clocks = analysis::describe_clocks(analysis::clocks_of(trace));
  if (!clocks.empty()) print_row("clocks", clocks);
}

}  // namespace

int run_info(const Command& command, int count, char** arguments) {
  CLI::App app;
  std::vector<std::string> inputs;
  std::string format = "text";
  app.add_option("INPUT", inputs,
                 "dumps, what killed processes left, Kineto (torch.profiler) JSON traces, - for "
                 "standard input, or "
                 "directories of "
                 "them")
      ->required();
  JobChoice choice;
  add_job_choice(app, choice);
  app.add_option("--format", format, "text or json")
      ->capture_default_str()
      ->check(one_of({"text", "json"}));
  int code = kExitDone;
  if (!parse_arguments(app, command, count, arguments, code)) return code;

  const Input input = load_inputs(inputs, choice);
  const Trace& trace = input.trace;
  if (format == "json") {
    print_json(trace);
    return kExitDone;
  }
  for (const Process& process : trace.processes) print_text(trace, process);
  if (trace.processes.size() > 1) print_totals(trace);
  if (const auto standstill = analysis::standstill_of(trace)) {
    put_line("{}", analysis::describe(*standstill));
  }
  return kExitDone;
}

}  // namespace gpuprof
