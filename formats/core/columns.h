// SPDX-License-Identifier: Apache-2.0
// Which parts of a record are constant for its Shape and which go to the columns of its lane, by
// kind. The one place that says so: encoder, reader and the table in FORMAT.md follow it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "formats/core/record.h"

namespace gpuprof {

enum ColumnBits : uint8_t {
  kColumnBytes = 1,
  kColumnAddress = 2,
  kColumnAddress2 = 4,
  kColumnValue = 8,
};

struct KindLayout {
  uint8_t columns;         // ColumnBits
  uint64_t shape_mask[5];  // bits of Record::words that belong to the Shape
};

namespace layout_detail {
inline constexpr uint64_t kAll = ~uint64_t{0}, kLow = 0xffffffffu;
inline constexpr uint8_t kBytes = kColumnBytes, kAddress = kColumnAddress,
                         kAddress2 = kColumnAddress2, kValue = kColumnValue;
struct Table {
  KindLayout call{kAddress, {0, kAll, 0, 0, 0}};
  KindLayout launch{0, {kAll, kAll, kAll, kAll, kAll}};
  KindLayout copy{kBytes | kAddress | kAddress2, {0, 0, 0, kAll, ~uint64_t{0xff00}}};
  KindLayout set{kBytes | kAddress, {0, 0, kAll, ~(uint64_t{0xffff} << 48), kLow}};
  KindLayout memory{kBytes | kAddress, {0, 0, kAll, kAll, ~uint64_t{0xffff0000}}};
  KindLayout sync{kAddress2, {kAll, 0, kAll, kLow, 0}};
  KindLayout collective{kBytes | kValue, {kAll, 0, kAll, ~kLow, kAll}};
  KindLayout nvtx{kAddress | kValue, {kAll, kAll, 0, 0, kLow}};
  KindLayout framework{kAddress, {kAll, kAll, 0, 0, 0}};
  KindLayout tensor{kBytes | kAddress | kAddress2 | kValue, {0, 0, 0, 0, kAll}};
  KindLayout sample{0, {0, 0, 0, 0, 0}};
  KindLayout heap{kBytes | kAddress, {0, 0, kAll, kAll, 0}};
  KindLayout gpu_kernel{kValue, {kAll, 0, 0, kAll, 0}};
  KindLayout gpu_copy{kBytes | kValue, {0, 0, kAll, 0, kAll}};
  KindLayout gpu_sync{kAddress | kAddress2 | kValue, {kAll, 0xffff0000u, 0, 0, 0}};
  KindLayout gpu_memory{kBytes | kAddress, {0, 0, kAll, ~uint64_t{0xffff}, kAll}};
  KindLayout overhead{kAddress, {kAll, 0, 0, 0, 0}};
};
inline constexpr Table table{};
}  // namespace layout_detail

// Null for kinds that are not in the format.
constexpr const KindLayout* layout_of(Kind kind) {
  using layout_detail::table;
  switch (kind) {
    case Kind::none:
    case Kind::stack: return nullptr;
    case Kind::call: return &table.call;
    case Kind::launch: return &table.launch;
    case Kind::copy: return &table.copy;
    case Kind::set: return &table.set;
    case Kind::alloc:
    case Kind::dealloc: return &table.memory;
    case Kind::sync:
    case Kind::event:
    case Kind::stream: return &table.sync;
    case Kind::collective: return &table.collective;
    case Kind::nvtx_range:
    case Kind::nvtx_mark: return &table.nvtx;
    case Kind::op:
    case Kind::annotation:
    case Kind::module: return &table.framework;
    case Kind::tensor: return &table.tensor;
    case Kind::sample: return &table.sample;
    case Kind::heap: return &table.heap;
    case Kind::gpu_graph:
    case Kind::gpu_kernel: return &table.gpu_kernel;
    case Kind::gpu_copy:
    case Kind::gpu_set: return &table.gpu_copy;
    case Kind::gpu_sync:
    case Kind::gpu_event: return &table.gpu_sync;
    case Kind::gpu_memory: return &table.gpu_memory;
    case Kind::overhead: return &table.overhead;
    default: return nullptr;  // of outside traces only
  }
}

// The column entries of a record; those its kind does not have are 0.
struct ColumnValues {
  uint64_t bytes = 0, address = 0, address2 = 0, value = 0;
};

inline ColumnValues column_values(const Record& r, uint32_t clock_shift) {
  ColumnValues out;
  switch (r.kind) {
    case Kind::none:
    case Kind::stack:
    case Kind::launch: break;
    case Kind::call: out.address = r.call.handle; break;
    case Kind::copy: out = {r.copy.bytes, r.copy.destination, r.copy.source, 0}; break;
    case Kind::set: out = {r.set.bytes, r.set.address, 0, 0}; break;
    case Kind::alloc:
    case Kind::dealloc: out = {r.memory.bytes, r.memory.address, 0, 0}; break;
    case Kind::sync:
    case Kind::event:
    case Kind::stream: out.address2 = r.sync.event; break;
    case Kind::collective: out = {r.collective.count, 0, 0, r.collective.sequence}; break;
    case Kind::nvtx_range:
    case Kind::nvtx_mark: out = {0, r.nvtx.range_id, 0, r.nvtx.payload}; break;
    case Kind::op:
    case Kind::annotation:
    case Kind::module: out.address = r.framework.sequence; break;
    case Kind::tensor:
      out = {r.tensor.bytes, r.tensor.address, r.tensor.allocated, r.tensor.kept};
      break;
    case Kind::heap: out = {r.heap.bytes, r.heap.address, 0, 0}; break;
    case Kind::gpu_graph:
    case Kind::gpu_kernel: out.value = r.gpu_kernel.graph_node; break;
    case Kind::gpu_copy:
    case Kind::gpu_set: out = {r.gpu_copy.bytes, 0, 0, r.gpu_copy.graph_node}; break;
    case Kind::gpu_sync:
    case Kind::gpu_event:
      out = {0, r.gpu_sync.event_sync_id, r.gpu_sync.device_time >> clock_shift,
             r.gpu_sync.event_id};
      break;
    case Kind::gpu_memory: out = {r.gpu_memory.bytes, r.gpu_memory.address, 0, 0}; break;
    case Kind::overhead: out.address = r.overhead.object; break;
    default: break;
  }
  return out;
}

// The masks above name words; these are the facts about Record that they rest on.
static_assert(offsetof(Record, words) == 24);
static_assert(offsetof(Record, copy.direction) == 24 + 32 &&
              offsetof(Record, copy.name) == 24 + 36);
static_assert(offsetof(Record, set.value) == 24 + 24 && offsetof(Record, set.reserved) == 24 + 30 &&
              offsetof(Record, set.name) == 24 + 32);
static_assert(offsetof(Record, memory.pool) == 24 + 24 &&
              offsetof(Record, memory.reserved) == 24 + 34);
static_assert(offsetof(Record, sync.event) == 24 + 8 && offsetof(Record, sync.name) == 24 + 24);
static_assert(offsetof(Record, collective.sequence) == 24 + 24 &&
              offsetof(Record, collective.count) == 24 + 8);
static_assert(offsetof(Record, nvtx.payload) == 24 + 16 && offsetof(Record, nvtx.depth) == 24 + 32);
static_assert(offsetof(Record, framework.sequence) == 24 + 16 &&
              offsetof(Record, tensor.device_type) == 24 + 32);
static_assert(offsetof(Record, heap.interval) == 24 + 16 &&
              offsetof(Record, heap.released) == 24 + 28);
static_assert(offsetof(Record, gpu_kernel.stream) == 24 + 8 &&
              offsetof(Record, gpu_kernel.graph_node) == 24 + 16);
static_assert(offsetof(Record, gpu_copy.stream) == 24 + 8 &&
              offsetof(Record, gpu_copy.graph_node) == 24 + 24);
static_assert(offsetof(Record, gpu_sync.context) == 24 + 10 &&
              offsetof(Record, gpu_sync.event_sync_id) == 24 + 16);
static_assert(offsetof(Record, gpu_memory.device) == 24 + 24 &&
              offsetof(Record, gpu_memory.pool) == 24 + 32);
static_assert(offsetof(Record, overhead.object) == 24 + 8);

}  // namespace gpuprof
