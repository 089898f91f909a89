// SPDX-License-Identifier: Apache-2.0
#include "formats/writers/perfetto/perfetto_slices.h"

#include <fmt/format.h>

#include <cstring>

#include "formats/trace/collective_calls.h"
#include "formats/trace/names.h"
#include "formats/views/event_category.h"

namespace gpuprof::perfetto {
namespace {

// Fields of DebugAnnotation.
enum Value : uint32_t { kUint = 3, kInt = 4, kDouble = 5, kBytes = 6, kPointer = 7, kText = 17 };

void put(Message& out, uint64_t value) { out.end(put_varint(out.room(kMaxVarintBytes), value)); }

// A field of a track event that is an annotation with a number.
void annotate(Message& out, uint64_t key, Value type, uint64_t value) {
  uint8_t* const begin = out.room(3 + 3 * kMaxVarintBytes);
  begin[0] = event_field::kAnnotationTag;
  begin[2] = 1 << 3;
  uint8_t* end = put_varint(begin + 3, key);
  end = put_varint(end, uint64_t{type} << 3);
  end = put_varint(end, value);
  begin[1] = static_cast<uint8_t>(end - begin - 2);  // three varints: below 128
  out.end(end);
}

void annotate_double(Message& out, uint64_t key, double value) {
  uint8_t* const begin = out.room(4 + kMaxVarintBytes + sizeof value);
  begin[0] = event_field::kAnnotationTag;
  begin[2] = 1 << 3;
  uint8_t* end = put_varint(begin + 3, key);
  *end++ = kDouble << 3 | 1;
  std::memcpy(end, &value, sizeof value);
  end += sizeof value;
  begin[1] = static_cast<uint8_t>(end - begin - 2);
  out.end(end);
}

void annotate_bytes(Message& out, uint64_t key, std::string_view value) {
  const size_t inner = 2 + varint_size(key) + varint_size(value.size()) + value.size();
  uint8_t* end = out.room(4 + 3 * kMaxVarintBytes);
  *end++ = event_field::kAnnotationTag;
  end = put_varint(end, inner);
  *end++ = 1 << 3;
  end = put_varint(end, key);
  *end++ = kBytes << 3 | 2;
  out.end(put_varint(end, value.size()));
  out.append(value);
}

void put_flow(Message& out, uint32_t field, uint64_t id) {
  uint8_t* const end = put_varint(out.room(kMaxVarintBytes + sizeof id), uint64_t{field} << 3 | 1);
  std::memcpy(end, &id, sizeof id);
  out.end(end + sizeof id);
}

// A packet of the sequence at `time` whose field `tag` is a message that is open until the end.
struct OpenPacket {
  size_t packet, body;
};
OpenPacket begin_packet(Output& out, int64_t time, uint64_t tag) {
  Message& message = out.message;
  OpenPacket open{};
  open.packet = message.open(1 << 3 | 2);
  const Stamp stamp = stamp_of(time, out.start);
  uint8_t* at = message.room(8 + 2 * kMaxVarintBytes);
  *at++ = packet_field::kTimestamp << 3;
  at = put_varint(at, stamp.value);
  if (stamp.absolute) {
    at = put_varint(at, packet_field::kClock << 3);
    *at++ = kWallClock;
  }
  *at++ = packet_field::kSequenceId << 3;
  *at++ = kSequence;
  *at++ = packet_field::kSequenceFlags << 3;
  *at++ = kNeedsState;
  message.end(at);
  open.body = message.open(tag);
  return open;
}

void end_packet(Output& out, const OpenPacket& open) {
  out.message.close(open.body);
  out.message.close(open.packet);
}

// One with a track event and the fields that every one has.
OpenPacket begin_event(Output& out, int64_t time, EventType type, uint64_t track) {
  const OpenPacket open = begin_packet(out, time, packet_field::kTrackEvent << 3 | 2);
  uint8_t* const begin = out.message.room(3 + kMaxVarintBytes);
  begin[0] = event_field::kType << 3;
  begin[1] = static_cast<uint8_t>(type);
  begin[2] = event_field::kTrack << 3;
  out.message.end(put_varint(begin + 3, track));
  return open;
}

std::string dim_text(const Dim3& dim) { return fmt::format("[{}, {}, {}]", dim.x, dim.y, dim.z); }

}  // namespace

SlicePackets::SlicePackets(const Trace& trace, std::span<const Process* const> processes,
                           PacketWriter& out)
    : trace_(trace), out_(out) {
  keys_ = {out.key("correlation"),
           out.key("bytes"),
           out.key("address"),
           out.key("source"),
           out.key("event"),
           out.key("count"),
           out.key("message bytes"),
           out.key("sequence"),
           out.key("operator"),
           out.key("external id"),
           out.key("sequence number"),
           out.key("payload"),
           out.key("args"),
           out.key("stack"),
           out.key("graph node"),
           out.key("captured by"),
           out.key("captured before window (ns)"),
           out.key("capture"),
           out.key("true end (ns)")};
  // Of some ranks and steps of a trace not all are in use.
  std::vector<bool> used(trace.shapes.size());
  for (const Process* const process : processes) {
    for (size_t i = 0; i < process->events.size(); ++i) {
      used[gpuprof::number(process->events.shape_of(i))] = true;
    }
  }
  shapes_.resize(trace.shapes.size());
  for (uint32_t i = 0; i < used.size(); ++i) {
    if (used[i]) shapes_[i] = packets_of(trace.shapes[static_cast<ShapeIndex>(i)]);
  }
  out.define();
}

void SlicePackets::enter(const Process& process, uint64_t flow_base) {
  process_ = &process;
  flow_base_ = flow_base;
  Stacks stacks(process.stacks, out_);
  stacks_.assign(static_cast<uint32_t>(last_stack(process)) + 1, {});
  for (uint32_t i = 1; i < stacks_.size(); ++i) {
    stacks_[i] = stacks.text(static_cast<StackIndex>(i));
  }
  for (const auto& [id, node] : process.graph_nodes) {
    captured_by_.try_emplace(node.api, out_.value(node.api));
  }
  out_.define();
  collectives_ = collectives_by_kernel(process);
  of_collective_.assign(collectives_.empty() ? 0 : process.events.size(), false);
  for (const auto& [kernel, pair] : collectives_) of_collective_[kernel] = true;
}

void SlicePackets::text(Message& out, const char* key, std::string_view value) {
  // Which argument of a call comes first differs by machine, and the first one gets the lower id.
  const uint64_t interned = out_.value(value);
  annotate(out, out_.key(key), kText, interned);
}
void SlicePackets::number(Message& out, const char* key, uint64_t value) {
  annotate(out, out_.key(key), kUint, value);
}
void SlicePackets::pointer(Message& out, const char* key, uint64_t value) {
  annotate(out, out_.key(key), kPointer, value);
}

SlicePackets::ShapePackets SlicePackets::packets_of(const Shape& shape) {
  ShapePackets out;
  out.kind = shape.kind;
  out.payload_type = shape.data_type;
  out.starts_flow =
      shape.kind == Kind::launch || shape.kind == Kind::copy || shape.kind == Kind::set;
  out.ends_flow = is_stream_work(shape.kind) && drawable(shape);
  const std::string_view label = trace_.text(shape.label);
  Message head, tail;
  put(head, event_field::kName << 3);
  put(head, out_.name_id(label));
  put(head, event_field::kCategories << 3);
  put(head, out_.category_id(category_of(trace_, shape)));
  out.head_size = head.size();
  head.text().copy(reinterpret_cast<char*>(out.head), sizeof out.head);
  if (is_stream_work(shape.kind)) out.stage = out_.stage(label);
  if (shape.kind == Kind::op || shape.kind == Kind::annotation) out.label = out_.value(label);
  is_gpu_kind(shape.kind) ? gpu_tail(shape, tail) : host_tail(shape, tail);
  if (shape.kind == Kind::collective) {
    Message collective;
    text(collective, "collective", trace_.text(shape.name));
    collective_tail(shape, collective);
    out.collective = collective.text();
  }
  if (shape.flags & kFlagFromCallback) text(tail, "seen by", "CUPTI callback");
  if (shape.flags & kFlagFromNvtx) text(tail, "seen by", "NVTX range");
  if (shape.flags & kFlagCaptured) number(tail, "captured into a graph", 1);
  if (shape.flags & kFlagOpenEnd) number(tail, "open at window end", 1);
  out.tail = tail.text();
  out.args = shape.args;
  return out;
}

void SlicePackets::host_tail(const Shape& shape, Message& tail) {
  if (shape.result) {
    annotate(tail, out_.key("result"), kInt,
             static_cast<uint64_t>(static_cast<int64_t>(shape.result)));
  }
  switch (shape.kind) {
    case Kind::launch:
      if (shape.detail != StringIndex::empty) {
        text(tail, "kernel", demangle(trace_.text(shape.detail)));
      }
      launch_shape(shape, tail);
      break;
    case Kind::collective: collective_tail(shape, tail); break;
    case Kind::op:
    case Kind::annotation: return operator_tail(shape, tail);
    case Kind::tensor: return;
    case Kind::nvtx_range:
    case Kind::nvtx_mark:
      if (shape.detail != StringIndex::empty) text(tail, "domain", trace_.text(shape.detail));
      if (shape.category) number(tail, "nvtx category", shape.category);
      if (shape.group != StringIndex::empty) {
        text(tail, "nvtx category name", trace_.text(shape.group));
      }
      if (shape.started_on) number(tail, "started on thread", shape.started_on);
      if (shape.ended_on) number(tail, "ended on thread", shape.ended_on);
      return;
    default: break;
  }
  if (shape.stream_handle) pointer(tail, "stream", shape.stream_handle);
}

void SlicePackets::operator_tail(const Shape& shape, Message& tail) {
  const std::pair<const char*, StringIndex> texts[] = {{"input dims", shape.input_dims},
                                                       {"input types", shape.input_types},
                                                       {"call stack", shape.call_stack},
                                                       {"modules", shape.hierarchy}};
  for (const auto& [key, value] : texts) {
    if (value != StringIndex::empty) text(tail, key, trace_.text(value));
  }
}

void SlicePackets::gpu_tail(const Shape& shape, Message& tail) {
  if (shape.kind == Kind::gpu_kernel) {
    launch_shape(shape, tail);
    number(tail, "registers per thread", shape.registers_per_thread);
    number(tail, "static shared bytes", shape.static_shared_bytes);
    if (shape.cluster_x * shape.cluster_y * shape.cluster_z > 1) {
      text(tail, "cluster", dim_text({shape.cluster_x, shape.cluster_y, shape.cluster_z}));
    }
  }
  if (shape.kind == Kind::gpu_sync && shape.stream != Shape::kAbsent) {
    number(tail, "stream", shape.stream);
  }
  if (shape.graph) number(tail, "graph", shape.graph);
}

void SlicePackets::launch_shape(const Shape& shape, Message& tail) {
  if (shape.grid.x) {
    text(tail, "grid", dim_text(shape.grid));
    text(tail, "block", dim_text(shape.block));
  }
  if (shape.dynamic_shared_bytes) {
    number(tail, "dynamic shared bytes", shape.dynamic_shared_bytes);
  }
}

void SlicePackets::collective_tail(const Shape& shape, Message& tail) {
  const NcclTypeName& type = nccl_type(shape.data_type);
  if (type.bytes) text(tail, "data type", type.nccl);
  if (shape.operation != Shape::kAbsent) {
    text(tail, "operation", nccl_operation_name(shape.operation));
  }
  if (shape.peer != Shape::kAbsent) number(tail, "peer", shape.peer);
  if (shape.rank_count) number(tail, "ranks", shape.rank_count);
  const std::pair<const char*, StringIndex> texts[] = {
      {"process group", shape.group},
      {"process group description", shape.group_description},
      {"process group ranks", shape.group_ranks}};
  for (const auto& [key, value] : texts) {
    if (value != StringIndex::empty) text(tail, key, trace_.text(value));
  }
  if (shape.communicator || has_result(shape)) pointer(tail, "communicator", shape.communicator);
}

void SlicePackets::begin_slice(Output& out, uint64_t track, const Event& event,
                               const Slice& slice) const {
  const OpenPacket packet = begin_event(out, slice.begin, EventType::slice_begin, track);
  Message& body = out.message;
  const ShapePackets& shape = shapes_[number_of(event.shape)];
  contents(body, event, shape);
  flows(body, event, shape);
  if (slice.end < event.end) {
    annotate(body, keys_.true_end, kUint, static_cast<uint64_t>(event.end));
  }
  end_packet(out, packet);
}

void SlicePackets::end_slice(Output& out, uint64_t track, int64_t time) {
  end_packet(out, begin_event(out, time, EventType::slice_end, track));
}

void SlicePackets::instant(Output& out, uint64_t track, const Event& event) const {
  const OpenPacket packet = begin_event(out, event.begin, EventType::instant, track);
  contents(out.message, event, shapes_[number_of(event.shape)]);
  end_packet(out, packet);
}

void SlicePackets::contents(Message& body, const Event& event, const ShapePackets& shape) const {
  uint8_t* const head = body.room(sizeof shape.head);
  std::memcpy(head, shape.head, sizeof shape.head);
  body.end(head + shape.head_size);
  if (event.correlation) annotate(body, keys_.correlation, kUint, event.correlation);
  if (const EventIndex op = process_->operator_of(event); op != EventIndex::none) {
    annotate(body, keys_.op, kText, of(op).label);
  }
  const EventExtra& extra = process_->extra(event);
  if (event.extra && extra.stack != StackIndex::none) stack(body, extra.stack);
  args(body, shape, extra);
  values(body, event, shape, extra);
  body.append(shape.tail);
  if (shape.ends_flow) {
    if (event.extra && extra.value) graph_values(body, event, extra);
    collective_of(body, event);
  }
}

void SlicePackets::args(Message& body, const ShapePackets& shape, const EventExtra& extra) const {
  if (shape.args == StringIndex::empty && extra.args == StringIndex::empty) return;
  if (shape.args == StringIndex::empty || extra.args == StringIndex::empty) {
    const bool own = shape.args == StringIndex::empty;
    return annotate_bytes(body, keys_.args, trace_.text(own ? extra.args : shape.args));
  }
  std::string both(trace_.text(shape.args));
  both.append(",").append(trace_.text(extra.args));
  annotate_bytes(body, keys_.args, both);
}

void SlicePackets::values(Message& body, const Event& event, const ShapePackets& shape,
                          const EventExtra& extra) const {
  switch (shape.kind) {
    case Kind::copy:
    case Kind::set:
    case Kind::alloc:
    case Kind::dealloc:
      if (extra.bytes) annotate(body, keys_.bytes, kUint, extra.bytes);
      if (extra.address) annotate(body, keys_.address, kPointer, extra.address);
      if (extra.address2) annotate(body, keys_.source, kPointer, extra.address2);
      break;
    case Kind::sync:
    case Kind::event:
    case Kind::stream:
      if (extra.address2) annotate(body, keys_.event, kPointer, extra.address2);
      break;
    case Kind::collective: collective_values(body, trace_.shape(event), extra); break;
    case Kind::op:
    case Kind::annotation:
      if (extra.value) annotate(body, keys_.external_id, kUint, extra.value);
      if (extra.address) annotate(body, keys_.sequence_number, kUint, extra.address - 1);
      break;
    case Kind::tensor:
      annotate(body, keys_.bytes, kInt, extra.bytes);
      if (extra.address) annotate(body, keys_.address, kPointer, extra.address);
      break;
    case Kind::nvtx_range:
    case Kind::nvtx_mark: payload(body, shape, extra.value); break;
    case Kind::gpu_copy:
    case Kind::gpu_set: annotate(body, keys_.bytes, kUint, extra.bytes); break;
    case Kind::gpu_memory:
      annotate(body, keys_.bytes, kUint, extra.bytes);
      annotate(body, keys_.address, kPointer, extra.address);
      break;
    case Kind::none:
    case Kind::call:
    case Kind::launch:
    case Kind::module:
    case Kind::python_function:
    case Kind::instant:
    case Kind::other:
    case Kind::sample:
    case Kind::heap:
    case Kind::stack:
    case Kind::gpu_kernel:
    case Kind::gpu_sync:
    case Kind::gpu_event:
    case Kind::overhead:
    case Kind::gpu_graph:
    case Kind::gpu_annotation: break;
  }
}

void SlicePackets::payload(Message& body, const ShapePackets& shape, uint64_t bits) const {
  const uint32_t type = shape.payload_type;
  if (is_nvtx_double(type)) return annotate_double(body, keys_.payload, nvtx_double(type, bits));
  if (is_nvtx_signed(type)) {
    const auto value = static_cast<uint64_t>(nvtx_signed(type, bits));
    return annotate(body, keys_.payload, kInt, value);
  }
  if (type != Shape::kAbsent || bits) annotate(body, keys_.payload, kUint, bits);
}

void SlicePackets::collective_values(Message& body, const Shape& shape,
                                     const EventExtra& extra) const {
  const std::pair<uint64_t, std::optional<uint64_t>> values[] = {
      {keys_.count, collective_elements(shape, extra)},
      {keys_.message_bytes, collective_own_bytes(shape, extra)},
      {keys_.sequence, collective_sequence(shape, extra)}};
  for (const auto& [key, value] : values) {
    if (value) annotate(body, key, kUint, *value);
  }
}

// Of a graph's node: which one, and where it was captured.
void SlicePackets::graph_values(Message& body, const Event& event, const EventExtra& extra) const {
  const Shape& shape = trace_.shape(event);
  if (shape.graph) annotate(body, keys_.graph_node, kUint, extra.value);
  const GraphNode* const node = process_->graph_node(shape, extra);
  if (!node) return;
  annotate(body, keys_.captured_by, kText, captured_by_.at(node->api));
  annotate(body, keys_.captured_before, kInt,
           static_cast<uint64_t>(process_->window_begin - node->captured));
  annotate(body, keys_.capture, kUint, node->capture);
  if (node->stack != StackIndex::none) stack(body, node->stack);
}

void SlicePackets::collective_of(Message& body, const Event& event) const {
  if (of_collective_.empty() || !of_collective_[gpuprof::number(event.index)]) return;
  const uint32_t pair = collectives_.at(gpuprof::number(event.index));
  const Event call = process_->event(process_->collective_kernels[pair].collective);
  const ShapePackets& shape = shapes_[number_of(call.shape)];
  collective_values(body, trace_.shape(call), process_->extra(call));
  body.append(shape.collective);
}

void SlicePackets::stack(Message& body, StackIndex stack) const {
  annotate(body, keys_.stack, kText, stacks_[static_cast<uint32_t>(stack)]);
}

void SlicePackets::flows(Message& body, const Event& event, const ShapePackets& shape) const {
  if (shape.starts_flow) {
    for (EventIndex work = event.partner; work != EventIndex::none;
         work = process_->events.next_sibling_of(gpuprof::number(work))) {
      if (of(work).ends_flow) {
        put_flow(body, event_field::kFlow, flow_base_ | gpuprof::number(work));
      }
    }
  } else if (shape.ends_flow && event.partner != EventIndex::none &&
             of(event.partner).starts_flow) {
    put_flow(body, event_field::kTerminatingFlow, flow_base_ | gpuprof::number(event.index));
  }
}

void SlicePackets::render_stage(Output& out, const Queue& queue, const Event& event) const {
  Message& stage = out.message;
  const OpenPacket packet =
      begin_packet(out, event.begin, uint64_t{packet_field::kRenderStage} << 3 | 2);
  uint8_t* end = stage.room(6 * (1 + kMaxVarintBytes));
  const auto field = [&](uint32_t number, uint64_t value) {
    *end++ = static_cast<uint8_t>(number << 3);
    end = put_varint(end, value);
  };
  field(1, flow_base_ | gpuprof::number(event.index));
  field(2, static_cast<uint64_t>(event.end - event.begin));
  field(5, queue.context);
  if (queue.gpu) field(11, queue.gpu);
  field(13, queue.name);
  field(14, shapes_[number_of(event.shape)].stage);
  stage.end(end);
  end_packet(out, packet);
}

}  // namespace gpuprof::perfetto
