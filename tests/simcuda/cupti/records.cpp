// SPDX-License-Identifier: Apache-2.0
// What happened in the simulator, as CUPTI 13.0's records.
#include "tests/simcuda/cupti/records.h"

#include <pthread.h>
#include <unistd.h>

#include "tests/simcuda/core/clock.h"
#include "tests/simcuda/cupti/session.h"

namespace gpuprof::simcuda {
namespace {

// A hardware queue per kind of work; the numbers only need to be stable.
constexpr uint32_t kComputeChannel = 8;
constexpr uint32_t kCopyChannel = 16;

template <typename Record>
PendingRecord timed(const Record& record) {
  return PendingRecord::of(record, record.end)
      .with_time_at(offsetof(Record, start))
      .with_time_at(offsetof(Record, end));
}

PendingRecord kernel_record(const GpuOpInfo& op) {
  CUpti_ActivityKernel10 r{};
  r.kind = CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL;
  r.registersPerThread = 32;
  r.start = op.begin;
  r.end = op.end;
  r.completed = op.end;
  r.deviceId = static_cast<uint32_t>(op.device);
  r.contextId = op.context_id;
  r.streamId = op.stream_id;
  r.gridX = static_cast<int32_t>(op.grid[0]);
  r.gridY = static_cast<int32_t>(op.grid[1]);
  r.gridZ = static_cast<int32_t>(op.grid[2]);
  r.blockX = static_cast<int32_t>(op.block[0]);
  r.blockY = static_cast<int32_t>(op.block[1]);
  r.blockZ = static_cast<int32_t>(op.block[2]);
  r.dynamicSharedMemory = static_cast<int32_t>(op.dynamic_shmem);
  r.sharedMemoryExecuted = op.dynamic_shmem;
  r.correlationId = op.correlation;
  r.gridId = op.correlation;
  r.name = op.name;
  r.launchType = op.cooperative ? CUPTI_ACTIVITY_LAUNCH_TYPE_COOPERATIVE_SINGLE_DEVICE
                                : CUPTI_ACTIVITY_LAUNCH_TYPE_REGULAR;
  r.graphNodeId = op.graph_node_id;
  r.graphId = op.graph_id;
  r.channelID = kComputeChannel;
  r.channelType = CUPTI_CHANNEL_TYPE_COMPUTE;
  r.clusterX = op.cluster[0];
  r.clusterY = op.cluster[1];
  r.clusterZ = op.cluster[2];
  static std::atomic<uint64_t> kernels{0}, last_start{0}, last_end{0};
  const uint64_t number = kernels.fetch_add(1) + 1;
  const auto due = [number](uint64_t every) { return every != 0 && number % every == 0; };
  if (due(switches().zero_timestamps_every)) {
    r.start = r.end = r.completed = 0;
    return PendingRecord::of(r, op.end);
  }
  if (due(switches().reversed_timestamps_every)) {
    r.start = op.end;
    r.end = op.begin;
  }
  if (due(switches().duplicate_timestamps_every) && last_start != 0) {
    r.start = last_start;
    r.end = last_end;
  }
  last_start = r.start;
  last_end = r.end;
  return timed(r).with_time_at(offsetof(CUpti_ActivityKernel10, completed));
}

template <typename Record>
void fill_copy(Record& r, const GpuOpInfo& op) {
  r.copyKind = static_cast<uint8_t>(op.copy_kind);
  r.srcKind = static_cast<uint8_t>(op.src_kind);
  r.dstKind = static_cast<uint8_t>(op.dst_kind);
  r.flags = op.async ? CUPTI_ACTIVITY_FLAG_MEMCPY_ASYNC : CUPTI_ACTIVITY_FLAG_NONE;
  r.bytes = op.bytes;
  r.start = op.begin;
  r.end = op.end;
  r.deviceId = static_cast<uint32_t>(op.device);
  r.contextId = op.context_id;
  r.streamId = op.stream_id;
  r.correlationId = op.correlation;
  r.graphNodeId = op.graph_node_id;
  r.graphId = op.graph_id;
  r.channelID = kCopyChannel;
  r.channelType = CUPTI_CHANNEL_TYPE_ASYNC_MEMCPY;
}

PendingRecord copy_record(const GpuOpInfo& op) {
  CUpti_ActivityMemcpy6 r{};
  r.kind = CUPTI_ACTIVITY_KIND_MEMCPY;
  fill_copy(r, op);
  r.runtimeCorrelationId = op.correlation;
  r.copyCount = op.copy_count;
  return timed(r);
}

PendingRecord peer_copy_record(const GpuOpInfo& op) {
  CUpti_ActivityMemcpyPtoP4 r{};
  r.kind = CUPTI_ACTIVITY_KIND_MEMCPY2;
  fill_copy(r, op);
  r.srcDeviceId = static_cast<uint32_t>(op.src_device);
  r.srcContextId = r.srcDeviceId + 1;
  r.dstDeviceId = static_cast<uint32_t>(op.dst_device);
  r.dstContextId = r.dstDeviceId + 1;
  return timed(r);
}

PendingRecord memset_record(const GpuOpInfo& op) {
  CUpti_ActivityMemset4 r{};
  r.kind = CUPTI_ACTIVITY_KIND_MEMSET;
  r.value = op.memset_value;
  r.bytes = op.bytes;
  r.start = op.begin;
  r.end = op.end;
  r.deviceId = static_cast<uint32_t>(op.device);
  r.contextId = op.context_id;
  r.streamId = op.stream_id;
  r.correlationId = op.correlation;
  r.flags = op.async ? CUPTI_ACTIVITY_FLAG_MEMSET_ASYNC : CUPTI_ACTIVITY_FLAG_NONE;
  r.memoryKind = static_cast<uint16_t>(op.dst_kind);
  r.graphNodeId = op.graph_node_id;
  r.graphId = op.graph_id;
  r.channelID = kComputeChannel;
  r.channelType = CUPTI_CHANNEL_TYPE_COMPUTE;
  return timed(r);
}

PendingRecord graph_record(const GpuOpInfo& op) {
  CUpti_ActivityGraphTrace2 r{};
  r.kind = CUPTI_ACTIVITY_KIND_GRAPH_TRACE;
  r.correlationId = op.correlation;
  r.start = op.begin;
  r.end = op.end;
  r.deviceId = op.begins_on_host ? INT_MAX : static_cast<uint32_t>(op.device);
  r.endDeviceId = op.ends_on_host ? INT_MAX : static_cast<uint32_t>(op.device);
  r.graphId = op.graph_id;
  r.contextId = op.begins_on_host ? INT_MAX : op.context_id;
  r.endContextId = op.ends_on_host ? INT_MAX : op.context_id;
  r.streamId = op.stream_id;
  return timed(r);
}

}  // namespace

PendingRecord make_record(const GpuOpInfo& op) {
  if (op.recorded_as_kernel) {
    GpuOpInfo kernel = op;
    kernel.name = op.kind == GpuOpKind::kMemset ? "[memset]" : "[memcpy]";
    return kernel_record(kernel);
  }
  if (op.kind == GpuOpKind::kKernel) return kernel_record(op);
  if (op.kind == GpuOpKind::kMemset) return memset_record(op);
  if (op.kind == GpuOpKind::kGraph) return graph_record(op);
  return op.copy_kind == CopyKind::kPtoP ? peer_copy_record(op) : copy_record(op);
}

PendingRecord make_record(const SyncInfo& info) {
  CUpti_ActivitySynchronization2 r{};
  r.kind = CUPTI_ACTIVITY_KIND_SYNCHRONIZATION;
  r.type = static_cast<CUpti_ActivitySynchronizationType>(info.kind);
  r.start = info.begin;
  r.end = info.end;
  r.correlationId = info.correlation;
  r.contextId = info.context_id;
  r.streamId = info.kind == SyncKind::kContext
                   ? static_cast<uint32_t>(CUPTI_SYNCHRONIZATION_INVALID_VALUE)
                   : info.stream_id;
  const bool has_event = info.kind == SyncKind::kEvent || info.kind == SyncKind::kStreamWaitEvent;
  r.cudaEventId =
      has_event ? info.event_id : static_cast<uint32_t>(CUPTI_SYNCHRONIZATION_INVALID_VALUE);
  r.cudaEventSyncId = info.event_sync_id;
  return timed(r);
}

PendingRecord make_record(const EventRecordInfo& info) {
  CUpti_ActivityCudaEvent2 r{};
  r.kind = CUPTI_ACTIVITY_KIND_CUDA_EVENT;
  r.correlationId = info.correlation;
  r.contextId = info.context_id;
  r.streamId = info.stream_id;
  r.eventId = info.event_id;
  r.deviceId = static_cast<uint32_t>(info.device);
  r.deviceTimestamp = info.time;
  r.cudaEventSyncId = info.event_sync_id;
  return PendingRecord::of(r, info.time)
      .with_time_at(offsetof(CUpti_ActivityCudaEvent2, deviceTimestamp));
}

PendingRecord make_record(const MemoryInfo& info) {
  CUpti_ActivityMemory4 r{};
  r.kind = CUPTI_ACTIVITY_KIND_MEMORY2;
  r.memoryOperationType = info.allocation ? CUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_ALLOCATION
                                          : CUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_RELEASE;
  r.memoryKind = static_cast<CUpti_ActivityMemoryKind>(info.kind);
  r.correlationId = info.correlation;
  r.address = info.address;
  r.bytes = info.bytes;
  r.timestamp = info.time;
  r.processId = static_cast<uint32_t>(::getpid());
  r.deviceId = static_cast<uint32_t>(info.device);
  r.contextId = info.context_id;
  r.streamId = info.async ? info.stream_id : static_cast<uint32_t>(CUPTI_INVALID_STREAM_ID);
  r.isAsync = info.async ? 1 : 0;
  if (info.pool_address != 0) {
    r.memoryPoolConfig.memoryPoolType = CUPTI_ACTIVITY_MEMORY_POOL_TYPE_LOCAL;
    r.memoryPoolConfig.address = info.pool_address;
    r.memoryPoolConfig.pool.size = info.pool_used;
    r.memoryPoolConfig.utilizedSize = info.pool_used;
  }
  return PendingRecord::of(r, info.time).with_time_at(offsetof(CUpti_ActivityMemory4, timestamp));
}

PendingRecord make_record(const StreamInfo& info) {
  CUpti_ActivityStream r{};
  r.kind = CUPTI_ACTIVITY_KIND_STREAM;
  r.contextId = info.context_id;
  r.streamId = info.stream_id;
  r.priority = info.priority;
  r.flag = info.null_stream    ? CUPTI_ACTIVITY_STREAM_CREATE_FLAG_NULL
           : info.non_blocking ? CUPTI_ACTIVITY_STREAM_CREATE_FLAG_NON_BLOCKING
                               : CUPTI_ACTIVITY_STREAM_CREATE_FLAG_DEFAULT;
  r.correlationId = info.correlation;
  return PendingRecord::of(r, 0);
}

PendingRecord make_context_record(int device, uint32_t context_id, uint32_t multiprocessors) {
  CUpti_ActivityContext3 r{};
  r.kind = CUPTI_ACTIVITY_KIND_CONTEXT;
  r.contextId = context_id;
  r.deviceId = static_cast<uint32_t>(device);
  r.computeApiKind = CUPTI_ACTIVITY_COMPUTE_API_CUDA;
  r.nullStreamId = 7;
  r.numMultiprocessors = static_cast<uint16_t>(multiprocessors);
  return PendingRecord::of(r, 0);
}

PendingRecord make_device_record(int device, const DeviceModel& model) {
  CUpti_ActivityDevice5 r{};
  r.kind = CUPTI_ACTIVITY_KIND_DEVICE;
  r.flags = CUPTI_ACTIVITY_FLAG_DEVICE_CONCURRENT_KERNELS;
  r.globalMemoryBandwidth = 2'000'000'000;  // KB/s
  r.globalMemorySize = model.memory_bytes;
  r.constantMemorySize = 65536;
  r.l2CacheSize = 50u << 20;
  r.numThreadsPerWarp = 32;
  r.coreClockRate = model.clock_khz;
  r.numMemcpyEngines = 2;
  r.numMultiprocessors = model.multiprocessors;
  r.maxWarpsPerMultiprocessor = 64;
  r.maxBlocksPerMultiprocessor = 32;
  r.maxSharedMemoryPerMultiprocessor = 228 * 1024;
  r.maxRegistersPerMultiprocessor = r.maxRegistersPerBlock = 65536;
  r.maxSharedMemoryPerBlock = 48 * 1024;
  r.maxThreadsPerBlock = r.maxBlockDimX = r.maxBlockDimY = 1024;
  r.maxBlockDimZ = 64;
  r.maxGridDimX = 2147483647;
  r.maxGridDimY = r.maxGridDimZ = 65535;
  r.computeCapabilityMajor = 9;
  r.id = static_cast<uint32_t>(device);
  r.name = model.name;
  r.isCudaVisible = 1;
  return PendingRecord::of(r, 0);
}

PendingRecord make_api_record(const ApiEvent& event, uint32_t thread_id) {
  CUpti_ActivityAPI r{};
  r.kind = event.driver ? CUPTI_ACTIVITY_KIND_DRIVER : CUPTI_ACTIVITY_KIND_RUNTIME;
  r.cbid = event.cbid;
  r.start = event.begin;
  r.end = event.end;
  r.processId = static_cast<uint32_t>(::getpid());
  r.threadId = thread_id;
  r.correlationId = event.correlation;
  r.returnValue = event.return_code;
  return timed(r);
}

PendingRecord make_bad_record(CUpti_ActivityKind kind, uint64_t ready) {
  CUpti_ActivityExternalCorrelation r{};
  r.kind = kind;
  r.externalId = ~0ull;
  return PendingRecord::of(r, ready);
}

PendingRecord make_external_record(CUpti_ExternalCorrelationKind kind, uint64_t id,
                                   uint32_t correlation) {
  CUpti_ActivityExternalCorrelation r{};
  r.kind = CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION;
  r.externalKind = kind;
  r.externalId = id;
  r.correlationId = correlation;
  return PendingRecord::of(r, 0);
}

}  // namespace gpuprof::simcuda
