// SPDX-License-Identifier: Apache-2.0
#include "collector/cupti/cupti_records.h"

#include <atomic>
#include <climits>
#include <cstring>
#include <iterator>

#include "collector/base/host.h"
#include "collector/record/recorder.h"
#include "collector/record/session.h"
#include "formats/core/names.h"

namespace gpuprof {
namespace {

// cuptiGetVersion values that brought fields we read: 11.6 channels, 11.8 clusters, 12.3 where a
// graph ends, 12.8 event times.
constexpr uint32_t kHasChannels = 17, kHasClusters = 18, kHasGraphEnd = 21, kHasEventSyncIds = 26;

constexpr uint64_t kSlackTicks = 1000000;  // some hundred us

std::atomic<uint64_t> g_overhead_ticks{0};

// Synchronization records name a context only; callbacks and the other kinds tell which device it
// is on. Each place: context << 32 | device + 1, of the last of the contexts that share it.
std::atomic<uint64_t> g_device_of_context[1024];
std::atomic<uint32_t> g_only_device{0};  // of all contexts so far, + 1; 0: none was seen
constexpr uint32_t kSeveralDevices = ~0u;

// Of launches of graphs, by correlation id: correlation << 32 | context.
std::atomic<uint64_t> g_graph_contexts[4096];

std::atomic<uint64_t>& place_of(uint32_t context) {
  return g_device_of_context[context % std::size(g_device_of_context)];
}

uint16_t device_of(uint32_t context) {
  const uint64_t value = place_of(context).load(std::memory_order_relaxed);
  const uint32_t only = g_only_device.load(std::memory_order_relaxed);
  const bool known = value != 0 && value >> 32 == context;
  if (known) return static_cast<uint16_t>(static_cast<uint32_t>(value) - 1);
  return only == 0 || only == kSeveralDevices ? kDeviceNotTold : static_cast<uint16_t>(only - 1);
}

// 0: not known.
uint32_t context_of_graph_launch(uint32_t correlation) {
  const uint64_t value =
      g_graph_contexts[correlation % std::size(g_graph_contexts)].load(std::memory_order_relaxed);
  return correlation != 0 && value >> 32 == correlation ? static_cast<uint32_t>(value) : 0;
}

uint64_t to_ticks(const CuptiRecordContext& context, uint64_t time) {
  return time == 0 ? 0 : context.clock.to_ticks(time);
}

// What is recorded ended after the attach, began after the process did, as what ran at the attach,
// and is over; give or take what the conversion is off. A time of another clock is not.
bool is_possible(const CuptiRecordContext& context, uint64_t begin, uint64_t end) {
  const uint64_t since = g_host.process_start_ticks;
  const uint64_t slack = context.clock.error_ticks() +
                         (context.now_ticks - context.attach_ticks) / 10000 + kSlackTicks;
  return begin + slack >= since && end + slack >= context.attach_ticks &&
         end <= context.now_ticks + slack;
}

// A record with its common part filled in; null when the ring has no room (counted).
Record* open_record(const CuptiRecordContext& context, Kind kind, uint32_t correlation,
                    uint64_t start, uint64_t end) {
  Record* const record = reserve_record();
  if (!record) return nullptr;
  begin_record(record, kind, to_ticks(context, start), to_ticks(context, end), 0, correlation);
  std::memset(record->words, 0, sizeof record->words);
  if (start == 0 || end < start || !is_possible(context, record->begin, record->end)) {
    record->begin = record->end = 0;
    record->flags = kFlagNoTime;
  }
  return record;
}

void store_kernel(const CuptiRecordContext& context, const CUpti_ActivityKernel10& in) {
  Record* const record = open_record(context, Kind::gpu_kernel, in.correlationId, in.start, in.end);
  if (!record) return;
  LaunchShape shape{};
  shape.grid = {static_cast<uint32_t>(in.gridX), static_cast<uint32_t>(in.gridY),
                static_cast<uint32_t>(in.gridZ)};
  shape.block = {static_cast<uint32_t>(in.blockX), static_cast<uint32_t>(in.blockY),
                 static_cast<uint32_t>(in.blockZ)};
  shape.static_shared_bytes = static_cast<uint32_t>(in.staticSharedMemory);
  shape.dynamic_shared_bytes = static_cast<uint32_t>(in.dynamicSharedMemory);
  shape.registers_per_thread = in.registersPerThread;
  shape.local_bytes_per_thread = in.localMemoryPerThread;
  if (context.version >= kHasClusters) {
    shape.cluster_x = in.clusterX, shape.cluster_y = in.clusterY, shape.cluster_z = in.clusterZ;
  }
  auto& out = record->gpu_kernel;
  out.name = in.name ? intern_text(in.name) : 0;
  out.shape = intern_shape(shape);
  out.stream = in.streamId;
  out.device = static_cast<uint16_t>(in.deviceId);
  out.context = static_cast<uint16_t>(in.contextId);
  out.graph_node = in.graphNodeId;
  out.graph = in.graphId;
  if (context.version >= kHasChannels) {
    out.channel = static_cast<uint16_t>(in.channelID);
    out.channel_type = static_cast<uint16_t>(in.channelType);
  }
  note_device(in.contextId, in.deviceId);
  commit_record(record);
}

// Copies, peer copies and sets share these fields under the same names.
template <typename Activity>
void fill_transfer(Record& record, const Activity& in) {
  auto& out = record.gpu_copy;
  out.bytes = in.bytes;
  out.stream = in.streamId;
  out.device = static_cast<uint16_t>(in.deviceId);
  out.context = static_cast<uint16_t>(in.contextId);
  out.flags = static_cast<uint8_t>(in.flags);
  out.graph_node = in.graphNodeId;
  out.graph = in.graphId;
  out.peer_source = out.peer_destination = 0xffff;
  note_device(in.contextId, in.deviceId);
}

void store_copy(const CuptiRecordContext& context, const CUpti_ActivityMemcpy6& in) {
  Record* const record = open_record(context, Kind::gpu_copy, in.correlationId, in.start, in.end);
  if (!record) return;
  fill_transfer(*record, in);
  record->gpu_copy.direction = in.copyKind;
  record->gpu_copy.source_kind = in.srcKind;
  record->gpu_copy.destination_kind = in.dstKind;
  commit_record(record);
}

void store_peer_copy(const CuptiRecordContext& context, const CUpti_ActivityMemcpyPtoP4& in) {
  Record* const record = open_record(context, Kind::gpu_copy, in.correlationId, in.start, in.end);
  if (!record) return;
  fill_transfer(*record, in);
  record->gpu_copy.direction = in.copyKind;
  record->gpu_copy.source_kind = in.srcKind;
  record->gpu_copy.destination_kind = in.dstKind;
  record->gpu_copy.peer_source = static_cast<uint16_t>(in.srcDeviceId);
  record->gpu_copy.peer_destination = static_cast<uint16_t>(in.dstDeviceId);
  commit_record(record);
}

void store_set(const CuptiRecordContext& context, const CUpti_ActivityMemset4& in) {
  Record* const record = open_record(context, Kind::gpu_set, in.correlationId, in.start, in.end);
  if (!record) return;
  fill_transfer(*record, in);
  record->gpu_copy.value = in.value;
  record->gpu_copy.destination_kind = static_cast<uint8_t>(in.memoryKind);
  commit_record(record);
}

void store_synchronization(const CuptiRecordContext& context,
                           const CUpti_ActivitySynchronization2& in) {
  Record* const record = open_record(context, Kind::gpu_sync, in.correlationId, in.start, in.end);
  if (!record) return;
  auto& out = record->gpu_sync;
  out.type = in.type;
  out.stream = in.streamId;
  out.context = static_cast<uint16_t>(in.contextId);
  out.device = device_of(in.contextId);
  out.event_id = in.cudaEventId;
  if (context.version >= kHasEventSyncIds) out.event_sync_id = in.cudaEventSyncId;
  commit_record(record);
}

void store_event(const CuptiRecordContext& context, const CUpti_ActivityCudaEvent2& in) {
  Record* const record = reserve_record();
  if (!record) return;
  // Without device time stamps the record only says which event a cudaEventRecord call was about.
  const bool has_ids = context.version >= kHasEventSyncIds;
  uint64_t time = has_ids ? to_ticks(context, in.deviceTimestamp) : 0;
  if (time != 0 && !is_possible(context, time, time)) {
    time = 0;
    count_loss(Loss::bad_timestamp);
  }
  const uint8_t flags = time ? 0 : kFlagNoTime;
  begin_record(record, Kind::gpu_event, time, time, flags, in.correlationId);
  std::memset(record->words, 0, sizeof record->words);
  auto& out = record->gpu_sync;
  out.stream = in.streamId;
  out.context = static_cast<uint16_t>(in.contextId);
  out.device = has_ids ? static_cast<uint16_t>(in.deviceId) : device_of(in.contextId);
  out.event_id = in.eventId;
  out.event_sync_id = has_ids ? in.cudaEventSyncId : 0;
  out.device_time = time;
  commit_record(record);
}

void store_memory(const CuptiRecordContext& context, const CUpti_ActivityMemory4& in) {
  Record* const record =
      open_record(context, Kind::gpu_memory, in.correlationId, in.timestamp, in.timestamp);
  if (!record) return;
  auto& out = record->gpu_memory;
  out.address = in.address;
  out.bytes = in.bytes;
  out.operation = in.memoryOperationType;
  out.memory_kind = in.memoryKind;
  out.device = static_cast<uint16_t>(in.deviceId);
  out.context = static_cast<uint16_t>(in.contextId);
  out.stream = in.streamId;
  out.pool = in.memoryPoolConfig.address;
  commit_record(record);
}

void store_overhead(const CuptiRecordContext& context, const CUpti_ActivityOverhead3& in) {
  Record* const record = open_record(context, Kind::overhead, 0, in.start, in.end);
  if (!record) return;
  if (is_profiling_overhead(in.overheadKind)) {
    g_overhead_ticks.fetch_add(record->end - record->begin, std::memory_order_relaxed);
  }
  record->overhead.type = in.overheadKind;
  record->overhead.object_kind = in.objectKind;
  record->overhead.object = in.objectKind == CUPTI_ACTIVITY_OBJECT_THREAD
                                ? in.objectId.pt.threadId
                                : in.objectId.dcs.deviceId;
  commit_record(record);
}

// The launch of a whole graph; node records are not given beside it.
void store_graph(const CuptiRecordContext& context, const CUpti_ActivityGraphTrace2& in) {
  Record* const record = open_record(context, Kind::gpu_graph, in.correlationId, in.start, in.end);
  if (!record) return;
  auto& out = record->gpu_kernel;
  out.stream = in.streamId;
  out.graph = in.graphId;
  // Where the first node is a host function the record has no device: then that of the last, or
  // the launch's.
  const bool on_host = in.deviceId == INT_MAX;
  const bool has_end = on_host && context.version >= kHasGraphEnd && in.endDeviceId != INT_MAX;
  if (!on_host) {
    out.device = static_cast<uint16_t>(in.deviceId);
    out.context = static_cast<uint16_t>(in.contextId);
    note_device(in.contextId, in.deviceId);
  } else if (has_end) {
    out.device = static_cast<uint16_t>(in.endDeviceId);
    out.context = static_cast<uint16_t>(in.endContextId);
  } else {
    const uint32_t launched_in = context_of_graph_launch(in.correlationId);
    out.device = device_of(launched_in);
    out.context = static_cast<uint16_t>(launched_in);
  }
  commit_record(record);
}

template <typename Activity>
const Activity& as(const CUpti_Activity* activity) {
  return *reinterpret_cast<const Activity*>(activity);
}

}  // namespace

void store_activity(const CuptiRecordContext& context, const CUpti_Activity* activity) {
  switch (activity->kind) {
    case CUPTI_ACTIVITY_KIND_KERNEL:
    case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL:
      return store_kernel(context, as<CUpti_ActivityKernel10>(activity));
    case CUPTI_ACTIVITY_KIND_MEMCPY:
      return store_copy(context, as<CUpti_ActivityMemcpy6>(activity));
    case CUPTI_ACTIVITY_KIND_MEMCPY2:
      return store_peer_copy(context, as<CUpti_ActivityMemcpyPtoP4>(activity));
    case CUPTI_ACTIVITY_KIND_MEMSET: return store_set(context, as<CUpti_ActivityMemset4>(activity));
    case CUPTI_ACTIVITY_KIND_SYNCHRONIZATION:
      return store_synchronization(context, as<CUpti_ActivitySynchronization2>(activity));
    case CUPTI_ACTIVITY_KIND_CUDA_EVENT:
      return store_event(context, as<CUpti_ActivityCudaEvent2>(activity));
    case CUPTI_ACTIVITY_KIND_MEMORY2:
      return store_memory(context, as<CUpti_ActivityMemory4>(activity));
    case CUPTI_ACTIVITY_KIND_GRAPH_TRACE:
      return store_graph(context, as<CUpti_ActivityGraphTrace2>(activity));
    case CUPTI_ACTIVITY_KIND_OVERHEAD:
      return store_overhead(context, as<CUpti_ActivityOverhead3>(activity));
    // On for their correlation ids alone (cupti_ask_for_ids); hooks record calls.
    case CUPTI_ACTIVITY_KIND_RUNTIME:
    case CUPTI_ACTIVITY_KIND_DRIVER: return;
    default: count_loss(Loss::cupti_unknown);
  }
}

bool device_is_known(uint32_t context) {
  return place_of(context).load(std::memory_order_relaxed) >> 32 == context;
}

void note_device(uint32_t context, uint32_t device) {
  const uint64_t value = uint64_t{context} << 32 | (device + 1);
  std::atomic<uint64_t>& place = place_of(context);
  if (place.load(std::memory_order_relaxed) == value) return;
  place.store(value, std::memory_order_relaxed);
  uint32_t only = 0;
  if (device != kDeviceNotTold && !g_only_device.compare_exchange_strong(only, device + 1) &&
      only != device + 1) {
    g_only_device.store(kSeveralDevices);
  }
}

void note_graph_context(uint32_t correlation, uint32_t context) {
  g_graph_contexts[correlation % std::size(g_graph_contexts)].store(
      uint64_t{correlation} << 32 | context, std::memory_order_relaxed);
}

uint64_t stored_overhead_ticks() { return g_overhead_ticks.load(std::memory_order_relaxed); }
void reset_stored_overhead() { g_overhead_ticks.store(0, std::memory_order_relaxed); }

}  // namespace gpuprof
