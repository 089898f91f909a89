// SPDX-License-Identifier: Apache-2.0
#include <cupti.h>

#include "tests/simcuda/core/clock.h"
#include "tests/simcuda/cudart/entry_points.h"

namespace gpuprof::simcuda {
namespace {

constexpr unsigned kKnownFlags =
    cudaEventBlockingSync | cudaEventDisableTiming | cudaEventInterprocess;

cudaError_t create(ApiCall& call, cudaEvent_t* out, unsigned flags) {
  call.details.device = thread_state().device;
  if (out == nullptr || (flags & ~kKnownFlags) != 0) return cudaErrorInvalidValue;
  Core& core = Core::instance();
  const Core::Lock held = core.lock();
  core.device(thread_state().device);
  const auto event = core.create_event(flags, thread_state().device);
  call.details.event = event->id;
  *out = reinterpret_cast<cudaEvent_t>(event.get());
  return cudaSuccess;
}

cudaError_t record(const StreamApi& which, cudaEvent_t handle, cudaStream_t stream_handle,
                   unsigned flags = 0) {
  const cudaEventRecordWithFlags_v11010_params params{handle, stream_handle, flags};
  return run_api(which.api, &params, nullptr, [&](ApiCall& call) {
    Core& core = Core::instance();
    const Core::Lock held = core.lock();
    const auto event = core.event(handle);
    const auto stream = core.stream(stream_handle, which.per_thread);
    if (event == nullptr || stream == nullptr) return cudaErrorInvalidResourceHandle;
    if (const cudaError_t refused = core.refuse_use(*stream)) return refused;
    call.details.device = stream->device;
    call.details.stream = stream->id;
    call.details.event = event->id;
    event->sync_id = core.next_event_sync_id();
    event->stream_id = stream->id;
    if (stream->capture != nullptr && (flags & cudaEventRecordExternal) != 0) {
      Graph::Node node;
      node.type = NodeType::kEventRecord;
      node.event = event;
      core.add_node(*stream, std::move(node));
      return cudaSuccess;
    }
    event->capture = stream->capture;
    event->op = nullptr;
    if (stream->capture != nullptr) return cudaSuccess;
    event->op = core.record_event(*stream, *event, call.correlation());
    return cudaSuccess;
  });
}

cudaError_t synchronize(ApiCall& call, cudaEvent_t handle) {
  Core& core = Core::instance();
  Core::Lock held = core.lock();
  const auto event = core.event(handle);
  if (event == nullptr) return cudaErrorInvalidResourceHandle;
  call.details.event = event->id;
  call.details.device = event->device;
  if (const cudaError_t refused = Core::refuse_wait(*event)) return refused;
  SyncInfo info{SyncKind::kEvent,   event->device, core.device(event->device).context_id,
                event->stream_id,   event->id,     event->sync_id,
                call.correlation(), call.begin(),  0};
  core.block_on(std::move(held), {event->op});
  info.end = now_ns();
  core.report_sync(info);
  return cudaSuccess;
}

cudaError_t elapsed(float* ms, cudaEvent_t start_handle, cudaEvent_t end_handle) {
  Core& core = Core::instance();
  const Core::Lock held = core.lock();
  const auto start = core.event(start_handle);
  const auto end = core.event(end_handle);
  if (ms == nullptr) return cudaErrorInvalidValue;
  if (start == nullptr || end == nullptr) return cudaErrorInvalidResourceHandle;
  const bool timed = ((start->flags | end->flags) & cudaEventDisableTiming) == 0;
  if (!timed || start->op == nullptr || end->op == nullptr) return cudaErrorInvalidResourceHandle;
  if (!core.finished({start->op, end->op})) return cudaErrorNotReady;
  const auto ns = static_cast<int64_t>(end->op->info.end - start->op->info.end);
  *ms = static_cast<float>(static_cast<double>(ns) / 1e6);
  return cudaSuccess;
}

constexpr ApiInfo kCreate{"cudaEventCreate", CUPTI_RUNTIME_TRACE_CBID_cudaEventCreate_v3020};
constexpr ApiInfo kCreateFlags{"cudaEventCreateWithFlags",
                               CUPTI_RUNTIME_TRACE_CBID_cudaEventCreateWithFlags_v3020};
constexpr ApiInfo kDestroy{"cudaEventDestroy", CUPTI_RUNTIME_TRACE_CBID_cudaEventDestroy_v3020};
constexpr ApiInfo kSynchronize{"cudaEventSynchronize",
                               CUPTI_RUNTIME_TRACE_CBID_cudaEventSynchronize_v3020};
constexpr ApiInfo kQuery{"cudaEventQuery", CUPTI_RUNTIME_TRACE_CBID_cudaEventQuery_v3020};
constexpr ApiInfo kElapsed{"cudaEventElapsedTime",
                           CUPTI_RUNTIME_TRACE_CBID_cudaEventElapsedTime_v12080};
constexpr StreamApi kRecord{{"cudaEventRecord", CUPTI_RUNTIME_TRACE_CBID_cudaEventRecord_v3020},
                            false};
constexpr StreamApi kRecordPtsz{
    {"cudaEventRecord_ptsz", CUPTI_RUNTIME_TRACE_CBID_cudaEventRecord_ptsz_v7000}, true};
constexpr StreamApi kRecordFlags{
    {"cudaEventRecordWithFlags", CUPTI_RUNTIME_TRACE_CBID_cudaEventRecordWithFlags_v11010}, false};
constexpr StreamApi kRecordFlagsPtsz{
    {"cudaEventRecordWithFlags_ptsz",
     CUPTI_RUNTIME_TRACE_CBID_cudaEventRecordWithFlags_ptsz_v11010},
    true};

}  // namespace

// A marker that the stream reaches when all before it has ended.
OpPtr Core::record_event(Stream& stream, const Event& event, uint32_t correlation) {
  Work work;
  work.event_id = event.id;
  work.event_sync_id = event.sync_id;
  return run(stream, work, correlation, wanted(CUPTI_ACTIVITY_KIND_CUDA_EVENT), arrival());
}

}  // namespace gpuprof::simcuda

using namespace gpuprof::simcuda;

extern "C" {

cudaError_t cudaEventCreate(cudaEvent_t* out) {
  return run_api(kCreate, [&](ApiCall& call) { return create(call, out, 0); });
}
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* out, unsigned flags) {
  return run_api(kCreateFlags, [&](ApiCall& call) { return create(call, out, flags); });
}
cudaError_t cudaEventDestroy(cudaEvent_t handle) {
  const cudaEventDestroy_v3020_params params{handle};
  return run_api(kDestroy, &params, nullptr, [&](ApiCall& call) {
    Core& core = Core::instance();
    const Core::Lock held = core.lock();
    if (const auto event = core.event(handle)) call.details.event = event->id;
    return core.destroy_event(handle) ? cudaSuccess : cudaErrorInvalidResourceHandle;
  });
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  return record(kRecord, event, stream);
}
cudaError_t cudaEventRecord_ptsz(cudaEvent_t event, cudaStream_t stream) {
  return record(kRecordPtsz, event, stream);
}
cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream, unsigned flags) {
  return record(kRecordFlags, event, stream, flags);
}
cudaError_t cudaEventRecordWithFlags_ptsz(cudaEvent_t event, cudaStream_t stream, unsigned flags) {
  return record(kRecordFlagsPtsz, event, stream, flags);
}
cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  const cudaEventSynchronize_v3020_params params{event};
  return run_api(kSynchronize, &params, nullptr,
                 [&](ApiCall& call) { return synchronize(call, event); });
}
cudaError_t cudaEventQuery(cudaEvent_t handle) {
  return run_api(kQuery, [&](ApiCall& call) {
    Core& core = Core::instance();
    const Core::Lock held = core.lock();
    const auto event = core.event(handle);
    if (event == nullptr) return cudaErrorInvalidResourceHandle;
    call.details.event = event->id;
    if (const cudaError_t refused = Core::refuse_wait(*event)) return refused;
    // One of the unsafe calls: https://github.com/pytorch/pytorch/pull/104555
    if (const cudaError_t refused = core.refuse_unsafe_call()) return refused;
    return core.finished({event->op}) ? cudaSuccess : cudaErrorNotReady;
  });
}
cudaError_t cudaEventElapsedTime(float* ms, cudaEvent_t start, cudaEvent_t end) {
  return run_api(kElapsed, [&](ApiCall&) { return elapsed(ms, start, end); });
}

}  // extern "C"
