// SPDX-License-Identifier: Apache-2.0
#include "formats/core/shape_fields.h"

namespace gpuprof {
namespace {

// An overload for each payload: what of it is the shape's. 0 is not written, so an enum that has a
// 0 goes as one more.
struct ShapeNumbers {
  WireWriter& wire;
  const Record& record;

  void operator()(const NoPayload&) const {}
  void operator()(const CallPayload& p) const { wire.sint(4, p.result); }
  void operator()(const LaunchPayload& p) const {
    wire.sint(4, p.result);
    wire.uint(6, p.grid_x);
    wire.uint(7, p.grid_y);
    wire.uint(8, p.grid_z);
    wire.uint(9, p.block_x);
    wire.uint(10, p.block_y);
    wire.uint(11, p.block_z);
    wire.uint(12, p.shared_bytes);
    wire.uint(19, p.stream);
    if (!(record.flags & kFlagNamed)) wire.uint(43, p.function);
  }
  void operator()(const CopyPayload& p) const {
    wire.sint(4, p.result);
    wire.uint(19, p.stream);
    wire.uint(20, p.direction);
  }
  void operator()(const SetPayload& p) const {
    wire.sint(4, p.result);
    wire.uint(19, p.stream);
    wire.uint(23, p.value);
  }
  void operator()(const MemoryPayload& p) const {
    wire.sint(4, p.result);
    wire.uint(19, p.stream);
    wire.uint(40, p.pool);
  }
  void operator()(const SyncPayload& p) const {
    wire.sint(4, p.result);
    wire.uint(19, p.stream);
    wire.uint(23, p.flags);
  }
  void operator()(const CollectivePayload& p) const {
    wire.sint(4, p.result);
    wire.uint(19, p.stream);
    wire.uint(24, p.communicator);
    wire.uint(25, static_cast<uint8_t>(p.data_type + 1));
    wire.uint(26, static_cast<uint8_t>(p.operation + 1));
    wire.uint(27, static_cast<uint32_t>(p.peer) + 1u);
    wire.uint(28, p.rank_count ? p.rank + 1u : 0);
    wire.uint(29, p.rank_count);
  }
  void operator()(const NvtxPayload& p) const {
    wire.uint(25, p.payload_type ? uint64_t{p.payload_type} + 1 : 0);
    wire.uint(31, p.category);
    wire.uint(32, p.color);
    wire.uint(37, p.depth);
    wire.uint(52, p.started_on);
    wire.uint(53, p.ended_on);
  }
  void operator()(const FrameworkPayload& p) const {
    if (record.kind == Kind::op) wire.uint(23, p.backward);
  }
  void operator()(const TensorPayload& p) const {
    wire.uint(23, p.released);
    wire.uint(49, p.device_type + 1u);
    wire.uint(50, static_cast<uint16_t>(p.device + 1));
  }
  void operator()(const StackPayload&) const {}
  void operator()(const SamplePayload&) const {}
  void operator()(const HeapPayload& p) const {
    wire.uint(23, p.released);
    wire.uint(51, p.interval);
  }
  void operator()(const GpuKernelPayload& p) const {
    wire.uint(30, p.graph);
    wire.uint(35, p.channel);
    wire.uint(36, p.channel_type);
  }
  void operator()(const GpuCopyPayload& p) const {
    const uint16_t from = p.peer_source, to = p.peer_destination;
    wire.uint(20, p.direction);
    wire.uint(21, p.source_kind);
    wire.uint(22, p.destination_kind);
    wire.uint(23, p.value);
    wire.uint(30, p.graph);
    wire.uint(39, static_cast<uint16_t>(from + 1));
    wire.uint(41, from != 0xffff || to != 0xffff);
    wire.uint(44, p.flags);
    wire.uint(45, static_cast<uint16_t>(to + 1));
  }
  void operator()(const GpuSyncPayload& p) const {
    wire.uint(23, p.type + 1u);
    wire.uint(34, p.context);
    wire.uint(38, p.stream + 1u);
  }
  void operator()(const GpuMemoryPayload& p) const {
    wire.uint(23, p.operation + 1u);
    wire.uint(33, p.memory_kind);
    wire.uint(34, p.context);
    wire.uint(38, p.stream + 1u);
    wire.uint(40, p.pool);
  }
  void operator()(const OverheadPayload& p) const {
    wire.uint(23, p.type + 1u);
    wire.uint(46, p.object_kind);
  }
};

// An overload for each payload: the name that it holds, 0 if none.
struct NameOf {
  StringId operator()(const NoPayload&) const { return 0; }
  StringId operator()(const CallPayload& p) const { return p.name; }
  StringId operator()(const LaunchPayload&) const { return 0; }
  StringId operator()(const CopyPayload& p) const { return p.name; }
  StringId operator()(const SetPayload& p) const { return p.name; }
  StringId operator()(const MemoryPayload& p) const { return p.name; }
  StringId operator()(const SyncPayload& p) const { return p.name; }
  StringId operator()(const CollectivePayload&) const { return 0; }
  StringId operator()(const NvtxPayload& p) const { return p.message; }
  StringId operator()(const FrameworkPayload& p) const { return p.name; }
  StringId operator()(const TensorPayload&) const { return 0; }
  StringId operator()(const StackPayload&) const { return 0; }
  StringId operator()(const SamplePayload&) const { return 0; }
  StringId operator()(const HeapPayload& p) const { return p.name; }
  StringId operator()(const GpuKernelPayload& p) const { return p.name; }
  StringId operator()(const GpuCopyPayload&) const { return 0; }
  StringId operator()(const GpuSyncPayload&) const { return 0; }
  StringId operator()(const GpuMemoryPayload&) const { return 0; }
  StringId operator()(const OverheadPayload&) const { return 0; }
};

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
  with_payload(record, ShapeNumbers{wire, record});
}

StringId payload_name(const Record& record) { return with_payload(record, NameOf{}); }

}  // namespace gpuprof
