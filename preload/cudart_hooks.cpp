// SPDX-License-Identifier: Apache-2.0
// The CUDA runtime: what each kind of call keeps of its arguments, and the hooks of apis.def's
// rows.
#include <cuda_runtime_api.h>

#include "collector/base/libraries.h"
#include "preload/any_signatures.h"
#include "preload/cuda_arguments.h"
#include "preload/cuda_later.h"

// Declared by NVIDIA only for its compiler (crt/device_functions.h, crt/host_runtime.h).
extern "C" {
cudaError_t __cudaLaunchKernel(cudaKernel_t, dim3, dim3, void**, size_t, cudaStream_t);
cudaError_t __cudaLaunchKernel_ptsz(cudaKernel_t, dim3, dim3, void**, size_t, cudaStream_t);
// In cuda_profiler_api.h, which the wheels of the runtime do not bring.
cudaError_t cudaProfilerStart();
cudaError_t cudaProfilerStop();
}

namespace gpuprof {

// The capture() overloads are found through their tag's namespace when a hook is instantiated,
// which is why they are static functions of it and not in an unnamed one.

template <typename T>
static uint64_t bits(T pointer) {
  return reinterpret_cast<uint64_t>(pointer);
}

// ---- launches ----------------------------------------------------------------------------------

static void fill_launch(Record& r, cudaError_t result, const void* function, dim3 grid, dim3 block,
                        size_t shared, cudaStream_t stream) {
  auto& out = r.launch;
  out.function = bits(function);
  out.stream = bits(stream);
  out.grid_x = grid.x, out.grid_y = grid.y, out.grid_z = static_cast<uint16_t>(grid.z);
  out.block_x = block.x, out.block_y = block.y, out.block_z = static_cast<uint16_t>(block.z);
  out.shared_bytes = static_cast<uint32_t>(shared) & 0xfffff;
  out.result = static_cast<uint32_t>(result) & 0xfff;
}
using Launch = KindTag<Kind::launch>;

// Launches are the hottest calls. A dim3 by value travels in two registers (x and y, then z), on
// x86-64 as on 64-bit Arm, but a compiler takes it apart and puts it together again around the real
// call. The hook names the registers instead: the same calling convention, a quarter less work.
static_assert(sizeof(dim3) == 12 && alignof(dim3) == 4);
template <typename Signature>
struct HookSignature {
  using type = Signature;
};
template <typename Function>
struct HookSignature<cudaError_t(Function, dim3, dim3, void**, size_t, cudaStream_t)> {
  using type = cudaError_t(Function, uint64_t, uint32_t, uint64_t, uint32_t, void**, size_t,
                           cudaStream_t);
};
template <typename Function>
[[maybe_unused]] static void hold(HeldPayload& held, Function function, uint64_t grid_xy,
                                  uint32_t grid_z, uint64_t block_xy, uint32_t block_z, void**,
                                  size_t shared, cudaStream_t stream) {
  hold_launch(held, bits(function), grid_xy, grid_z, block_xy, block_z, shared, stream);
}
[[maybe_unused]] static void capture(Record& r, Launch, cudaError_t result,
                                     const cudaLaunchConfig_t* config, const void* function,
                                     void**) {
  if (!config) return fill_launch(r, result, function, 0, 0, 0, nullptr);
  fill_launch(r, result, function, config->gridDim, config->blockDim, config->dynamicSmemBytes,
              config->stream);
}
[[maybe_unused]] static void capture(Record& r, Launch, cudaError_t result, cudaGraphExec_t graph,
                                     cudaStream_t stream) {
  fill_launch(r, result, graph, 0, 0, 0, stream);
}

#ifndef GPUPROF_NOP
template <typename Function>
[[maybe_unused]] static StepSubject step_subject(Launch, Function function, uint64_t, uint32_t,
                                                 uint64_t, uint32_t, void**, size_t, cudaStream_t) {
  return {reinterpret_cast<const void*>(function)};
}
[[maybe_unused]] static StepSubject step_subject(Launch, const cudaLaunchConfig_t*,
                                                 const void* function, void**) {
  return {function};
}
[[maybe_unused]] static StepSubject step_subject(Launch, cudaGraphExec_t graph, cudaStream_t) {
  return {graph};
}
#endif

// ---- copies and sets ---------------------------------------------------------------------------

static void fill_copy(Record& r, cudaError_t result, const void* to, const void* from, size_t bytes,
                      int direction, cudaStream_t stream) {
  r.copy = {bits(to),
            bits(from),
            bytes,
            bits(stream),
            static_cast<uint8_t>(direction),
            0,
            static_cast<int16_t>(result),
            0};
}
using Copy = KindTag<Kind::copy>;
[[maybe_unused]] static void capture(Record& r, Copy, cudaError_t result, void* to,
                                     const void* from, size_t bytes, cudaMemcpyKind kind,
                                     cudaStream_t stream = nullptr) {
  fill_copy(r, result, to, from, bytes, kind, stream);
}
[[maybe_unused]] static void capture(Record& r, Copy, cudaError_t result, void* to, size_t,
                                     const void* from, size_t, size_t width, size_t height,
                                     cudaMemcpyKind kind, cudaStream_t stream = nullptr) {
  fill_copy(r, result, to, from, width * height, kind, stream);
}
[[maybe_unused]] static void capture(Record& r, Copy, cudaError_t result,
                                     const cudaMemcpy3DParms* copy, cudaStream_t stream = nullptr) {
  if (!copy) return fill_copy(r, result, nullptr, nullptr, 0, cudaMemcpyDefault, stream);
  fill_copy(r, result, copy->dstPtr.ptr, copy->srcPtr.ptr,
            copy->extent.width * copy->extent.height * copy->extent.depth, copy->kind, stream);
}
// Peer copies: both ends are device memory.
[[maybe_unused]] static void capture(Record& r, Copy, cudaError_t result, void* to, int,
                                     const void* from, int, size_t bytes,
                                     cudaStream_t stream = nullptr) {
  fill_copy(r, result, to, from, bytes, cudaMemcpyDeviceToDevice, stream);
}
// To and from a __device__ variable: the address of one end is the symbol's host shadow plus
// offset.
[[maybe_unused]] static void capture(Record& r, Copy, cudaError_t result, const void* a,
                                     const void* b, size_t bytes, size_t, cudaMemcpyKind kind,
                                     cudaStream_t stream = nullptr) {
  fill_copy(r, result, a, b, bytes, kind, stream);
}

[[maybe_unused]] static void capture(Record& r, Copy, cudaError_t result,
                                     const cudaMemcpy3DPeerParms* copy,
                                     cudaStream_t stream = nullptr) {
  if (!copy) return fill_copy(r, result, nullptr, nullptr, 0, cudaMemcpyDeviceToDevice, stream);
  fill_copy(r, result, copy->dstPtr.ptr, copy->srcPtr.ptr,
            copy->extent.width * copy->extent.height * copy->extent.depth, cudaMemcpyDeviceToDevice,
            stream);
}

// Where a batch's stream is (any_signatures.h) depends on whose function was called.
static bool batches_tell_failures() {
  static std::atomic<int> known{0};  // 1 no, 2 yes
  if (known.load(std::memory_order_relaxed) == 0) {
    const auto version_of = reinterpret_cast<cudaError_t (*)(int*)>(
        real_symbol(loaded_cudart(), "cudaRuntimeGetVersion"));
    int version = CUDART_VERSION;
    if (version_of) version_of(&version);
    known.store(version < 13000 ? 2 : 1, std::memory_order_relaxed);
  }
  return known.load(std::memory_order_relaxed) == 2;
}
// Batches: the first copy's places, the bytes of all.
[[maybe_unused]] static void capture(Record& r, Copy, cudaError_t result, void** to, void** from,
                                     size_t* sizes, size_t count, void*, size_t*, size_t,
                                     uintptr_t fail_or_stream, uintptr_t stream) {
  const bool any = result == cudaSuccess && count != 0;
  fill_copy(r, result, any ? *to : nullptr, any ? *from : nullptr, any ? sum_of(sizes, count) : 0,
            cudaMemcpyDefault,
            reinterpret_cast<cudaStream_t>(batches_tell_failures() ? stream : fail_or_stream));
}
[[maybe_unused]] static void capture(Record& r, Copy, cudaError_t result, size_t count,
                                     cudaMemcpy3DBatchOp* copies, uintptr_t,
                                     uintptr_t flags_or_stream, uintptr_t stream) {
  const bool any = result == cudaSuccess && count != 0;
  fill_copy(r, result, nullptr, nullptr, any ? volume_of(copies, count) : 0, cudaMemcpyDefault,
            reinterpret_cast<cudaStream_t>(batches_tell_failures() ? stream : flags_or_stream));
}

[[maybe_unused]] static void capture(Record& r, Copy, cudaError_t result, void* to,
                                     const void* from, size_t bytes, CopyAttributes*,
                                     cudaStream_t stream) {
  fill_copy(r, result, to, from, bytes, cudaMemcpyDefault, stream);
}
[[maybe_unused]] static void capture(Record& r, Copy, cudaError_t result, cudaMemcpy3DBatchOp* copy,
                                     unsigned long long, cudaStream_t stream) {
  const bool any = result == cudaSuccess && copy;
  fill_copy(r, result, nullptr, nullptr, any ? volume_of(copy, 1) : 0, cudaMemcpyDefault, stream);
}

static void fill_set(Record& r, cudaError_t result, void* address, int value, size_t bytes,
                     cudaStream_t stream) {
  r.set = {bits(address),
           bytes,
           bits(stream),
           static_cast<uint32_t>(value),
           static_cast<int16_t>(result),
           0,
           0,
           0};
}
using Set = KindTag<Kind::set>;
[[maybe_unused]] static void capture(Record& r, Set, cudaError_t result, void* address, int value,
                                     size_t bytes, cudaStream_t stream = nullptr) {
  fill_set(r, result, address, value, bytes, stream);
}
[[maybe_unused]] static void capture(Record& r, Set, cudaError_t result, void* address, size_t,
                                     int value, size_t width, size_t height,
                                     cudaStream_t stream = nullptr) {
  fill_set(r, result, address, value, width * height, stream);
}

[[maybe_unused]] static void capture(Record& r, Set, cudaError_t result, cudaPitchedPtr place,
                                     int value, cudaExtent extent, cudaStream_t stream = nullptr) {
  fill_set(r, result, place.ptr, value, extent.width * extent.height * extent.depth, stream);
}

// ---- memory ------------------------------------------------------------------------------------

static void fill_memory(Record& r, cudaError_t result, const void* address, size_t bytes,
                        cudaStream_t stream, cudaMemPool_t pool) {
  r.memory = {bits(address), bytes, bits(stream), bits(pool), static_cast<int16_t>(result), 0, 0};
}
// The address exists only when the call succeeded; before, the variable is the program's garbage.
static const void* given(cudaError_t result, void** address) {
  return result == cudaSuccess && address ? *address : nullptr;
}
using Alloc = KindTag<Kind::alloc>;
[[maybe_unused]] static void capture(Record& r, Alloc, cudaError_t result, void** address,
                                     size_t bytes) {
  fill_memory(r, result, given(result, address), bytes, nullptr, nullptr);
}
// cudaMallocManaged and cudaHostAlloc: flags last.
[[maybe_unused]] static void capture(Record& r, Alloc, cudaError_t result, void** address,
                                     size_t bytes, unsigned) {
  fill_memory(r, result, given(result, address), bytes, nullptr, nullptr);
}
[[maybe_unused]] static void capture(Record& r, Alloc, cudaError_t result, void** address,
                                     size_t* pitch, size_t width, size_t height) {
  const size_t row = result == cudaSuccess && pitch ? *pitch : width;
  fill_memory(r, result, given(result, address), row * height, nullptr, nullptr);
}
[[maybe_unused]] static void capture(Record& r, Alloc, cudaError_t result, void** address,
                                     size_t bytes, cudaStream_t stream) {
  fill_memory(r, result, given(result, address), bytes, stream, nullptr);
}
[[maybe_unused]] static void capture(Record& r, Alloc, cudaError_t result, void** address,
                                     size_t bytes, cudaMemPool_t pool, cudaStream_t stream) {
  fill_memory(r, result, given(result, address), bytes, stream, pool);
}
[[maybe_unused]] static void capture(Record& r, Alloc, cudaError_t result, void* address,
                                     size_t bytes,
                                     unsigned) {  // cudaHostRegister
  fill_memory(r, result, address, bytes, nullptr, nullptr);
}
[[maybe_unused]] static void capture(Record& r, KindTag<Kind::dealloc>, cudaError_t result,
                                     void* address, cudaStream_t stream = nullptr) {
  fill_memory(r, result, address, 0, stream, nullptr);
}

// ---- synchronisation, events, streams, the rest ----

using Sync = KindTag<Kind::sync>;
[[maybe_unused]] static void capture(Record& r, Sync, cudaError_t result) {
  fill_sync(r, result, nullptr, nullptr);
}
[[maybe_unused]] static void capture(Record& r, Sync, cudaError_t result, cudaStream_t stream) {
  fill_sync(r, result, stream, nullptr);
}
[[maybe_unused]] static void capture(Record& r, Sync, cudaError_t result, cudaEvent_t event) {
  fill_sync(r, result, nullptr, event);
}
[[maybe_unused]] static void capture(Record& r, Sync, cudaError_t result, ExecutionContext*) {
  fill_sync(r, result, nullptr, nullptr);
}
using Event = KindTag<Kind::event>;
[[maybe_unused]] static void capture(Record& r, Event, cudaError_t result, cudaEvent_t* event,
                                     unsigned flags = 0) {
  fill_sync(r, result, nullptr, result == cudaSuccess && event ? *event : nullptr, flags);
}
[[maybe_unused]] static void capture(Record& r, Event, cudaError_t result, cudaEvent_t event) {
  fill_sync(r, result, nullptr, event);
}
[[maybe_unused]] static void capture(Record& r, Event, cudaError_t result, cudaEvent_t event,
                                     cudaStream_t stream, unsigned flags = 0) {
  fill_sync(r, result, stream, event, flags);
}
using Stream = KindTag<Kind::stream>;
[[maybe_unused]] static void capture(Record& r, Stream, cudaError_t result, cudaStream_t* stream,
                                     unsigned flags = 0, int = 0) {
  fill_sync(r, result, result == cudaSuccess && stream ? *stream : nullptr, nullptr, flags);
}
[[maybe_unused]] static void capture(Record& r, Stream, cudaError_t result, cudaStream_t stream) {
  fill_sync(r, result, stream, nullptr);
}
[[maybe_unused]] static void capture(Record& r, Stream, cudaError_t result, cudaStream_t stream,
                                     cudaEvent_t event, unsigned flags) {
  fill_sync(r, result, stream, event, flags);
}
[[maybe_unused]] static void capture(Record& r, KindTag<Kind::call>, cudaError_t result) {
  r.call = {0, 0, static_cast<int32_t>(result)};
}
template <typename Handle, typename... Rest>
[[maybe_unused]] static void capture(Record& r, KindTag<Kind::call>, cudaError_t result,
                                     Handle handle, Rest...) {
  r.call = {bits(handle), 0, static_cast<int32_t>(result)};
}

// The executable graph that the call has made, the graph where it failed.
template <typename... Rest>
[[maybe_unused]] static void capture(Record& r, KindTag<Kind::call>, cudaError_t result,
                                     cudaGraphExec_t* out, cudaGraph_t graph, Rest...) {
  r.call = {result == cudaSuccess && out ? bits(*out) : bits(graph), 0,
            static_cast<int32_t>(result)};
}

// ---- captures into graphs ----------------------------------------------------------------------

GPUPROF_OBSERVE_CAPTURE(cudaStreamBeginCapture, capture_began)
GPUPROF_OBSERVE_CAPTURE(cudaStreamBeginCapture_ptsz, capture_began)
GPUPROF_OBSERVE_CAPTURE(cudaStreamBeginCaptureToGraph, capture_began)
GPUPROF_OBSERVE_CAPTURE(cudaStreamBeginCaptureToGraph_ptsz, capture_began)
GPUPROF_OBSERVE_END_CAPTURE(cudaStreamEndCapture)
GPUPROF_OBSERVE_END_CAPTURE(cudaStreamEndCapture_ptsz)
GPUPROF_OBSERVE_INSTANTIATE(cudaGraphInstantiate)
GPUPROF_OBSERVE_INSTANTIATE(cudaGraphInstantiateWithFlags)
GPUPROF_OBSERVE_INSTANTIATE(cudaGraphInstantiateWithParams)
GPUPROF_OBSERVE_INSTANTIATE(cudaGraphInstantiateWithParams_ptsz)
GPUPROF_OBSERVE_UPDATE(cudaGraphExecUpdate)
GPUPROF_OBSERVE_DESTROY(cudaGraphExecDestroy)

// ---- hooks -------------------------------------------------------------------------------------

namespace {

// Expands to X(...) for rows of this file's library, to nothing for the others.
#define GPUPROF_ROWS_cudart(X, symbol, model) X(symbol, model)
#define GPUPROF_ROWS_driver(X, symbol, model)
#define GPUPROF_ROWS_nccl(X, symbol, model)
#define GPUPROF_SIGNATURE(model) HookSignature<decltype(::model)>::type

[[gnu::used]] void export_hooks() {
#define GPUPROF_EXPORT_ROW(symbol, model) GPUPROF_EXPORT_HOOK(symbol, GPUPROF_SIGNATURE(model));
#define GPUPROF_API(library, symbol, role) \
  GPUPROF_ROWS_##library(GPUPROF_EXPORT_ROW, symbol, symbol)
#define GPUPROF_API_AS(library, symbol, model, role) \
  GPUPROF_ROWS_##library(GPUPROF_EXPORT_ROW, symbol, model)
#define GPUPROF_CALLBACK(library, symbol, role)
#define GPUPROF_HAND(library, symbol)
#include "preload/apis.def"
#undef GPUPROF_API
#undef GPUPROF_API_AS
#undef GPUPROF_CALLBACK
#undef GPUPROF_HAND
#undef GPUPROF_EXPORT_ROW
}

}  // namespace

void fill_cudart_slots() {
#define GPUPROF_FILL_SLOT(symbol, model)                                            \
  {                                                                                 \
    using RowHook = Hook<Api::symbol, GPUPROF_SIGNATURE(model)>;                    \
    fill_slot(Api::symbol, reinterpret_cast<void*>(&RowHook::enter), &RowHook::get, \
              &RowHook::set);                                                       \
  }
#define GPUPROF_API(library, symbol, role) GPUPROF_ROWS_##library(GPUPROF_FILL_SLOT, symbol, symbol)
#define GPUPROF_API_AS(library, symbol, model, role) \
  GPUPROF_ROWS_##library(GPUPROF_FILL_SLOT, symbol, model)
#define GPUPROF_CALLBACK(library, symbol, role)
#define GPUPROF_HAND(library, symbol)
#include "preload/apis.def"
#undef GPUPROF_API
#undef GPUPROF_API_AS
#undef GPUPROF_CALLBACK
#undef GPUPROF_HAND
#undef GPUPROF_FILL_SLOT
}

#undef GPUPROF_ROWS_cudart
#undef GPUPROF_ROWS_driver
#undef GPUPROF_ROWS_nccl
#undef GPUPROF_SIGNATURE

}  // namespace gpuprof
