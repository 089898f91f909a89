// SPDX-License-Identifier: Apache-2.0
// gpuprof parse: every record, one line each.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <numeric>
#include <string>
#include <vector>

#include "tools/command.h"
#include "tools/console.h"
#include "tools/describe.h"
#include "tools/inputs.h"
#include "tools/record_fields.h"
#include "tools/symbols/symbol_options.h"

namespace gpuprof {
namespace {

constexpr std::pair<RecordFlags, std::string_view> kFlagNames[] = {
    {kFlagFromCallback, "from_callback"},
    {kFlagFromNvtx, "from_nvtx"},
    {kFlagNoTime, "no_time"},
    {kFlagDriver, "driver"},
    {kFlagOpenEnd, "open_end"},
};

std::string lane_text(const Lane& lane) {
  switch (lane.type) {
    case LaneType::thread: return fmt::format("thread {}", lane.thread_id);
    case LaneType::stream: return fmt::format("gpu {} stream {}", lane.device, lane.stream);
    case LaneType::device: return fmt::format("gpu {}", lane.device);
    case LaneType::overhead: return "overhead";
    case LaneType::other: return lane.thread_name;
  }
  return "";
}

void append_lane_json(std::string& out, const Lane& lane) {
  auto end = std::back_inserter(out);
  switch (lane.type) {
    case LaneType::thread:
      fmt::format_to(end, "{{\"type\":\"thread\",\"tid\":{},\"name\":", lane.thread_id);
      append_json_string(out, lane.thread_name);
      out += '}';
      break;
    case LaneType::stream:
      fmt::format_to(end, "{{\"type\":\"stream\",\"device\":{},\"context\":{},\"stream\":{}",
                     lane.device, lane.context, lane.stream);
      if (!lane.thread_name.empty()) {
        out += ",\"name\":";
        append_json_string(out, lane.thread_name);
      }
      out += '}';
      break;
    case LaneType::device:
      fmt::format_to(end, "{{\"type\":\"device\",\"device\":{}}}", lane.device);
      break;
    case LaneType::overhead: out += "{\"type\":\"overhead\"}"; break;
    case LaneType::other:
      out += "{\"type\":\"other\",\"name\":";
      append_json_string(out, lane.thread_name);
      out += '}';
      break;
  }
}

std::string text_record(const Trace& trace, const Process& process, const Event& event) {
  const Shape& shape = trace.shape(event);
  std::string label;
  append_json_string(label, trace.text(shape.label));  // as one line; the quotes are taken off
  std::string out = fmt::format(
      "{:>13} {:>17} {:<16} {:<10} {:>10} {}", event.begin - process.window_begin,
      process.monotonic(event.begin), lane_text(process.lane(event)), kind_name(shape.kind),
      event.end - event.begin, std::string_view(label).substr(1, label.size() - 2));
  FieldWriter fields(FieldWriter::Style::text, out);
  if (event.correlation != 0) fields.number("correlation", uint64_t{event.correlation});
  write_arguments(trace, process, event, fields);
  for (const auto& [flag, name] : kFlagNames) {
    if ((shape.flags & flag) != 0) out += fmt::format(" {}", name);
  }
  return out;
}

std::string json_record(const Trace& trace, const Process& process, const Event& event) {
  const Shape& shape = trace.shape(event);
  std::string out =
      fmt::format("{{\"index\":{},\"kind\":\"{}\",\"name\":", number(process.index_of(event)),
                  kind_name(shape.kind));
  append_json_string(out, trace.text(shape.name));
  out += ",\"label\":";
  append_json_string(out, trace.text(shape.label));
  out += ",\"lane\":";
  append_lane_json(out, process.lane(event));
  FieldWriter fields(FieldWriter::Style::json, out);
  fields.number("begin_ns", event.begin - process.window_begin);
  fields.number("begin_mono_ns", process.monotonic(event.begin));
  fields.number("end_mono_ns", process.monotonic(event.end));
  fields.number("duration_ns", event.end - event.begin);
  fields.number("correlation", uint64_t{event.correlation});
  if (event.partner != EventIndex::none) {
    fields.number("partner", uint64_t{number(event.partner)});
  }
  out += ",\"flags\":[";
  const char* separator = "";
  for (const auto& [flag, name] : kFlagNames) {
    if ((shape.flags & flag) == 0) continue;
    fmt::format_to(std::back_inserter(out), "{}\"{}\"", separator, name);
    separator = ",";
  }
  out += ']';
  write_arguments(trace, process, event, fields);
  return out + "}";
}

// Puts {"kind": kind} in front.
std::string json_line(const char* kind, const Json& fields) {
  Json out = {{"kind", kind}};
  out.update(fields);
  return dump_json(out);
}

Json place_json(const Process& process, uint32_t device, int64_t time, uint32_t thread,
                StackIndex stack) {
  Json out = {{"time_mono_ns", process.monotonic(time)}, {"tid", thread}};
  if (device != Shape::kAbsent) out["device"] = device;
  if (const Step* const step = process.step_at(time)) out["step"] = step->step;
  if (stack != StackIndex::none) out["stack"] = process.stacks.lines(stack);
  return out;
}

// Allocations of a moment that were in place, then the one that failed, then allocators' totals.
void print_live_json(const Trace& trace, const Process& process, const LiveMemory& live) {
  const std::string moment(moment_name(live.moment));
  for (const LiveAllocation& each : live.allocations) {
    Json line = {{"moment", moment},
                 {"moment_mono_ns", process.monotonic(live.time)},
                 {"address", each.address},
                 {"bytes", each.bytes},
                 {"api", trace.text(each.api)}};
    line.update(place_json(process, each.device, each.time, each.thread, each.stack));
    put_line("{}", json_line("live", line));
  }
  for (const FailedAllocation& failed : live.failed) {
    Json line = {
        {"bytes", failed.bytes}, {"api", trace.text(failed.api)}, {"number", failed.number}};
    line.update(place_json(process, failed.device, failed.time, failed.thread, failed.stack));
    put_line("{}", json_line("out_of_memory", line));
  }
  for (const AllocatorTotals& each : live.allocators) {
    put_line("{}", json_line("allocator", {{"moment", moment},
                                           {"device", each.device},
                                           {"allocated", each.allocated},
                                           {"reserved", each.reserved},
                                           {"peak", each.peak},
                                           {"peak_mono_ns", process.monotonic(each.peak_time)}}));
  }
}

bool is_in_window(const Process& process, const Step& step) {
  const std::span<const Step> window = process.window_steps();
  return !window.empty() && step.step >= window.front().step && step.step <= window.back().step;
}

std::vector<uint32_t> by_begin(const Process& process) {
  std::vector<uint32_t> order(process.events.size());
  std::iota(order.begin(), order.end(), 0u);
  std::stable_sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
    return process.events[a].begin < process.events[b].begin;
  });
  return order;
}

void print_json(const Trace& trace, const Process& process) {
  put_line("{}", json_line("header", describe_header(process)));
  for (const Step& step : process.steps) {
    put_line(R"({{"kind":"step","number":{},"begin_mono_ns":{},"end_mono_ns":{},"in_window":{}}})",
             step.step, process.monotonic(step.begin), process.monotonic(step.end),
             is_in_window(process, step));
  }
  for (const uint32_t index : by_begin(process)) {
    put_line("{}", json_record(trace, process, process.events[index]));
  }
  for (const HostSample& sample : process.samples) {
    put_line("{}", json_line("sample", {{"tid", sample.thread},
                                        {"time_mono_ns", process.monotonic(sample.time)},
                                        {"stack", process.stacks.lines(sample.stack)}}));
  }
  for (const HeapSample& sample : process.heap) {
    Json fields = {{"tid", sample.thread},
                   {"time_mono_ns", process.monotonic(sample.time)},
                   {"name", trace.text(sample.call)},
                   {"address", sample.address},
                   {"bytes", sample.bytes},
                   {"interval", sample.interval},
                   {"released", sample.released}};
    if (sample.stack != StackIndex::none) fields["stack"] = process.stacks.lines(sample.stack);
    put_line("{}", json_line("heap", fields));
  }
  for (const CounterSeries& series : process.counters) {
    const CounterText& text = kCounterTexts[static_cast<size_t>(series.counter)];
    for (const CounterSeries::Point& point : series.points) {
      put_line("{}", json_line("counter", {{"device", series.device},
                                           {"name", text.name},
                                           {"unit", text.unit},
                                           {"time_mono_ns", process.monotonic(point.time)},
                                           {"value", point.value}}));
    }
  }
  for (const Worker& worker : process.workers) {
    for (const Worker::Sample& sample : worker.samples) {
      put_line("{}", json_line("worker", {{"pid", worker.pid},
                                          {"born_mono_ns", process.monotonic(worker.born)},
                                          {"time_mono_ns", process.monotonic(sample.time)},
                                          {"cpu_ns", sample.cpu_ns},
                                          {"queue_ns", sample.queue_ns},
                                          {"read_bytes", sample.read_bytes},
                                          {"state", std::string(1, sample.state)}}));
    }
  }
  for (const LiveMemory& live : process.live_memory) print_live_json(trace, process, live);
  put_line("{}", json_line("summary", describe_summary(trace, process)));
}

void print_live_text(const Trace& trace, const Process& process, const LiveMemory& live) {
  const auto line = [&](int64_t time, uint32_t thread, StackIndex stack, const char* kind,
                        std::string text) {
    if (const Step* const step = process.step_at(time)) text += fmt::format(" step={}", step->step);
    if (stack != StackIndex::none) {
      FieldWriter(FieldWriter::Style::text, text).texts("stack", process.stacks.lines(stack));
    }
    put_line("{:>13} {:>17} {:<16} {:<10} {:>10} {}", time - process.window_begin,
             process.monotonic(time), fmt::format("thread {}", thread), kind, "", text);
  };
  const auto name_of = [&](StringIndex api) {
    return api == StringIndex::empty ? std::string_view("block") : trace.text(api);
  };
  const auto device_text = [](uint32_t device) {
    return device == Shape::kAbsent ? std::string() : fmt::format(" device={}", device);
  };
  for (const LiveAllocation& each : live.allocations) {
    line(each.time, each.thread, each.stack, "live",
         fmt::format("{} moment={} address={:#x} bytes={}{}", name_of(each.api),
                     moment_name(live.moment), each.address, each.bytes, device_text(each.device)));
  }
  for (const FailedAllocation& failed : live.failed) {
    line(failed.time, failed.thread, failed.stack, "no_memory",
         fmt::format("{} bytes={}{} number={}", name_of(failed.api), failed.bytes,
                     device_text(failed.device), failed.number));
  }
}

void print_text(const Trace& trace, const Process& process) {
  put_line("# {}", dump_json(describe_header(process)));
  put_line("# {:>11} {:>17} {:<16} {:<10} {:>10} {}", "since window", "monotonic ns", "lane",
           "kind", "ns", "name and arguments");
  for (const Step& step : process.steps) {
    put_line("{:>13} {:>17} {:<16} {:<10} {:>10} {}{}", step.begin - process.window_begin,
             process.monotonic(step.begin), "-", "step", step.end - step.begin, step.step,
             is_in_window(process, step) ? " in_window" : "");
  }
  for (const uint32_t index : by_begin(process)) {
    put_line("{}", text_record(trace, process, process.events[index]));
  }
  for (const HostSample& sample : process.samples) {
    std::string stack;
    FieldWriter(FieldWriter::Style::text, stack).texts("stack", process.stacks.lines(sample.stack));
    put_line("{:>13} {:>17} {:<16} {:<10} {:>10}{}", sample.time - process.window_begin,
             process.monotonic(sample.time), fmt::format("thread {}", sample.thread), "sample", "",
             stack);
  }
  for (const HeapSample& sample : process.heap) {
    std::string text =
        fmt::format("{} address={:#x} bytes={}{}", trace.text(sample.call), sample.address,
                    sample.bytes, sample.released ? " released" : "");
    if (sample.stack != StackIndex::none) {
      FieldWriter(FieldWriter::Style::text, text)
          .texts("stack", process.stacks.lines(sample.stack));
    }
    put_line("{:>13} {:>17} {:<16} {:<10} {:>10} {}", sample.time - process.window_begin,
             process.monotonic(sample.time), fmt::format("thread {}", sample.thread), "heap", "",
             text);
  }
  for (const CounterSeries& series : process.counters) {
    const CounterText& text = kCounterTexts[static_cast<size_t>(series.counter)];
    for (const CounterSeries::Point& point : series.points) {
      put_line("{:>13} {:>17} {:<16} {:<10} {:>10} {} = {} {}", point.time - process.window_begin,
               process.monotonic(point.time), fmt::format("gpu {}", series.device), "counter", "",
               text.name, point.value, text.unit);
    }
  }
  for (const Worker& worker : process.workers) {
    for (const Worker::Sample& sample : worker.samples) {
      put_line("{:>13} {:>17} {:<16} {:<10} {:>10} cpu_ns={} queue_ns={} read_bytes={} state={}",
               sample.time - process.window_begin, process.monotonic(sample.time),
               fmt::format("process {}", worker.pid), "worker", "", sample.cpu_ns, sample.queue_ns,
               sample.read_bytes, sample.state);
    }
  }
  for (const LiveMemory& live : process.live_memory) print_live_text(trace, process, live);
  put_line("# {}", dump_json(describe_summary(trace, process)));
}

}  // namespace

int run_parse(const Command& command, int count, char** arguments) {
  CLI::App app;
  std::string input;
  std::string format = "text";
  app.add_option(
         "INPUT", input,
         "a dump, what a killed process left, a Kineto (torch.profiler) JSON trace, or a directory "
         "of them")
      ->required();
  app.add_option("--format", format, "text or json (one object a line)")
      ->capture_default_str()
      ->check(one_of({"text", "json"}));
  SymbolOptions symbols;
  add_debug_dirs(app, symbols);
  app.footer(kRecordKeys);
  int code = kExitDone;
  if (!parse_arguments(app, command, count, arguments, code)) return code;

  Input loaded = load_inputs({input});
  symbolize(loaded.trace, symbols);
  const Trace& trace = loaded.trace;
  for (const Process& process : trace.processes) {
    if (format == "json") {
      print_json(trace, process);
    } else {
      print_text(trace, process);
    }
  }
  return kExitDone;
}

}  // namespace gpuprof
