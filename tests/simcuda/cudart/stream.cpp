// SPDX-License-Identifier: Apache-2.0
#include <cupti.h>

#include "tests/simcuda/core/clock.h"
#include "tests/simcuda/cudart/entry_points.h"

namespace gpuprof::simcuda {
namespace {

constexpr int kLeastPriority = 0;
constexpr int kGreatestPriority = -5;

cudaError_t create(ApiCall& call, cudaStream_t* out, unsigned flags, int priority) {
  call.details.device = thread_state().device;
  if (out == nullptr || (flags & ~unsigned{cudaStreamNonBlocking}) != 0) {
    return cudaErrorInvalidValue;
  }
  Core& core = Core::instance();
  const Core::Lock held = core.lock();
  Device& device = core.device(thread_state().device);
  const auto stream = core.create_stream(device, flags, priority, call.correlation());
  call.details.stream = stream->id;
  *out = reinterpret_cast<cudaStream_t>(stream.get());
  return cudaSuccess;
}

// Calls `body(core, held, stream)` under the core's lock with the stream that `handle` means.
template <typename Body>
cudaError_t with_stream(const StreamApi& which, cudaStream_t handle, Body&& body,
                        const void* params = nullptr) {
  return run_api(which.api, params, nullptr, [&](ApiCall& call) {
    Core& core = Core::instance();
    Core::Lock held = core.lock();
    const auto stream = core.stream(handle, which.per_thread);
    if (stream == nullptr) return cudaErrorInvalidResourceHandle;
    call.details.device = stream->device;
    call.details.stream = stream->id;
    return body(call, core, held, *stream);
  });
}

cudaError_t synchronize(const StreamApi& which, cudaStream_t handle) {
  const cudaStreamSynchronize_v3020_params params{handle};
  const auto body = [](ApiCall& call, Core& core, Core::Lock& held, Stream& s) {
    if (const cudaError_t refused = core.refuse_wait(s)) return refused;
    SyncInfo info{SyncKind::kStream, s.device, s.context_id, s.id, 0, 0, call.correlation(),
                  call.begin(),      0};
    core.block_on(std::move(held), core.tail(s));
    info.end = now_ns();
    core.report_sync(info);
    return cudaSuccess;
  };
  return with_stream(which, handle, body, &params);
}

cudaError_t query(const StreamApi& which, cudaStream_t handle) {
  return with_stream(which, handle, [](ApiCall&, Core& core, Core::Lock&, Stream& s) {
    if (const cudaError_t refused = core.refuse_wait(s)) return refused;
    return core.finished(core.tail(s)) ? cudaSuccess : cudaErrorNotReady;
  });
}

// A capturing event pulls the waiting stream into the same capture. "It is invalid to merge two
// separate capture graphs" (CUDA C++ Programming Guide, "Prohibited and Unhandled Operations").
cudaError_t wait_captured(Stream& s, const Event& event) {
  if (event.capture->ended) return cudaErrorCapturedEvent;
  if (event.capture->invalid) return cudaErrorStreamCaptureInvalidated;
  if (s.capture != nullptr && s.capture != event.capture) {
    s.capture->invalid = event.capture->invalid = true;
    return cudaErrorStreamCaptureMerge;
  }
  s.capture = event.capture;
  return cudaSuccess;
}

cudaError_t wait_event(const StreamApi& which, cudaStream_t handle, cudaEvent_t event_handle,
                       unsigned flags) {
  return with_stream(which, handle, [&](ApiCall& call, Core& core, Core::Lock&, Stream& s) {
    const auto event = core.event(event_handle);
    if (event == nullptr) return cudaErrorInvalidResourceHandle;
    call.details.event = event->id;
    if (const cudaError_t refused = core.refuse_use(s)) return refused;
    if (s.capture != nullptr && (flags & cudaEventWaitExternal) != 0) {
      Graph::Node node;
      node.type = NodeType::kEventWait;
      node.event = event;
      core.add_node(s, std::move(node));
      return cudaSuccess;
    }
    if (event->capture != nullptr) return wait_captured(s, *event);
    if (s.capture != nullptr) {
      s.capture->invalid = true;
      return cudaErrorStreamCaptureIsolation;
    }
    if (event->op == nullptr) return cudaSuccess;
    core.submit(s, Work{}, call.correlation(), event->op);
    core.report_sync(SyncInfo{SyncKind::kStreamWaitEvent, s.device, s.context_id, s.id, event->id,
                              event->sync_id, call.correlation(), call.begin(), now_ns()});
    return cudaSuccess;
  });
}

constexpr ApiInfo kCreate{"cudaStreamCreate", CUPTI_RUNTIME_TRACE_CBID_cudaStreamCreate_v3020};
constexpr ApiInfo kCreateFlags{"cudaStreamCreateWithFlags",
                               CUPTI_RUNTIME_TRACE_CBID_cudaStreamCreateWithFlags_v5000};
constexpr ApiInfo kCreatePriority{"cudaStreamCreateWithPriority",
                                  CUPTI_RUNTIME_TRACE_CBID_cudaStreamCreateWithPriority_v5050};
constexpr ApiInfo kDestroy{"cudaStreamDestroy", CUPTI_RUNTIME_TRACE_CBID_cudaStreamDestroy_v5050};
constexpr ApiInfo kPriorityRange{"cudaDeviceGetStreamPriorityRange",
                                 CUPTI_RUNTIME_TRACE_CBID_cudaDeviceGetStreamPriorityRange_v5050,
                                 true};
constexpr StreamApi kSync{
    {"cudaStreamSynchronize", CUPTI_RUNTIME_TRACE_CBID_cudaStreamSynchronize_v3020}, false};
constexpr StreamApi kSyncPtsz{
    {"cudaStreamSynchronize_ptsz", CUPTI_RUNTIME_TRACE_CBID_cudaStreamSynchronize_ptsz_v7000},
    true};
constexpr StreamApi kQuery{{"cudaStreamQuery", CUPTI_RUNTIME_TRACE_CBID_cudaStreamQuery_v3020},
                           false};
constexpr StreamApi kQueryPtsz{
    {"cudaStreamQuery_ptsz", CUPTI_RUNTIME_TRACE_CBID_cudaStreamQuery_ptsz_v7000}, true};
constexpr StreamApi kWait{
    {"cudaStreamWaitEvent", CUPTI_RUNTIME_TRACE_CBID_cudaStreamWaitEvent_v3020}, false};
constexpr StreamApi kWaitPtsz{
    {"cudaStreamWaitEvent_ptsz", CUPTI_RUNTIME_TRACE_CBID_cudaStreamWaitEvent_ptsz_v7000}, true};
constexpr StreamApi kFlags{
    {"cudaStreamGetFlags", CUPTI_RUNTIME_TRACE_CBID_cudaStreamGetFlags_v5050, true}, false};
constexpr StreamApi kFlagsPtsz{
    {"cudaStreamGetFlags_ptsz", CUPTI_RUNTIME_TRACE_CBID_cudaStreamGetFlags_ptsz_v7000, true},
    true};
constexpr StreamApi kPriority{
    {"cudaStreamGetPriority", CUPTI_RUNTIME_TRACE_CBID_cudaStreamGetPriority_v5050, true}, false};
constexpr StreamApi kPriorityPtsz{
    {"cudaStreamGetPriority_ptsz", CUPTI_RUNTIME_TRACE_CBID_cudaStreamGetPriority_ptsz_v7000, true},
    true};
constexpr StreamApi kId{{"cudaStreamGetId", CUPTI_RUNTIME_TRACE_CBID_cudaStreamGetId_v12000, true},
                        false};
constexpr StreamApi kIdPtsz{
    {"cudaStreamGetId_ptsz", CUPTI_RUNTIME_TRACE_CBID_cudaStreamGetId_ptsz_v12000, true}, true};
constexpr StreamApi kDevice{
    {"cudaStreamGetDevice", CUPTI_RUNTIME_TRACE_CBID_cudaStreamGetDevice_v12080, true}, false};
constexpr StreamApi kDevicePtsz{
    {"cudaStreamGetDevice_ptsz", CUPTI_RUNTIME_TRACE_CBID_cudaStreamGetDevice_ptsz_v12080, true},
    true};

// A getter: stores what `value(stream)` says.
template <typename T, typename Value>
cudaError_t get(const StreamApi& which, cudaStream_t handle, T* out, Value&& value) {
  return with_stream(which, handle, [&](ApiCall&, Core&, Core::Lock&, Stream& s) {
    if (out == nullptr) return cudaErrorInvalidValue;
    *out = static_cast<T>(value(s));
    return cudaSuccess;
  });
}

constexpr auto flags_of = [](const Stream& s) { return s.flags; };
constexpr auto priority_of = [](const Stream& s) { return s.priority; };
constexpr auto id_of = [](const Stream& s) { return s.id; };
constexpr auto device_of = [](const Stream& s) { return s.device; };

}  // namespace
}  // namespace gpuprof::simcuda

using namespace gpuprof::simcuda;

extern "C" {

cudaError_t cudaStreamCreate(cudaStream_t* out) {
  return run_api(kCreate, [&](ApiCall& call) { return create(call, out, 0, 0); });
}
cudaError_t cudaStreamCreateWithFlags(cudaStream_t* out, unsigned flags) {
  return run_api(kCreateFlags, [&](ApiCall& call) { return create(call, out, flags, 0); });
}
cudaError_t cudaStreamCreateWithPriority(cudaStream_t* out, unsigned flags, int priority) {
  return run_api(kCreatePriority,
                 [&](ApiCall& call) { return create(call, out, flags, priority); });
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  const cudaStreamDestroy_v5050_params params{stream};
  return run_api(kDestroy, &params, nullptr, [&](ApiCall& call) {
    Core& core = Core::instance();
    const Core::Lock held = core.lock();
    const auto found = core.stream(stream, false);
    if (found != nullptr) call.details.stream = found->id;
    return core.destroy_stream(stream) ? cudaSuccess : cudaErrorInvalidResourceHandle;
  });
}
cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  return run_api(kPriorityRange, [&](ApiCall&) {
    if (least != nullptr) *least = kLeastPriority;
    if (greatest != nullptr) *greatest = kGreatestPriority;
    return cudaSuccess;
  });
}
cudaError_t cudaStreamSynchronize(cudaStream_t stream) { return synchronize(kSync, stream); }
cudaError_t cudaStreamSynchronize_ptsz(cudaStream_t stream) {
  return synchronize(kSyncPtsz, stream);
}
cudaError_t cudaStreamQuery(cudaStream_t stream) { return query(kQuery, stream); }
cudaError_t cudaStreamQuery_ptsz(cudaStream_t stream) { return query(kQueryPtsz, stream); }
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags) {
  return wait_event(kWait, stream, event, flags);
}
cudaError_t cudaStreamWaitEvent_ptsz(cudaStream_t stream, cudaEvent_t event, unsigned flags) {
  return wait_event(kWaitPtsz, stream, event, flags);
}
cudaError_t cudaStreamGetFlags(cudaStream_t stream, unsigned* out) {
  return get(kFlags, stream, out, flags_of);
}
cudaError_t cudaStreamGetFlags_ptsz(cudaStream_t stream, unsigned* out) {
  return get(kFlagsPtsz, stream, out, flags_of);
}
cudaError_t cudaStreamGetPriority(cudaStream_t stream, int* out) {
  return get(kPriority, stream, out, priority_of);
}
cudaError_t cudaStreamGetPriority_ptsz(cudaStream_t stream, int* out) {
  return get(kPriorityPtsz, stream, out, priority_of);
}
cudaError_t cudaStreamGetId(cudaStream_t stream, unsigned long long* out) {
  return get(kId, stream, out, id_of);
}
cudaError_t cudaStreamGetId_ptsz(cudaStream_t stream, unsigned long long* out) {
  return get(kIdPtsz, stream, out, id_of);
}
cudaError_t cudaStreamGetDevice(cudaStream_t stream, int* out) {
  return get(kDevice, stream, out, device_of);
}
cudaError_t cudaStreamGetDevice_ptsz(cudaStream_t stream, int* out) {
  return get(kDevicePtsz, stream, out, device_of);
}

}  // extern "C"
