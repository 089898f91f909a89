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
  KindLayout nvtx{kAddress | kValue, {kAll, kAll, 0, 0, kAll}};
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
  switch (kind) {
#define GPUPROF_LAYOUT(name, number, payload) \
  case Kind::name:                            \
    return &layout_detail::table.payload;
#define GPUPROF_NO_LAYOUT(name, number, ...) case Kind::name:
    GPUPROF_KINDS(GPUPROF_LAYOUT, GPUPROF_NO_LAYOUT, GPUPROF_NO_LAYOUT)
#undef GPUPROF_NO_LAYOUT
#undef GPUPROF_LAYOUT
    case Kind::none: break;
  }
  return nullptr;
}

// The column entries of a record; those its kind does not have are 0.
struct ColumnValues {
  uint64_t bytes = 0, address = 0, address2 = 0, value = 0;
};

namespace layout_detail {
// An overload for each payload.
struct ColumnsOf {
  uint32_t clock_shift;
  ColumnValues operator()(const NoPayload&) const { return {}; }
  ColumnValues operator()(const CallPayload& p) const { return {0, p.handle, 0, 0}; }
  ColumnValues operator()(const LaunchPayload&) const { return {}; }
  ColumnValues operator()(const CopyPayload& p) const {
    return {p.bytes, p.destination, p.source, 0};
  }
  ColumnValues operator()(const SetPayload& p) const { return {p.bytes, p.address, 0, 0}; }
  ColumnValues operator()(const MemoryPayload& p) const { return {p.bytes, p.address, 0, 0}; }
  ColumnValues operator()(const SyncPayload& p) const { return {0, 0, p.event, 0}; }
  ColumnValues operator()(const CollectivePayload& p) const { return {p.count, 0, 0, p.sequence}; }
  ColumnValues operator()(const NvtxPayload& p) const { return {0, p.range_id, 0, p.payload}; }
  ColumnValues operator()(const FrameworkPayload& p) const { return {0, p.sequence, 0, 0}; }
  ColumnValues operator()(const TensorPayload& p) const {
    return {p.bytes, p.address, p.allocated, p.kept};
  }
  ColumnValues operator()(const StackPayload&) const { return {}; }
  ColumnValues operator()(const SamplePayload&) const { return {}; }
  ColumnValues operator()(const HeapPayload& p) const { return {p.bytes, p.address, 0, 0}; }
  ColumnValues operator()(const GpuKernelPayload& p) const { return {0, 0, 0, p.graph_node}; }
  ColumnValues operator()(const GpuCopyPayload& p) const { return {p.bytes, 0, 0, p.graph_node}; }
  ColumnValues operator()(const GpuSyncPayload& p) const {
    return {0, p.event_sync_id, p.device_time >> clock_shift, p.event_id};
  }
  ColumnValues operator()(const GpuMemoryPayload& p) const { return {p.bytes, p.address, 0, 0}; }
  ColumnValues operator()(const OverheadPayload& p) const { return {0, p.object, 0, 0}; }
};
}  // namespace layout_detail

inline ColumnValues column_values(const Record& r, uint32_t clock_shift) {
  return with_payload(r, layout_detail::ColumnsOf{clock_shift});
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
static_assert(offsetof(Record, nvtx.payload) == 24 + 16 &&
              offsetof(Record, nvtx.range_id) == 24 + 24 && sizeof(NvtxPayload) == 40);
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
