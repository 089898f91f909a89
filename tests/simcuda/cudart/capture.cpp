// SPDX-License-Identifier: Apache-2.0
// Captures of streams into graphs.
#include <cupti.h>

#include <utility>

#include "tests/simcuda/cudart/entry_points.h"

namespace gpuprof::simcuda {
namespace {

// `into`: a graph to add nodes to; null: a new one.
cudaError_t begin_capture(const StreamApi& which, cudaStream_t handle, cudaStreamCaptureMode mode,
                          cudaGraph_t into = nullptr) {
  return run_api(which.api, [&](ApiCall& call) {
    Core& core = Core::instance();
    const Core::Lock held = core.lock();
    const auto stream = core.stream(handle, which.per_thread);
    if (stream == nullptr) return cudaErrorInvalidResourceHandle;
    call.details.stream = stream->id;
    if (stream->legacy) return cudaErrorStreamCaptureUnsupported;
    if (stream->capture != nullptr) return cudaErrorIllegalState;
    auto graph = into != nullptr ? core.graph(into) : core.create_graph();
    if (graph == nullptr) return cudaErrorInvalidValue;
    core.begin_capture(*stream, std::move(graph), mode);
    return cudaSuccess;
  });
}

cudaError_t end_capture(const StreamApi& which, cudaStream_t handle, cudaGraph_t* out) {
  return run_api(which.api, [&](ApiCall& call) {
    if (out == nullptr) return cudaErrorInvalidValue;
    Core& core = Core::instance();
    const Core::Lock held = core.lock();
    const auto stream = core.stream(handle, which.per_thread);
    if (stream == nullptr) return cudaErrorInvalidResourceHandle;
    call.details.stream = stream->id;
    if (stream->capture == nullptr) return cudaErrorIllegalState;
    if (!stream->capture_origin) return cudaErrorStreamCaptureUnmatched;
    // "This call must be from the same thread" (CUDA runtime API, cudaStreamEndCapture).
    if (stream->capture->mode != cudaStreamCaptureModeRelaxed &&
        stream->capture->thread != &thread_state()) {
      return cudaErrorStreamCaptureWrongThread;
    }
    const auto capture = core.end_capture(*stream);
    if (capture->invalid) {
      *out = nullptr;
      return cudaErrorStreamCaptureInvalidated;
    }
    call.details.graph = capture->graph->id;
    *out = reinterpret_cast<cudaGraph_t>(capture->graph.get());
    return cudaSuccess;
  });
}

cudaError_t capture_status(const StreamApi& which, cudaStream_t handle,
                           cudaStreamCaptureStatus* status, unsigned long long* id) {
  return run_api(which.api, [&](ApiCall&) {
    if (status == nullptr) return cudaErrorInvalidValue;
    Core& core = Core::instance();
    const Core::Lock held = core.lock();
    const auto stream = core.stream(handle, which.per_thread);
    if (stream == nullptr) return cudaErrorInvalidResourceHandle;
    // "The blocking stream capture is not invalidated" (CUDA runtime API, cudaStreamIsCapturing).
    if (core.is_implicitly_captured(*stream, false)) return cudaErrorStreamCaptureImplicit;
    *status = stream->capture == nullptr ? cudaStreamCaptureStatusNone
              : stream->capture->invalid ? cudaStreamCaptureStatusInvalidated
                                         : cudaStreamCaptureStatusActive;
    if (id != nullptr && stream->capture != nullptr) *id = stream->capture->id;
    return cudaSuccess;
  });
}

constexpr ApiInfo kExchangeMode{"cudaThreadExchangeStreamCaptureMode",
                                CUPTI_RUNTIME_TRACE_CBID_cudaThreadExchangeStreamCaptureMode_v10010,
                                true};
constexpr StreamApi kBegin{
    {"cudaStreamBeginCapture", CUPTI_RUNTIME_TRACE_CBID_cudaStreamBeginCapture_v10000}, false};
constexpr StreamApi kBeginPtsz{
    {"cudaStreamBeginCapture_ptsz", CUPTI_RUNTIME_TRACE_CBID_cudaStreamBeginCapture_ptsz_v10000},
    true};
constexpr StreamApi kBeginTo{{"cudaStreamBeginCaptureToGraph",
                              CUPTI_RUNTIME_TRACE_CBID_cudaStreamBeginCaptureToGraph_v12030},
                             false};
constexpr StreamApi kBeginToPtsz{
    {"cudaStreamBeginCaptureToGraph_ptsz",
     CUPTI_RUNTIME_TRACE_CBID_cudaStreamBeginCaptureToGraph_ptsz_v12030},
    true};
constexpr StreamApi kEnd{
    {"cudaStreamEndCapture", CUPTI_RUNTIME_TRACE_CBID_cudaStreamEndCapture_v10000}, false};
constexpr StreamApi kEndPtsz{
    {"cudaStreamEndCapture_ptsz", CUPTI_RUNTIME_TRACE_CBID_cudaStreamEndCapture_ptsz_v10000}, true};
constexpr StreamApi kIsCapturing{
    {"cudaStreamIsCapturing", CUPTI_RUNTIME_TRACE_CBID_cudaStreamIsCapturing_v10000, true}, false};
constexpr StreamApi kIsCapturingPtsz{
    {"cudaStreamIsCapturing_ptsz", CUPTI_RUNTIME_TRACE_CBID_cudaStreamIsCapturing_ptsz_v10000,
     true},
    true};
constexpr StreamApi kCaptureInfo{
    {"cudaStreamGetCaptureInfo", CUPTI_RUNTIME_TRACE_CBID_cudaStreamGetCaptureInfo_v12030, true},
    false};
constexpr StreamApi kCaptureInfoPtsz{
    {"cudaStreamGetCaptureInfo_ptsz", CUPTI_RUNTIME_TRACE_CBID_cudaStreamGetCaptureInfo_ptsz_v12030,
     true},
    true};

}  // namespace
}  // namespace gpuprof::simcuda

using namespace gpuprof::simcuda;

extern "C" {

cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode* mode) {
  return run_api(kExchangeMode, [&](ApiCall&) {
    if (mode == nullptr) return cudaErrorInvalidValue;
    std::swap(*mode, thread_state().capture_mode);
    return cudaSuccess;
  });
}
cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode) {
  return begin_capture(kBegin, stream, mode);
}
cudaError_t cudaStreamBeginCapture_ptsz(cudaStream_t stream, cudaStreamCaptureMode mode) {
  return begin_capture(kBeginPtsz, stream, mode);
}
cudaError_t cudaStreamBeginCaptureToGraph(cudaStream_t stream, cudaGraph_t graph,
                                          const cudaGraphNode_t*, const cudaGraphEdgeData*, size_t,
                                          cudaStreamCaptureMode mode) {
  return begin_capture(kBeginTo, stream, mode, graph);
}
cudaError_t cudaStreamBeginCaptureToGraph_ptsz(cudaStream_t stream, cudaGraph_t graph,
                                               const cudaGraphNode_t*, const cudaGraphEdgeData*,
                                               size_t, cudaStreamCaptureMode mode) {
  return begin_capture(kBeginToPtsz, stream, mode, graph);
}
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  return end_capture(kEnd, stream, graph);
}
cudaError_t cudaStreamEndCapture_ptsz(cudaStream_t stream, cudaGraph_t* graph) {
  return end_capture(kEndPtsz, stream, graph);
}
cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus* status) {
  return capture_status(kIsCapturing, stream, status, nullptr);
}
cudaError_t cudaStreamIsCapturing_ptsz(cudaStream_t stream, cudaStreamCaptureStatus* status) {
  return capture_status(kIsCapturingPtsz, stream, status, nullptr);
}
cudaError_t cudaStreamGetCaptureInfo(cudaStream_t stream, cudaStreamCaptureStatus* status,
                                     unsigned long long* id, cudaGraph_t*, const cudaGraphNode_t**,
                                     const cudaGraphEdgeData**, size_t*) {
  return capture_status(kCaptureInfo, stream, status, id);
}
cudaError_t cudaStreamGetCaptureInfo_ptsz(cudaStream_t stream, cudaStreamCaptureStatus* status,
                                          unsigned long long* id, cudaGraph_t*,
                                          const cudaGraphNode_t**, const cudaGraphEdgeData**,
                                          size_t*) {
  return capture_status(kCaptureInfoPtsz, stream, status, id);
}

}  // extern "C"
