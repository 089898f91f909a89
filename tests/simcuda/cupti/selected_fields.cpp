// SPDX-License-Identifier: Apache-2.0
#include "tests/simcuda/cupti/selected_fields.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <span>

namespace gpuprof::simcuda {
namespace {

// Where a field lies in the record with all fields of CUPTI 13.3, by its id.
struct Field {
  uint16_t offset;
  uint16_t bytes;
};
constexpr uint16_t kNone = 0xffff;  // not simulated: 0

#define SIM_FIELD(record, member)                                     \
  {                                                                   \
    offsetof(CUpti_Activity##record, member),                         \
        sizeof(static_cast<CUpti_Activity##record*>(nullptr)->member) \
  }
// CUpti_ActivityKernelFieldIds
constexpr Field kKernel[] = {SIM_FIELD(Kernel10, kind),
                             {kNone, 1},
                             {kNone, 1},
                             SIM_FIELD(Kernel10, sharedMemoryConfig),
                             SIM_FIELD(Kernel10, registersPerThread),
                             SIM_FIELD(Kernel10, partitionedGlobalCacheRequested),
                             SIM_FIELD(Kernel10, partitionedGlobalCacheExecuted),
                             SIM_FIELD(Kernel10, start),
                             SIM_FIELD(Kernel10, end),
                             SIM_FIELD(Kernel10, completed),
                             SIM_FIELD(Kernel10, deviceId),
                             SIM_FIELD(Kernel10, contextId),
                             SIM_FIELD(Kernel10, streamId),
                             SIM_FIELD(Kernel10, gridX),
                             SIM_FIELD(Kernel10, gridY),
                             SIM_FIELD(Kernel10, gridZ),
                             SIM_FIELD(Kernel10, blockX),
                             SIM_FIELD(Kernel10, blockY),
                             SIM_FIELD(Kernel10, blockZ),
                             SIM_FIELD(Kernel10, staticSharedMemory),
                             SIM_FIELD(Kernel10, dynamicSharedMemory),
                             SIM_FIELD(Kernel10, localMemoryPerThread),
                             SIM_FIELD(Kernel10, correlationId),
                             SIM_FIELD(Kernel10, gridId),
                             SIM_FIELD(Kernel10, name),
                             SIM_FIELD(Kernel10, queued),
                             SIM_FIELD(Kernel10, submitted),
                             SIM_FIELD(Kernel10, launchType),
                             SIM_FIELD(Kernel10, isSharedMemoryCarveoutRequested),
                             SIM_FIELD(Kernel10, sharedMemoryCarveoutRequested),
                             SIM_FIELD(Kernel10, sharedMemoryExecuted),
                             SIM_FIELD(Kernel10, graphNodeId),
                             SIM_FIELD(Kernel10, shmemLimitConfig),
                             SIM_FIELD(Kernel10, graphId),
                             {kNone, 32},
                             SIM_FIELD(Kernel10, channelID),
                             SIM_FIELD(Kernel10, channelType),
                             SIM_FIELD(Kernel10, clusterX),
                             SIM_FIELD(Kernel10, clusterY),
                             SIM_FIELD(Kernel10, clusterZ),
                             SIM_FIELD(Kernel10, clusterSchedulingPolicy),
                             SIM_FIELD(Kernel10, localMemoryTotal_v2),
                             SIM_FIELD(Kernel10, maxPotentialClusterSize),
                             SIM_FIELD(Kernel10, maxActiveClusters),
                             SIM_FIELD(Kernel10, isDeviceLaunched),
                             {216, 4},   // priority: of CUpti_ActivityKernel12
                             {224, 4}};  // executionModel
// CUpti_ActivityMemcpyFieldIds
constexpr Field kMemcpy[] = {SIM_FIELD(Memcpy6, kind),
                             SIM_FIELD(Memcpy6, copyKind),
                             SIM_FIELD(Memcpy6, srcKind),
                             SIM_FIELD(Memcpy6, dstKind),
                             SIM_FIELD(Memcpy6, flags),
                             SIM_FIELD(Memcpy6, bytes),
                             SIM_FIELD(Memcpy6, start),
                             SIM_FIELD(Memcpy6, end),
                             SIM_FIELD(Memcpy6, deviceId),
                             SIM_FIELD(Memcpy6, contextId),
                             SIM_FIELD(Memcpy6, streamId),
                             SIM_FIELD(Memcpy6, correlationId),
                             SIM_FIELD(Memcpy6, graphNodeId),
                             SIM_FIELD(Memcpy6, graphId),
                             SIM_FIELD(Memcpy6, channelID),
                             SIM_FIELD(Memcpy6, channelType),
                             SIM_FIELD(Memcpy6, isDeviceLaunched),
                             SIM_FIELD(Memcpy6, copyCount)};
// CUpti_ActivityMemcpy2FieldIds
constexpr Field kMemcpy2[] = {
    SIM_FIELD(MemcpyPtoP4, kind),         SIM_FIELD(MemcpyPtoP4, copyKind),
    SIM_FIELD(MemcpyPtoP4, srcKind),      SIM_FIELD(MemcpyPtoP4, dstKind),
    SIM_FIELD(MemcpyPtoP4, flags),        SIM_FIELD(MemcpyPtoP4, bytes),
    SIM_FIELD(MemcpyPtoP4, start),        SIM_FIELD(MemcpyPtoP4, end),
    SIM_FIELD(MemcpyPtoP4, deviceId),     SIM_FIELD(MemcpyPtoP4, contextId),
    SIM_FIELD(MemcpyPtoP4, streamId),     SIM_FIELD(MemcpyPtoP4, srcDeviceId),
    SIM_FIELD(MemcpyPtoP4, srcContextId), SIM_FIELD(MemcpyPtoP4, dstDeviceId),
    SIM_FIELD(MemcpyPtoP4, dstContextId), SIM_FIELD(MemcpyPtoP4, correlationId),
    SIM_FIELD(MemcpyPtoP4, graphNodeId),  SIM_FIELD(MemcpyPtoP4, graphId),
    SIM_FIELD(MemcpyPtoP4, channelID),    SIM_FIELD(MemcpyPtoP4, channelType)};
// CUpti_ActivityMemsetFieldIds
constexpr Field kMemset[] = {
    SIM_FIELD(Memset4, kind),          SIM_FIELD(Memset4, value),
    SIM_FIELD(Memset4, bytes),         SIM_FIELD(Memset4, start),
    SIM_FIELD(Memset4, end),           SIM_FIELD(Memset4, deviceId),
    SIM_FIELD(Memset4, contextId),     SIM_FIELD(Memset4, streamId),
    SIM_FIELD(Memset4, correlationId), SIM_FIELD(Memset4, flags),
    SIM_FIELD(Memset4, memoryKind),    SIM_FIELD(Memset4, graphNodeId),
    SIM_FIELD(Memset4, graphId),       SIM_FIELD(Memset4, channelID),
    SIM_FIELD(Memset4, channelType),   SIM_FIELD(Memset4, isDeviceLaunched)};
// CUpti_ActivityApiFieldIds
constexpr Field kApi[] = {SIM_FIELD(API, kind),          SIM_FIELD(API, cbid),
                          SIM_FIELD(API, start),         SIM_FIELD(API, end),
                          SIM_FIELD(API, processId),     SIM_FIELD(API, threadId),
                          SIM_FIELD(API, correlationId), SIM_FIELD(API, returnValue)};
// CUpti_ActivityExternalCorrelationFieldIds
constexpr Field kExternal[] = {
    SIM_FIELD(ExternalCorrelation, kind), SIM_FIELD(ExternalCorrelation, externalKind),
    SIM_FIELD(ExternalCorrelation, externalId), SIM_FIELD(ExternalCorrelation, correlationId)};
// CUpti_ActivityOverheadFieldIds
constexpr Field kOverhead[] = {SIM_FIELD(Overhead3, kind),
                               SIM_FIELD(Overhead3, overheadKind),
                               SIM_FIELD(Overhead3, objectId.pt.processId),
                               SIM_FIELD(Overhead3, objectId.pt.threadId),
                               SIM_FIELD(Overhead3, start),
                               SIM_FIELD(Overhead3, end),
                               SIM_FIELD(Overhead3, correlationId),
                               SIM_FIELD(Overhead3, overheadData)};
// CUpti_ActivityCudaEventFieldIds
constexpr Field kEvent[] = {SIM_FIELD(CudaEvent2, kind),
                            SIM_FIELD(CudaEvent2, correlationId),
                            SIM_FIELD(CudaEvent2, contextId),
                            SIM_FIELD(CudaEvent2, streamId),
                            SIM_FIELD(CudaEvent2, eventId),
                            SIM_FIELD(CudaEvent2, deviceId),
                            SIM_FIELD(CudaEvent2, deviceTimestamp),
                            SIM_FIELD(CudaEvent2, cudaEventSyncId)};
// CUpti_ActivitySynchronizationFieldIds
constexpr Field kSync[] = {SIM_FIELD(Synchronization2, kind),
                           SIM_FIELD(Synchronization2, type),
                           SIM_FIELD(Synchronization2, start),
                           SIM_FIELD(Synchronization2, end),
                           SIM_FIELD(Synchronization2, correlationId),
                           SIM_FIELD(Synchronization2, contextId),
                           SIM_FIELD(Synchronization2, streamId),
                           SIM_FIELD(Synchronization2, cudaEventId),
                           SIM_FIELD(Synchronization2, cudaEventSyncId),
                           SIM_FIELD(Synchronization2, returnValue)};
#undef SIM_FIELD
// CUpti_ActivityGraphHostNodeFieldIds: no such record is made
constexpr Field kGraphHostNode[] = {{0, 4},     {kNone, 4}, {kNone, 4}, {kNone, 4},
                                    {kNone, 8}, {kNone, 4}, {kNone, 8}, {kNone, 4},
                                    {kNone, 8}, {kNone, 8}, {kNone, 8}};
constexpr int kGraphHostNodeKind = 56;

std::span<const Field> fields_of(CUpti_ActivityKind kind) {
  if (kind == kGraphHostNodeKind) return kGraphHostNode;
  switch (kind) {
    case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL: return kKernel;
    case CUPTI_ACTIVITY_KIND_MEMCPY: return kMemcpy;
    case CUPTI_ACTIVITY_KIND_MEMCPY2: return kMemcpy2;
    case CUPTI_ACTIVITY_KIND_MEMSET: return kMemset;
    case CUPTI_ACTIVITY_KIND_RUNTIME:
    case CUPTI_ACTIVITY_KIND_DRIVER: return kApi;
    case CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION: return kExternal;
    case CUPTI_ACTIVITY_KIND_OVERHEAD: return kOverhead;
    case CUPTI_ACTIVITY_KIND_CUDA_EVENT: return kEvent;
    case CUPTI_ACTIVITY_KIND_SYNCHRONIZATION: return kSync;
    default: return {};
  }
}

size_t aligned(size_t offset, size_t alignment) {
  return (offset + alignment - 1) / alignment * alignment;
}

}  // namespace

bool SelectedFields::select(CUpti_ActivityKind kind, const ActivityConfig& config) {
  const std::span<const Field> fields = fields_of(kind);
  const auto& wanted = config.fieldSelection;
  if (fields.empty() || wanted.numFields == 0 || wanted.pFieldIds[0] != 0) return false;
  auto selection = std::make_unique<Selection>();
  size_t end = 0;
  for (size_t i = 0; i < wanted.numFields; ++i) {
    const int id = wanted.pFieldIds[i];
    if (id < 0 || static_cast<size_t>(id) >= fields.size()) return false;
    const Field& field = fields[static_cast<size_t>(id)];
    const size_t alignment = std::min<size_t>(field.bytes, 8);
    const size_t offset = aligned(end, alignment);
    selection->entries.push_back({sizeof(FieldLayoutEntry), id, offset, field.bytes, alignment});
    selection->from.push_back(field.offset);
    end = offset + field.bytes;
  }
  selection->layout = {sizeof(RecordLayout), selection->entries.data(), selection->entries.size(),
                       aligned(end, 8)};
  by_kind_[kind].store(selection.release(), std::memory_order_release);
  return true;
}

const SelectedFields::Selection* SelectedFields::selection(CUpti_ActivityKind kind) const {
  const auto place = static_cast<size_t>(kind);
  return place < by_kind_.size() ? by_kind_[place].load(std::memory_order_acquire) : nullptr;
}

size_t SelectedFields::record_size(CUpti_ActivityKind kind) const {
  const Selection* const found = selection(kind);
  return found == nullptr ? 0 : found->layout.recordSize;
}

void SelectedFields::pack(CUpti_ActivityKind kind, const unsigned char* all,
                          unsigned char* out) const {
  const Selection& chosen = *selection(kind);
  std::memset(out, 0, chosen.layout.recordSize);
  for (size_t i = 0; i < chosen.entries.size(); ++i) {
    const FieldLayoutEntry& entry = chosen.entries[i];
    if (chosen.from[i] != kNone) {
      std::memcpy(out + entry.offset, all + chosen.from[i], entry.size);
    }
  }
}

std::vector<RecordLayout*> SelectedFields::layouts() const {
  std::vector<RecordLayout*> found;
  for (const auto& slot : by_kind_) {
    Selection* const chosen = slot.load(std::memory_order_acquire);
    found.push_back(chosen == nullptr ? nullptr : &chosen->layout);
  }
  return found;
}

}  // namespace gpuprof::simcuda
