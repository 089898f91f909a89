// SPDX-License-Identifier: Apache-2.0
#include "formats/core/shape_fields.h"

namespace gpuprof {
namespace {

void write_host_numbers(WireWriter& wire, const Record& r) {
  switch (r.kind) {
    case Kind::call: wire.sint(4, r.call.result); break;
    case Kind::launch:
      wire.sint(4, r.launch.result);
      wire.uint(6, r.launch.grid_x);
      wire.uint(7, r.launch.grid_y);
      wire.uint(8, r.launch.grid_z);
      wire.uint(9, r.launch.block_x);
      wire.uint(10, r.launch.block_y);
      wire.uint(11, r.launch.block_z);
      wire.uint(12, r.launch.shared_bytes);
      wire.uint(19, r.launch.stream);
      if (!(r.flags & kFlagNamed)) wire.uint(43, r.launch.function);
      break;
    case Kind::copy:
      wire.sint(4, r.copy.result);
      wire.uint(19, r.copy.stream);
      wire.uint(20, r.copy.direction);
      break;
    case Kind::set:
      wire.sint(4, r.set.result);
      wire.uint(19, r.set.stream);
      wire.uint(23, r.set.value);
      break;
    case Kind::alloc:
    case Kind::dealloc:
      wire.sint(4, r.memory.result);
      wire.uint(19, r.memory.stream);
      wire.uint(40, r.memory.pool);
      break;
    case Kind::sync:
    case Kind::event:
    case Kind::stream:
      wire.sint(4, r.sync.result);
      wire.uint(19, r.sync.stream);
      wire.uint(23, r.sync.flags);
      break;
    case Kind::collective:
      wire.sint(4, r.collective.result);
      wire.uint(19, r.collective.stream);
      wire.uint(24, r.collective.communicator);
      wire.uint(25, static_cast<uint8_t>(r.collective.data_type + 1));
      wire.uint(26, static_cast<uint8_t>(r.collective.operation + 1));
      wire.uint(27, static_cast<uint32_t>(r.collective.peer) + 1u);
      wire.uint(28, r.collective.rank_count ? r.collective.rank + 1u : 0);
      wire.uint(29, r.collective.rank_count);
      break;
    case Kind::nvtx_range:
    case Kind::nvtx_mark:
      wire.uint(31, r.nvtx.category);
      wire.uint(32, r.nvtx.color);
      wire.uint(37, r.nvtx.depth);
      break;
    case Kind::op: wire.uint(23, r.framework.backward); break;
    case Kind::tensor:
      wire.uint(23, r.tensor.released);
      wire.uint(49, r.tensor.device_type + 1u);
      wire.uint(50, static_cast<uint16_t>(r.tensor.device + 1));
      break;
    case Kind::heap:
      wire.uint(23, r.heap.released);
      wire.uint(51, r.heap.interval);
      break;
    default: break;
  }
}

void write_gpu_numbers(WireWriter& wire, const Record& r) {
  switch (r.kind) {
    case Kind::gpu_graph:
    case Kind::gpu_kernel:
      wire.uint(30, r.gpu_kernel.graph);
      wire.uint(35, r.gpu_kernel.channel);
      wire.uint(36, r.gpu_kernel.channel_type);
      break;
    case Kind::gpu_copy:
    case Kind::gpu_set: {
      const uint16_t from = r.gpu_copy.peer_source, to = r.gpu_copy.peer_destination;
      wire.uint(20, r.gpu_copy.direction);
      wire.uint(21, r.gpu_copy.source_kind);
      wire.uint(22, r.gpu_copy.destination_kind);
      wire.uint(23, r.gpu_copy.value);
      wire.uint(30, r.gpu_copy.graph);
      wire.uint(39, static_cast<uint16_t>(from + 1));
      wire.uint(41, from != 0xffff || to != 0xffff);
      wire.uint(44, r.gpu_copy.flags);
      wire.uint(45, static_cast<uint16_t>(to + 1));
      break;
    }
    case Kind::gpu_sync:
    case Kind::gpu_event:
      wire.uint(23, r.gpu_sync.type + 1u);
      wire.uint(34, r.gpu_sync.context);
      wire.uint(38, r.gpu_sync.stream + 1u);
      break;
    case Kind::gpu_memory:
      wire.uint(23, r.gpu_memory.operation + 1u);
      wire.uint(33, r.gpu_memory.memory_kind);
      wire.uint(34, r.gpu_memory.context);
      wire.uint(38, r.gpu_memory.stream + 1u);
      wire.uint(40, r.gpu_memory.pool);
      break;
    case Kind::overhead:
      wire.uint(23, r.overhead.type + 1u);
      wire.uint(46, r.overhead.object_kind);
      break;
    default: break;
  }
}

}  // namespace

void write_launch_shape(WireWriter& wire, const LaunchShape& shape) {
  wire.uint(6, shape.grid.x);
  wire.uint(7, shape.grid.y);
  wire.uint(8, shape.grid.z);
  wire.uint(9, shape.block.x);
  wire.uint(10, shape.block.y);
  wire.uint(11, shape.block.z);
  wire.uint(12, shape.dynamic_shared_bytes);
  wire.uint(13, shape.static_shared_bytes);
  wire.uint(14, shape.registers_per_thread);
  wire.uint(15, shape.cluster_x);
  wire.uint(16, shape.cluster_y);
  wire.uint(17, shape.cluster_z);
  wire.uint(18, shape.local_bytes_per_thread);
}

void write_shape_numbers(WireWriter& wire, const Record& record) {
  if (is_gpu_kind(record.kind)) {
    write_gpu_numbers(wire, record);
  } else {
    write_host_numbers(wire, record);
  }
}

StringId payload_name(const Record& r) {
  switch (r.kind) {
    case Kind::call: return r.call.name;
    case Kind::copy: return r.copy.name;
    case Kind::set: return r.set.name;
    case Kind::alloc:
    case Kind::dealloc: return r.memory.name;
    case Kind::sync:
    case Kind::event:
    case Kind::stream: return r.sync.name;
    case Kind::nvtx_range:
    case Kind::nvtx_mark: return r.nvtx.message;
    case Kind::op:
    case Kind::annotation:
    case Kind::module: return r.framework.name;
    case Kind::heap: return r.heap.name;
    case Kind::gpu_graph:
    case Kind::gpu_kernel: return r.gpu_kernel.name;
    default: return 0;
  }
}

}  // namespace gpuprof
