// SPDX-License-Identifier: Apache-2.0
#include "formats/dump/shape_decoder.h"

#include <fmt/format.h>

#include "formats/trace/names.h"

namespace gpuprof {
namespace {

// Undoes the "+ 1" of fields in which 0 means absent.
uint32_t less_one(uint32_t value) { return value - 1; }
static_assert(Shape::kAbsent == uint32_t{0} - 1);

void set_numbers(const dump::Shape& in, Shape& out) {
  out.kind = static_cast<Kind>(in.kind() & 0xff);
  out.flags = static_cast<uint8_t>(in.flags());
  out.result = in.result();
  out.grid = {in.grid_x(), in.grid_y(), in.grid_z()};
  out.block = {in.block_x(), in.block_y(), in.block_z()};
  out.dynamic_shared_bytes = in.dynamic_shared_bytes();
  out.static_shared_bytes = in.static_shared_bytes();
  out.registers_per_thread = in.registers_per_thread();
  out.local_bytes_per_thread = in.local_bytes_per_thread();
  out.cluster_x = in.cluster_x();
  out.cluster_y = in.cluster_y();
  out.cluster_z = in.cluster_z();
  out.stream_handle = in.stream_handle();
  out.communicator = in.communicator();
  out.pool = in.pool();
  out.function = in.function();
  out.domain = in.api_domain() <= 4 ? static_cast<ApiDomain>(in.api_domain()) : ApiDomain::other;
  out.direction = in.direction();
  out.source_kind = in.source_kind();
  out.destination_kind = in.destination_kind();
  out.data_type = less_one(in.data_type());
  out.operation = less_one(in.operation());
  out.peer = less_one(in.peer());
  out.rank = less_one(in.rank());
  out.rank_count = in.rank_count();
  out.graph = in.graph();
  out.category = in.category();
  out.color = in.color();
  out.memory_kind = in.memory_kind();
  out.context = in.context();
  out.channel = in.channel();
  out.channel_type = in.channel_type();
  out.depth = in.depth();
  out.started_on = in.started_on();
  out.ended_on = in.ended_on();
  out.stream = less_one(in.stream());
  out.peer_source = less_one(in.peer_device());
  out.peer_destination = less_one(in.peer_destination());
  out.cupti_flags = in.cupti_flags();
  out.object_kind = in.object_kind();
  out.device_type = less_one(in.device_type());
  out.device_id = less_one(in.device());
  out.sample_interval = in.sample_interval();
  const bool typed = out.kind == Kind::gpu_sync || out.kind == Kind::gpu_event ||
                     out.kind == Kind::gpu_memory || out.kind == Kind::overhead;
  out.value = typed ? 0 : in.value();
  out.cupti_type = typed ? less_one(in.value()) : Shape::kAbsent;
}

std::string label_of(const Shape& shape, std::string_view name) {
  switch (shape.kind) {
    case Kind::gpu_kernel: return demangle(name);
    case Kind::gpu_graph: return fmt::format("CUDA graph {}", shape.graph);
    case Kind::gpu_copy:
      return fmt::format("Memcpy {} ({} -> {})", copy_direction_name(shape.direction),
                         memory_kind_name(shape.source_kind),
                         memory_kind_name(shape.destination_kind));
    case Kind::gpu_set: return fmt::format("Memset ({})", memory_kind_name(shape.destination_kind));
    case Kind::gpu_sync: return std::string(sync_type_name(shape.cupti_type));
    case Kind::gpu_event: return "CUDA event";
    case Kind::gpu_memory: return std::string(memory_operation_name(shape.cupti_type));
    case Kind::overhead: return std::string(overhead_name(shape.cupti_type));
    default: break;
  }
  return name.empty() ? std::string(kind_name(shape.kind)) : std::string(name);
}

}  // namespace

bool decode_shapes(const dump::Events& events, Trace& trace, std::vector<ShapeIndex>& shapes) {
  std::vector<StringIndex> strings;
  strings.reserve(static_cast<size_t>(events.string_size()));
  for (const std::string& text : events.string()) strings.push_back(trace.strings.intern(text));
  if (strings.empty()) strings.push_back(StringIndex::empty);
  shapes.reserve(static_cast<size_t>(events.shape_size()));
  for (const dump::Shape& in : events.shape()) {
    for (const uint32_t index : {in.name(), in.detail(), in.input_dims(), in.input_types()}) {
      if (index >= strings.size()) return false;
    }
    Shape shape{};
    set_numbers(in, shape);
    shape.name = strings[in.name()];
    shape.detail = strings[in.detail()];
    shape.input_dims = strings[in.input_dims()];
    shape.input_types = strings[in.input_types()];
    shape.label = trace.strings.intern(label_of(shape, trace.strings[shape.name]));
    shapes.push_back(trace.shapes.intern(shape));
  }
  return true;
}

}  // namespace gpuprof
