// SPDX-License-Identifier: Apache-2.0
// What the hooks of the CUDA runtime and of the driver both keep of their arguments. Their streams
// and events are the same types, and success is 0 in both.
#pragma once

#include <cuda.h>

#include "collector/sources/graphs.h"
#include "collector/sources/replayed_graphs.h"
#include "preload/hook.h"

namespace gpuprof {

// A launch's payload as LaunchPayload lays it out, from values as they come in registers: x in the
// lower half, y in the upper.
inline void hold_launch(HeldPayload& held, uint64_t function, uint64_t grid_xy, uint32_t grid_z,
                        uint64_t block_xy, uint32_t block_z, uint64_t shared_bytes,
                        CUstream stream) {
  held.words[0] = function;
  held.words[1] = reinterpret_cast<uint64_t>(stream);
  held.words[2] = grid_xy;
  held.words[3] = block_xy;
  held.words[4] = static_cast<uint16_t>(grid_z) | block_z << 16 | (shared_bytes & 0xfffff) << 32;
}

template <typename Result>
inline void release(Record& r, const HeldPayload& held, Result result) {
  for (int i = 0; i < 4; ++i) r.words[i] = held.words[i];
  r.words[4] = held.words[4] | static_cast<uint64_t>(result) << 52;
}

template <typename Result>
inline void fill_sync(Record& r, Result result, CUstream stream, CUevent event,
                      unsigned flags = 0) {
  r.sync = {reinterpret_cast<uint64_t>(stream),
            reinterpret_cast<uint64_t>(event),
            static_cast<int32_t>(result),
            flags,
            0,
            0,
            0};
}

// Bytes of a batch of copies.
inline size_t sum_of(const size_t* sizes, size_t count) {
  size_t sum = 0;
  for (size_t i = 0; sizes && i < count; ++i) sum += sizes[i];
  return sum;
}
template <typename Copied>
inline size_t volume_of(const Copied* copies, size_t count) {
  size_t sum = 0;
  for (size_t i = 0; copies && i < count; ++i) {
    sum += copies[i].extent.width * copies[i].extent.height * copies[i].extent.depth;
  }
  return sum;
}

// `told` (collector/sources/graphs.h) is called after each success of the row `symbol`.
#define GPUPROF_OBSERVE_CAPTURE(symbol, told)                                         \
  template <typename Result, typename... Rest>                                        \
  [[maybe_unused]] static void observe(ApiTag<Api::symbol>, Result result, Rest...) { \
    if (static_cast<int>(result) == 0) told();                                        \
  }

// EndCapture ends a capture that was invalidated or left unjoined, too, and says so by an error.
// Others say that there is none, or that this thread may not end it. Codes of cudaError and
// CUresult alike.
inline bool ends_capture(int result) {
  return result == 0 || result == cudaErrorStreamCaptureInvalidated ||
         (result >= cudaErrorStreamCaptureUnjoined && result <= cudaErrorCapturedEvent);
}
#define GPUPROF_OBSERVE_END_CAPTURE(symbol)                                           \
  template <typename Result, typename... Rest>                                        \
  [[maybe_unused]] static void observe(ApiTag<Api::symbol>, Result result, Rest...) { \
    if (ends_capture(static_cast<int>(result))) capture_ended();                      \
  }

// For calls that make, update or destroy an executable graph, after each success
// (collector/sources/replayed_graphs.h).
#define GPUPROF_OBSERVE_INSTANTIATE(symbol)                                                        \
  template <typename Result, typename Exec, typename Graph, typename... Rest>                      \
  [[maybe_unused]] static void observe(ApiTag<Api::symbol>, Result result, Exec* out, Graph graph, \
                                       Rest...) {                                                  \
    if (static_cast<int>(result) == 0 && out) graph_instantiated(bits(*out), bits(graph));         \
  }
#define GPUPROF_OBSERVE_UPDATE(symbol)                                                             \
  template <typename Result, typename Exec, typename Graph, typename... Rest>                      \
  [[maybe_unused]] static void observe(ApiTag<Api::symbol>, Result result, Exec exec, Graph graph, \
                                       Rest...) {                                                  \
    if (static_cast<int>(result) == 0) graph_updated(bits(exec), bits(graph));                     \
  }
#define GPUPROF_OBSERVE_DESTROY(symbol)                                                 \
  template <typename Result, typename Exec>                                             \
  [[maybe_unused]] static void observe(ApiTag<Api::symbol>, Result result, Exec exec) { \
    if (static_cast<int>(result) == 0) graph_destroyed(bits(exec));                     \
  }

}  // namespace gpuprof
