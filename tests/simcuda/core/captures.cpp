// SPDX-License-Identifier: Apache-2.0
// What captures of streams forbid, and what then becomes of them (CUDA C++ Programming Guide,
// "Prohibited and Unhandled Operations" and "Invalidation").
#include <algorithm>

#include "tests/simcuda/core/core.h"

namespace gpuprof::simcuda {

void Core::begin_capture(Stream& stream, std::shared_ptr<Graph> graph, cudaStreamCaptureMode mode) {
  auto capture = std::make_shared<Capture>();
  capture->graph = std::move(graph);
  capture->id = ++capture_id_;
  capture->mode = mode;
  capture->thread = &thread_state();
  captures_.push_back(capture);
  stream.capture = std::move(capture);
  stream.capture_origin = true;
  stream.last_node = 0;
}

std::shared_ptr<Capture> Core::end_capture(Stream& stream) {
  const auto capture = stream.capture;
  for (const auto& other : device(stream.device).streams) {
    if (other->capture == capture) other->capture = nullptr;
  }
  stream.capture_origin = false;
  capture->ended = true;
  captures_.erase(std::find(captures_.begin(), captures_.end(), capture));
  return capture;
}

// "If the local thread has an ongoing capture sequence that was not initiated with
// cudaStreamCaptureModeRelaxed [...], or if any other thread has a concurrent capture sequence
// initiated with cudaStreamCaptureModeGlobal, this thread is prohibited from potentially unsafe API
// calls" (CUDA runtime API, cudaThreadExchangeStreamCaptureMode, which also tells the other modes).
cudaError_t Core::refuse_unsafe_call() {
  const ThreadState& thread = thread_state();
  bool refused = false;
  if (thread.capture_mode == cudaStreamCaptureModeRelaxed) return cudaSuccess;
  for (const auto& capture : captures_) {
    const bool forbids = capture->thread == &thread
                             ? capture->mode != cudaStreamCaptureModeRelaxed
                             : capture->mode == cudaStreamCaptureModeGlobal &&
                                   thread.capture_mode == cudaStreamCaptureModeGlobal;
    if (!forbids) continue;
    capture->invalid = true;
    refused = true;
  }
  return refused ? cudaErrorStreamCaptureUnsupported : cudaSuccess;
}

// "The legacy stream is in an unusable state" while a blocking stream is captured (CUDA runtime
// API, cudaStreamIsCapturing).
bool Core::is_implicitly_captured(const Stream& stream, bool invalidate) {
  bool found = false;
  if (!stream.legacy) return false;
  for (const auto& other : device(stream.device).streams) {
    if (!other->blocking || other->capture == nullptr) continue;
    other->capture->invalid = other->capture->invalid || invalidate;
    found = true;
  }
  return found;
}

cudaError_t Core::refuse_use(const Stream& stream) {
  if (is_implicitly_captured(stream, true)) return cudaErrorStreamCaptureImplicit;
  return stream.capture != nullptr && stream.capture->invalid ? cudaErrorStreamCaptureInvalidated
                                                              : cudaSuccess;
}

cudaError_t Core::refuse_wait(const Stream& stream) {
  const cudaError_t refused = refuse_use(stream);
  if (refused != cudaSuccess || stream.capture == nullptr) return refused;
  stream.capture->invalid = true;
  return cudaErrorStreamCaptureUnsupported;
}

cudaError_t Core::refuse_wait(const Device& device) {
  bool refused = false;
  for (const auto& stream : device.streams) {
    if (stream->capture == nullptr) continue;
    stream->capture->invalid = true;
    refused = true;
  }
  return refused ? cudaErrorStreamCaptureUnsupported : cudaSuccess;
}

cudaError_t Core::refuse_wait(const Event& event) {
  if (event.capture == nullptr) return cudaSuccess;
  event.capture->invalid = true;
  return cudaErrorCapturedEvent;
}

}  // namespace gpuprof::simcuda
