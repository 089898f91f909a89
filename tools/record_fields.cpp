// SPDX-License-Identifier: Apache-2.0
#include "tools/record_fields.h"

#include <fmt/format.h>

#include "formats/io/utf8.h"
#include "formats/trace/collective_calls.h"
#include "formats/trace/names.h"

namespace gpuprof {

const char* const kRecordKeys = R"(JSON keys, one object a line:
  header    path, host, pid, rank, world_size, window, step_source, window_begin_mono_ns,
            window_end_mono_ns, versions, devices, settings, gpu_times_missing, ... as in gpuprof info
  step      number, begin_mono_ns, end_mono_ns, in_window
  summary   complete, steps, partial, early, end_reason, event_count, events, losses, own_cost,
            budget (null: none; percent, cost_percent, left_out: kind, since_mono_ns, since_step),
            ... as in gpuprof info
  and a line for each record, in order of begin:
  all       index, kind, name, label, lane, begin_ns, begin_mono_ns, end_mono_ns, duration_ns,
            correlation (0: none), partner (index of the call that caused this GPU work, or of the first
            GPU work that this call caused; absent: none), flags (from_callback, from_nvtx, no_time, driver, open_end)
  lane      {type: thread, tid, name} | {type: stream, device, context, stream} |
            {type: device, device} | {type: overhead} | {type: other, name}
  call      handle, result
  launch    kernel, kernel_label, function, grid, block, shared_bytes, stream_handle, stream, result
            (launch, copy, set, alloc, dealloc: captured=1 where the call was captured into a graph)
  copy      bytes, address (destination), source, direction, stream_handle, stream, result
  set       bytes, address, value, stream_handle, stream, result
  alloc, dealloc    bytes, address, pool, stream_handle, stream, result
  sync, event, stream    stream_handle, stream, event, value (flags as passed), result
  collective    communicator, group, group_description, group_ranks (of the process group, where the
            program names it), count, data_type, operation, peer, rank, rank_count, sequence, stream_handle, stream, result (enum values as NCCL numbers them; absent: none);
            of calls with the flag from_nvtx bytes instead of count, no data_type, stream and result (absent: not known)
  nvtx_range, nvtx_mark    message, domain, category, category_name, color, payload (absent: none),
            depth, range_id, started_on, ended_on (threads, of a range that began on one and ended on another)
  gpu_kernel    grid, block, static_shared_bytes, dynamic_shared_bytes, registers_per_thread,
            local_bytes_per_thread, cluster, channel, channel_type, graph, graph_node, captured_by,
            captured_mono_ns, captured_stack (of the call that a graph's node comes from; also of copies and sets)
  gpu_graph graph (the launch as a whole)
  gpu_copy  bytes, direction, source_kind, destination_kind, peer_source, peer_destination, graph,
            graph_node
  gpu_set   bytes, value, memory_kind, graph, graph_node
  gpu_sync, gpu_event    type, stream, context, event, device_time_mono_ns
  gpu_memory    bytes, address, operation, memory_kind, stream, context, pool
  overhead  type, object, object_kind
  op, annotation    external_id, input_dims, input_types, call_stack, hierarchy, sequence_number,
            forward_thread, number (among the operators; absent: none)
  module, python_function   id, parent_id, module_id (absent: none)
  tensor    bytes (negative: released), address, device_type (0 CPU, 1 CUDA, 6 HIP, 12 XPU), device_id,
            total_allocated, total_reserved (absent: not said)
  instant, other    category
  gpu_annotation    external_id
  all of outside traces    operator (index of the op that a call or GPU work belongs to; absent:
            none), args (an object of what has no key here)
  sample    tid, time_mono_ns, stack (a Python stack, innermost first; no index)
  heap      tid, time_mono_ns, name, address, bytes, interval (bytes between two samples, on average),
            released, stack (a sampled allocation on the host, or its release; no index)
  counter   device, name, unit, time_mono_ns, value (a sample; no index)
  worker    pid, born_mono_ns, time_mono_ns, cpu_ns, queue_ns, read_bytes (since it was born), state
            (as in proc(5); a DataLoader's worker at a moment; no index)
  live      moment (window_begins, out_of_memory, left), moment_mono_ns, address, bytes, api,
            time_mono_ns, tid, device, step, stack (an allocation that was in place then; no index)
  out_of_memory    bytes, api, number (of failures so far), time_mono_ns, tid, device, step, stack
            (an allocation that failed; no index)
  allocator moment, device, allocated, reserved, peak, peak_mono_ns (a framework's; no index)
  `stream` is CUPTI's stream id, found for calls through the GPU work they caused; absent: not known.
  Times: _mono_ns are CLOCK_MONOTONIC of that process; begin_ns counts from the window's begin.)";

namespace {

// cudaMemcpyKind, for calls; CUPTI's kinds have their names in formats/trace/names.h.
std::string_view call_direction_name(uint32_t direction) {
  constexpr std::string_view kNames[] = {"HtoH", "HtoD", "DtoH", "DtoD", "Default"};
  return direction < std::size(kNames) ? kNames[direction] : "Unknown";
}

void write_call_stream(const Process& process, const Shape& shape, const Event& event,
                       FieldWriter& out) {
  out.address("stream_handle", shape.stream_handle);
  if (event.partner != EventIndex::none) {
    const Lane& lane = process.lane(process.event(event.partner));
    if (lane.type == LaneType::stream) {
      out.number("stream", uint64_t{lane.stream});
      return;
    }
  }
  const StreamLink* link = process.stream_of(shape.stream_handle);
  if (link != nullptr) out.number("stream", uint64_t{link->stream});
}

void write_present(std::string_view key, uint32_t value, FieldWriter& out) {
  if (value != Shape::kAbsent) out.number(key, uint64_t{value});
}

void write_graph(const Shape& shape, const EventExtra& extra, FieldWriter& out) {
  if (shape.graph == 0 && extra.value == 0) return;
  out.number("graph", uint64_t{shape.graph});
  out.number("graph_node", extra.value);
}

void write_launch(const Trace& trace, const Process& process, const Event& event,
                  FieldWriter& out) {
  const Shape& shape = trace.shape(event);
  const std::string_view kernel = trace.text(shape.detail);
  out.text("kernel", kernel);
  out.text("kernel_label", demangle(kernel));
  out.address("function", shape.function);
  out.list("grid", {shape.grid.x, shape.grid.y, shape.grid.z});
  out.list("block", {shape.block.x, shape.block.y, shape.block.z});
  out.number("shared_bytes", uint64_t{shape.dynamic_shared_bytes});
  write_call_stream(process, shape, event, out);
}

void write_text(const Trace& trace, std::string_view key, StringIndex value, FieldWriter& out) {
  if (value != StringIndex::empty) out.text(key, trace.text(value));
}

void write_collective(const Trace& trace, const Process& process, const Shape& shape,
                      const Event& event, FieldWriter& out) {
  const EventExtra& extra = process.extra(event);
  if (shape.communicator || has_result(shape)) out.address("communicator", shape.communicator);
  write_text(trace, "group", shape.group, out);
  write_text(trace, "group_description", shape.group_description, out);
  if (shape.group_ranks != StringIndex::empty) {
    out.json("group_ranks", trace.text(shape.group_ranks));
  }
  const auto count = collective_elements(shape, extra), bytes = collective_own_bytes(shape, extra);
  if (count) out.number("count", *count);
  if (!count && bytes) out.number("bytes", *bytes);
  write_present("data_type", shape.data_type, out);
  write_present("operation", shape.operation, out);
  write_present("peer", shape.peer, out);
  write_present("rank", shape.rank, out);
  if (shape.rank_count != 0) out.number("rank_count", uint64_t{shape.rank_count});
  if (const auto sequence = collective_sequence(shape, extra)) out.number("sequence", *sequence);
  if (has_stream(shape)) write_call_stream(process, shape, event, out);
}

void write_nvtx(const Trace& trace, const Shape& shape, const EventExtra& extra, FieldWriter& out) {
  out.text("message", trace.text(shape.name));
  out.text("domain", trace.text(shape.detail));
  out.number("category", uint64_t{shape.category});
  out.number("color", uint64_t{shape.color});
  const std::string payload = nvtx_payload(shape.data_type, extra.value);
  if (!payload.empty()) out.json("payload", payload);
  write_text(trace, "category_name", shape.group, out);
  if (shape.started_on) out.number("started_on", uint64_t{shape.started_on});
  if (shape.ended_on) out.number("ended_on", uint64_t{shape.ended_on});
  out.number("depth", uint64_t{shape.depth});
  out.number("range_id", extra.address);
}

void write_json(const Trace& trace, std::string_view key, StringIndex value, FieldWriter& out) {
  if (value != StringIndex::empty) out.json(key, trace.text(value));
}

void write_less_one(std::string_view key, uint64_t value, FieldWriter& out) {
  if (value != 0) out.number(key, value - 1);
}

void write_operator(const Trace& trace, const Shape& shape, const EventExtra& extra,
                    FieldWriter& out) {
  if (extra.value != 0) out.number("external_id", extra.value);
  write_json(trace, "input_dims", shape.input_dims, out);
  write_json(trace, "input_types", shape.input_types, out);
  write_text(trace, "call_stack", shape.call_stack, out);
  write_text(trace, "hierarchy", shape.hierarchy, out);
  if (extra.address != 0) {
    out.number("sequence_number", extra.address - 1);
    out.number("forward_thread", extra.address2);
  }
  write_less_one("number", extra.bytes, out);
}

void write_tensor(const Shape& shape, const EventExtra& extra, FieldWriter& out) {
  out.number("bytes", static_cast<int64_t>(extra.bytes));
  if (extra.address != 0) out.address("address", extra.address);
  write_present("device_type", shape.device_type, out);
  write_present("device_id", shape.device_id, out);
  if (extra.address2 != EventExtra::kNotGiven) out.number("total_allocated", extra.address2);
  if (extra.value != EventExtra::kNotGiven) out.number("total_reserved", extra.value);
}

// What frameworks say of themselves; true when the event is such.
bool write_framework(const Trace& trace, const Process& process, const Event& event,
                     FieldWriter& out) {
  const Shape& shape = trace.shape(event);
  const EventExtra& extra = process.extra(event);
  switch (shape.kind) {
    case Kind::op:
    case Kind::annotation: write_operator(trace, shape, extra, out); return true;
    case Kind::module:
    case Kind::python_function:
      write_less_one("id", extra.value, out);
      write_less_one("parent_id", extra.address, out);
      write_less_one("module_id", extra.address2, out);
      return true;
    case Kind::tensor: write_tensor(shape, extra, out); return true;
    case Kind::instant:
    case Kind::other: out.text("category", trace.text(shape.detail)); return true;
    case Kind::gpu_annotation:
      if (extra.value != 0) out.number("external_id", extra.value);
      return true;
    default: return false;
  }
}

// Host kinds; true when the event is one.
bool write_host(const Trace& trace, const Process& process, const Event& event, FieldWriter& out) {
  const Shape& shape = trace.shape(event);
  const EventExtra& extra = process.extra(event);
  switch (shape.kind) {
    case Kind::call: out.address("handle", extra.address); break;
    case Kind::launch: write_launch(trace, process, event, out); break;
    case Kind::copy:
      out.number("bytes", extra.bytes);
      out.address("address", extra.address);
      out.address("source", extra.address2);
      out.text("direction", call_direction_name(shape.direction));
      write_call_stream(process, shape, event, out);
      break;
    case Kind::set:
      out.number("bytes", extra.bytes);
      out.address("address", extra.address);
      out.number("value", uint64_t{shape.value});
      write_call_stream(process, shape, event, out);
      break;
    case Kind::alloc:
    case Kind::dealloc:
      out.number("bytes", extra.bytes);
      out.address("address", extra.address);
      out.address("pool", shape.pool);
      write_call_stream(process, shape, event, out);
      break;
    case Kind::sync:
    case Kind::event:
    case Kind::stream:
      write_call_stream(process, shape, event, out);
      out.address("event", extra.address2);
      out.number("value", uint64_t{shape.value});
      break;
    case Kind::collective: write_collective(trace, process, shape, event, out); break;
    case Kind::nvtx_range:
    case Kind::nvtx_mark: write_nvtx(trace, shape, extra, out); return true;
    default: return false;
  }
  if (shape.flags & kFlagCaptured) out.number("captured", uint64_t{1});
  if (has_result(shape)) out.number("result", int64_t{shape.result});
  return true;
}

void write_gpu_kernel(const Shape& shape, const EventExtra& extra, FieldWriter& out) {
  out.list("grid", {shape.grid.x, shape.grid.y, shape.grid.z});
  out.list("block", {shape.block.x, shape.block.y, shape.block.z});
  out.number("static_shared_bytes", uint64_t{shape.static_shared_bytes});
  out.number("dynamic_shared_bytes", uint64_t{shape.dynamic_shared_bytes});
  out.number("registers_per_thread", uint64_t{shape.registers_per_thread});
  out.number("local_bytes_per_thread", uint64_t{shape.local_bytes_per_thread});
  out.list("cluster", {shape.cluster_x, shape.cluster_y, shape.cluster_z});
  out.number("channel", uint64_t{shape.channel});
  out.number("channel_type", uint64_t{shape.channel_type});
  write_graph(shape, extra, out);
}

void write_gpu_sync(const Process& process, const Shape& shape, const EventExtra& extra,
                    FieldWriter& out) {
  if (shape.cupti_type != Shape::kAbsent) out.text("type", sync_type_name(shape.cupti_type));
  write_present("stream", shape.stream, out);
  out.number("context", uint64_t{shape.context});
  out.number("event", extra.value);
  if (extra.address2 != 0) {
    out.number("device_time_mono_ns", process.monotonic(static_cast<int64_t>(extra.address2)));
  }
}

void write_device(const Process& process, const Shape& shape, const EventExtra& extra,
                  FieldWriter& out) {
  switch (shape.kind) {
    case Kind::gpu_kernel: write_gpu_kernel(shape, extra, out); break;
    case Kind::gpu_graph: write_graph(shape, extra, out); break;
    case Kind::gpu_copy:
      out.number("bytes", extra.bytes);
      out.text("direction", copy_direction_name(shape.direction));
      out.text("source_kind", memory_kind_name(shape.source_kind));
      out.text("destination_kind", memory_kind_name(shape.destination_kind));
      write_present("peer_source", shape.peer_source, out);
      write_present("peer_destination", shape.peer_destination, out);
      write_graph(shape, extra, out);
      break;
    case Kind::gpu_set:
      out.number("bytes", extra.bytes);
      out.number("value", uint64_t{shape.value});
      out.text("memory_kind", memory_kind_name(shape.destination_kind));
      write_graph(shape, extra, out);
      break;
    case Kind::gpu_sync:
    case Kind::gpu_event: write_gpu_sync(process, shape, extra, out); break;
    case Kind::gpu_memory:
      out.number("bytes", extra.bytes);
      out.address("address", extra.address);
      if (shape.cupti_type != Shape::kAbsent) {
        out.text("operation", memory_operation_name(shape.cupti_type));
      }
      out.text("memory_kind", memory_kind_name(shape.memory_kind));
      write_present("stream", shape.stream, out);
      out.number("context", uint64_t{shape.context});
      out.address("pool", shape.pool);
      break;
    case Kind::overhead:
      if (shape.cupti_type != Shape::kAbsent) out.text("type", overhead_name(shape.cupti_type));
      out.number("object", extra.address);
      out.number("object_kind", uint64_t{shape.object_kind});
      break;
    case Kind::none:
    case Kind::call:
    case Kind::launch:
    case Kind::copy:
    case Kind::set:
    case Kind::alloc:
    case Kind::dealloc:
    case Kind::sync:
    case Kind::event:
    case Kind::stream:
    case Kind::collective:
    case Kind::nvtx_range:
    case Kind::nvtx_mark:
    case Kind::op:
    case Kind::annotation:
    case Kind::module:
    case Kind::python_function:
    case Kind::tensor:
    case Kind::instant:
    case Kind::other:
    case Kind::sample:
    case Kind::heap:
    case Kind::stack:
    case Kind::gpu_annotation: break;
  }
  if (const GraphNode* const node = process.graph_node(shape, extra)) {
    out.text("captured_by", node->api);
    out.number("captured_mono_ns", process.monotonic(node->captured));
    if (node->stack != StackIndex::none) {
      out.texts("captured_stack", process.stacks.lines(node->stack));
    }
  }
}

}  // namespace

void write_arguments(const Trace& trace, const Process& process, const Event& event,
                     FieldWriter& out) {
  if (!write_framework(trace, process, event, out) && !write_host(trace, process, event, out)) {
    write_device(process, trace.shape(event), process.extra(event), out);
  }
  const EventIndex op = process.operator_of(event);
  if (op != EventIndex::none) out.number("operator", uint64_t{number(op)});
  const std::string_view of_shape = trace.text(trace.shape(event).args),
                         own = trace.text(process.extra(event).args);
  if (!of_shape.empty() || !own.empty()) {
    const char* const between = of_shape.empty() || own.empty() ? "" : ",";
    out.json("args", fmt::format("{{{}{}{}}}", of_shape, between, own));
  }
  const StackIndex stack = process.extra(event).stack;
  if (stack != StackIndex::none) out.texts("stack", process.stacks.lines(stack));
}

void FieldWriter::key(std::string_view key) {
  if (style_ == Style::json) {
    out_ += ",\"";
    out_ += key;
    out_ += "\":";
  } else {
    out_ += ' ';
    out_ += key;
    out_ += '=';
  }
}

void FieldWriter::number(std::string_view name, int64_t value) {
  key(name);
  fmt::format_to(std::back_inserter(out_), "{}", value);
}

void FieldWriter::number(std::string_view name, uint64_t value) {
  key(name);
  fmt::format_to(std::back_inserter(out_), "{}", value);
}

void FieldWriter::address(std::string_view name, uint64_t value) {
  key(name);
  if (style_ == Style::json) {
    fmt::format_to(std::back_inserter(out_), "{}", value);
  } else {
    fmt::format_to(std::back_inserter(out_), "{:#x}", value);
  }
}

void FieldWriter::text(std::string_view name, std::string_view value) {
  if (style_ == Style::text && value.empty()) return;
  key(name);
  append_json_string(out_, value);
}

void FieldWriter::json(std::string_view name, std::string_view value) {
  key(name);
  out_ += value;
}

void FieldWriter::list(std::string_view name, std::initializer_list<uint64_t> values) {
  key(name);
  out_ += style_ == Style::json ? "[" : "";
  const char* separator = "";
  for (const uint64_t value : values) {
    fmt::format_to(std::back_inserter(out_), "{}{}", separator, value);
    separator = style_ == Style::json ? "," : "x";
  }
  out_ += style_ == Style::json ? "]" : "";
}

void FieldWriter::texts(std::string_view name, const std::vector<std::string>& values) {
  key(name);
  if (style_ == Style::text) {
    std::string joined;
    for (const std::string& value : values) joined += (joined.empty() ? "" : "; ") + value;
    return append_json_string(out_, joined);
  }
  const char* separator = "[";
  for (const std::string& value : values) {
    out_ += separator;
    append_json_string(out_, value);
    separator = ",";
  }
  out_ += "]";
}

void append_json_string(std::string& out, std::string_view text) {
  std::string replaced;
  if (!is_valid_utf8(text)) {
    replaced = valid_utf8(text);
    text = replaced;
  }
  out += '"';
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (c == '\n') {
      out += "\\n";
    } else if (static_cast<unsigned char>(c) < ' ' || c == '\x7f') {
      fmt::format_to(std::back_inserter(out), "\\u{:04x}", static_cast<unsigned>(c));
    } else {
      out += c;
    }
  }
  out += '"';
}

}  // namespace gpuprof
