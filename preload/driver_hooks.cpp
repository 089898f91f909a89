// SPDX-License-Identifier: Apache-2.0
// The CUDA driver: what each kind of call keeps of its arguments, and the hooks of apis.def's rows.
// Programs reach them by linking, by dlsym and, CUDA's own libraries among them, by
// cuGetProcAddress (driver_proc_address.cpp).
#include <cuda.h>

#include "preload/any_signatures.h"
#include "preload/cuda_arguments.h"
#include "preload/driver_functions.h"

namespace gpuprof {

// As in cudart_hooks.cpp: found through their tag's namespace.

template <typename T>
[[maybe_unused]] static uint64_t bits(T* pointer) {
  return reinterpret_cast<uint64_t>(pointer);
}
[[maybe_unused]] static uint64_t bits(CUdeviceptr address) { return address; }

// ---- launches ----------------------------------------------------------------------------------

using Launch = KindTag<Kind::launch>;
template <typename... Arguments>
[[maybe_unused]] static void hold(HeldPayload& held, CUfunction function, unsigned grid_x,
                                  unsigned grid_y, unsigned grid_z, unsigned block_x,
                                  unsigned block_y, unsigned block_z, unsigned shared,
                                  CUstream stream, void**, Arguments...) {
  hold_launch(held, bits(function), grid_x | uint64_t{grid_y} << 32, grid_z,
              block_x | uint64_t{block_y} << 32, block_z, shared, stream);
}
[[maybe_unused]] static void capture(Record& r, Launch, CUresult result,
                                     const CUlaunchConfig* config, CUfunction function, void**,
                                     void**) {
  HeldPayload held{};
  held.words[0] = bits(function);
  if (config) {
    hold(held, function, config->gridDimX, config->gridDimY, config->gridDimZ, config->blockDimX,
         config->blockDimY, config->blockDimZ, config->sharedMemBytes, config->hStream, nullptr);
  }
  release(r, held, result);
}
[[maybe_unused]] static void capture(Record& r, Launch, CUresult result, CUgraphExec graph,
                                     CUstream stream) {
  HeldPayload held{};
  held.words[0] = bits(graph);
  held.words[1] = bits(stream);
  release(r, held, result);
}

#ifndef GPUPROF_NOP
template <typename... Arguments>
[[maybe_unused]] static StepSubject step_subject(Launch, CUfunction function, Arguments...) {
  return {function};
}
[[maybe_unused]] static StepSubject step_subject(Launch, const CUlaunchConfig*, CUfunction function,
                                                 void**, void**) {
  return {function};
}
[[maybe_unused]] static StepSubject step_subject(Launch, CUgraphExec graph, CUstream) {
  return {graph};
}
#endif

// ---- copies and sets ---------------------------------------------------------------------------

// cudaMemcpyKind of the name: cuMemcpyHtoD..., cuMemcpyDtoH..., cuMemcpyDtoD..., ...Peer..., and
// all others, where the addresses tell.
[[maybe_unused]] static uint8_t direction_of(ApiId api) {
  const char* const way = kApiRows[api].name + 8;  // past "cuMemcpy"
  if (way[0] == 'H') return 1;
  if (way[0] == 'D') return way[3] == 'H' ? 2 : 3;
  const bool peer = way[0] == 'P' || (way[0] == '3' && way[1] == 'D' && way[2] == 'P');
  return peer ? 3 : 4;
}
static void fill_copy(Record& r, CUresult result, uint64_t to, uint64_t from, size_t bytes,
                      CUstream stream) {
  r.copy = {to, from, bytes, bits(stream), direction_of(r.api), 0, static_cast<int16_t>(result), 0};
}
using Copy = KindTag<Kind::copy>;
template <typename To, typename From>
[[maybe_unused]] static void capture(Record& r, Copy, CUresult result, To to, From from,
                                     size_t bytes, CUstream stream = nullptr) {
  fill_copy(r, result, bits(to), bits(from), bytes, stream);
}
[[maybe_unused]] static void capture(Record& r, Copy, CUresult result, CUdeviceptr to, CUcontext,
                                     CUdeviceptr from, CUcontext, size_t bytes,
                                     CUstream stream = nullptr) {
  fill_copy(r, result, to, from, bytes, stream);
}
template <typename Copied>
static void fill_boxes(Record& r, CUresult result, const Copied* c, size_t depth, CUstream stream) {
  const bool to_host = c->dstMemoryType == CU_MEMORYTYPE_HOST;
  const bool from_host = c->srcMemoryType == CU_MEMORYTYPE_HOST;
  fill_copy(r, result, to_host ? bits(c->dstHost) : c->dstDevice,
            from_host ? bits(c->srcHost) : c->srcDevice, c->WidthInBytes * c->Height * depth,
            stream);
}
[[maybe_unused]] static void capture(Record& r, Copy, CUresult result, const CUDA_MEMCPY2D* c,
                                     CUstream stream = nullptr) {
  if (!c) return fill_copy(r, result, 0, 0, 0, stream);
  fill_boxes(r, result, c, 1, stream);
}
[[maybe_unused]] static void capture(Record& r, Copy, CUresult result, const CUDA_MEMCPY3D* c,
                                     CUstream stream = nullptr) {
  if (!c) return fill_copy(r, result, 0, 0, 0, stream);
  fill_boxes(r, result, c, c->Depth, stream);
}

[[maybe_unused]] static void capture(Record& r, Copy, CUresult result, const CUDA_MEMCPY3D_PEER* c,
                                     CUstream stream = nullptr) {
  if (!c) return fill_copy(r, result, 0, 0, 0, stream);
  fill_boxes(r, result, c, c->Depth, stream);
}
// Batches: the first copy's places, the bytes of all.
[[maybe_unused]] static void capture(Record& r, Copy, CUresult result, CUdeviceptr* to,
                                     CUdeviceptr* from, size_t* sizes, size_t count,
                                     CUmemcpyAttributes*, size_t*, size_t, CUstream stream) {
  const bool any = result == CUDA_SUCCESS && count != 0;
  fill_copy(r, result, any ? *to : 0, any ? *from : 0, any ? sum_of(sizes, count) : 0, stream);
}
[[maybe_unused]] static void capture(Record& r, Copy copy, CUresult result, CUdeviceptr* to,
                                     CUdeviceptr* from, size_t* sizes, size_t count,
                                     CUmemcpyAttributes*, size_t*, size_t, size_t*,
                                     CUstream stream) {
  capture(r, copy, result, to, from, sizes, count, nullptr, nullptr, 0, stream);
}
[[maybe_unused]] static void capture(Record& r, Copy, CUresult result, size_t count,
                                     CUDA_MEMCPY3D_BATCH_OP* copies, unsigned long long,
                                     CUstream stream) {
  const bool any = result == CUDA_SUCCESS && count != 0;
  fill_copy(r, result, 0, 0, any ? volume_of(copies, count) : 0, stream);
}
[[maybe_unused]] static void capture(Record& r, Copy copy, CUresult result, size_t count,
                                     CUDA_MEMCPY3D_BATCH_OP* copies, size_t*,
                                     unsigned long long flags, CUstream stream) {
  capture(r, copy, result, count, copies, flags, stream);
}

[[maybe_unused]] static void fill_set(Record& r, CUresult result, CUdeviceptr address,
                                      uint32_t value, size_t bytes, CUstream stream) {
  r.set = {address, bytes, bits(stream), value, static_cast<int16_t>(result), 0, 0, 0};
}
using Set = KindTag<Kind::set>;
template <typename Value>
[[maybe_unused]] static void capture(Record& r, Set, CUresult result, CUdeviceptr address,
                                     Value value, size_t count, CUstream stream = nullptr) {
  fill_set(r, result, address, value, count * sizeof value, stream);
}
template <typename Value>
[[maybe_unused]] static void capture(Record& r, Set, CUresult result, CUdeviceptr address, size_t,
                                     Value value, size_t width, size_t height,
                                     CUstream stream = nullptr) {
  fill_set(r, result, address, value, width * height * sizeof value, stream);
}

// ---- memory ------------------------------------------------------------------------------------

static void fill_memory(Record& r, CUresult result, uint64_t address, size_t bytes, CUstream stream,
                        uint64_t pool) {
  r.memory = {address, bytes, bits(stream), pool, static_cast<int16_t>(result), 0, 0};
}
// The value exists only when the call succeeded; before, the variable is the program's garbage.
static uint64_t given(CUresult result, const CUdeviceptr* out) {
  return result == CUDA_SUCCESS && out ? *out : 0;
}
template <typename T>
static uint64_t given(CUresult result, T* const* out) {
  return result == CUDA_SUCCESS && out ? bits(*out) : 0;
}
using Alloc = KindTag<Kind::alloc>;
template <typename Out>
[[maybe_unused]] static void capture(Record& r, Alloc, CUresult result, Out* out, size_t bytes) {
  fill_memory(r, result, given(result, out), bytes, nullptr, 0);
}
template <typename Out>
[[maybe_unused]] static void capture(Record& r, Alloc, CUresult result, Out* out, size_t bytes,
                                     unsigned) {
  fill_memory(r, result, given(result, out), bytes, nullptr, 0);
}
[[maybe_unused]] static void capture(Record& r, Alloc, CUresult result, void* address, size_t bytes,
                                     unsigned) {  // cuMemHostRegister
  fill_memory(r, result, bits(address), bytes, nullptr, 0);
}
[[maybe_unused]] static void capture(Record& r, Alloc, CUresult result, CUdeviceptr* out,
                                     size_t* pitch, size_t width, size_t height, unsigned) {
  const size_t row = result == CUDA_SUCCESS && pitch ? *pitch : width;
  fill_memory(r, result, given(result, out), row * height, nullptr, 0);
}
[[maybe_unused]] static void capture(Record& r, Alloc, CUresult result, CUdeviceptr* out,
                                     size_t bytes, CUstream stream) {
  fill_memory(r, result, given(result, out), bytes, stream, 0);
}
[[maybe_unused]] static void capture(Record& r, Alloc, CUresult result, CUdeviceptr* out,
                                     size_t bytes, CUmemoryPool pool, CUstream stream) {
  fill_memory(r, result, given(result, out), bytes, stream, bits(pool));
}
// cuMemMap: memory begins to exist at an address when it is mapped there.
[[maybe_unused]] static void capture(Record& r, Alloc, CUresult result, CUdeviceptr address,
                                     size_t bytes, size_t, CUmemGenericAllocationHandle handle,
                                     unsigned long long) {
  fill_memory(r, result, address, bytes, nullptr, handle);
}
using Dealloc = KindTag<Kind::dealloc>;
template <typename Address>
[[maybe_unused]] static void capture(Record& r, Dealloc, CUresult result, Address address,
                                     CUstream stream = nullptr) {
  fill_memory(r, result, bits(address), 0, stream, 0);
}
[[maybe_unused]] static void capture(Record& r, Dealloc, CUresult result, CUdeviceptr address,
                                     size_t bytes) {  // cuMemUnmap
  fill_memory(r, result, address, bytes, nullptr, 0);
}

// ---- synchronisation, events, streams, the rest ------------------------------------------------

using Sync = KindTag<Kind::sync>;
[[maybe_unused]] static void capture(Record& r, Sync, CUresult result, CUcontext = nullptr) {
  fill_sync(r, result, nullptr, nullptr);
}
[[maybe_unused]] static void capture(Record& r, Sync, CUresult result, CUstream stream) {
  fill_sync(r, result, stream, nullptr);
}
[[maybe_unused]] static void capture(Record& r, Sync, CUresult result, CUevent event) {
  fill_sync(r, result, nullptr, event);
}
using Event = KindTag<Kind::event>;
[[maybe_unused]] static void capture(Record& r, Event, CUresult result, CUevent* event,
                                     unsigned flags) {
  fill_sync(r, result, nullptr, result == CUDA_SUCCESS && event ? *event : nullptr, flags);
}
[[maybe_unused]] static void capture(Record& r, Event, CUresult result, CUevent event,
                                     CUstream stream = nullptr, unsigned flags = 0) {
  fill_sync(r, result, stream, event, flags);
}
using Stream = KindTag<Kind::stream>;
[[maybe_unused]] static void capture(Record& r, Stream, CUresult result, CUstream* stream,
                                     CUgreenCtx, unsigned flags, int) {
  fill_sync(r, result, result == CUDA_SUCCESS && stream ? *stream : nullptr, nullptr, flags);
}
[[maybe_unused]] static void capture(Record& r, Stream, CUresult result, CUstream* stream,
                                     unsigned flags, int = 0) {
  fill_sync(r, result, result == CUDA_SUCCESS && stream ? *stream : nullptr, nullptr, flags);
}
[[maybe_unused]] static void capture(Record& r, Stream, CUresult result, CUstream stream,
                                     CUevent event = nullptr, unsigned flags = 0) {
  fill_sync(r, result, stream, event, flags);
}
using Call = KindTag<Kind::call>;
[[maybe_unused]] static void capture(Record& r, Call, CUresult result) {
  r.call = {0, 0, static_cast<int32_t>(result)};
}
template <typename Handle, typename... Rest>
[[maybe_unused]] static void capture(Record& r, Call, CUresult result, Handle handle, Rest...) {
  r.call = {bits(handle), 0, static_cast<int32_t>(result)};
}
// What a call has made: a mapping's parts, a module, an executable graph.
template <typename... Rest>
[[maybe_unused]] static void capture(Record& r, Call, CUresult result, CUdeviceptr* out, Rest...) {
  r.call = {given(result, out), 0, static_cast<int32_t>(result)};
}
template <typename Handle, typename... Rest>
[[maybe_unused]] static void capture(Record& r, Call, CUresult result, Handle** out, Rest...) {
  r.call = {given(result, out), 0, static_cast<int32_t>(result)};
}

// ---- captures into graphs ----------------------------------------------------------------------

GPUPROF_OBSERVE_CAPTURE(cuStreamBeginCapture_v2, capture_began)
GPUPROF_OBSERVE_CAPTURE(cuStreamBeginCapture_v2_ptsz, capture_began)
GPUPROF_OBSERVE_CAPTURE(cuStreamBeginCaptureToGraph, capture_began)
GPUPROF_OBSERVE_CAPTURE(cuStreamBeginCaptureToGraph_ptsz, capture_began)
GPUPROF_OBSERVE_END_CAPTURE(cuStreamEndCapture)
GPUPROF_OBSERVE_END_CAPTURE(cuStreamEndCapture_ptsz)
GPUPROF_OBSERVE_INSTANTIATE(cuGraphInstantiate)
GPUPROF_OBSERVE_INSTANTIATE(cuGraphInstantiate_v2)
GPUPROF_OBSERVE_INSTANTIATE(cuGraphInstantiateWithFlags)
GPUPROF_OBSERVE_INSTANTIATE(cuGraphInstantiateWithParams)
GPUPROF_OBSERVE_INSTANTIATE(cuGraphInstantiateWithParams_ptsz)
GPUPROF_OBSERVE_UPDATE(cuGraphExecUpdate)
GPUPROF_OBSERVE_UPDATE(cuGraphExecUpdate_v2)
GPUPROF_OBSERVE_DESTROY(cuGraphExecDestroy)

// ---- hooks -------------------------------------------------------------------------------------

// Expands to X(...) for rows of this file's library, to nothing for the others.
#define GPUPROF_ROWS_cudart(X, symbol, model)
#define GPUPROF_ROWS_driver(X, symbol, model) X(symbol, model)
#define GPUPROF_ROWS_nccl(X, symbol, model)
#define GPUPROF_API(library, symbol, role)
#define GPUPROF_CALLBACK(library, symbol, role)
#define GPUPROF_HAND(library, symbol)

namespace {
[[gnu::used]] void export_hooks() {
#define GPUPROF_EXPORT_ROW(symbol, model) GPUPROF_EXPORT_HOOK(symbol, decltype(::model));
#define GPUPROF_API_AS(library, symbol, model, role) \
  GPUPROF_ROWS_##library(GPUPROF_EXPORT_ROW, symbol, model)
#include "preload/apis.def"
#undef GPUPROF_API_AS
#undef GPUPROF_EXPORT_ROW
}
}  // namespace

void fill_driver_hand_slots();

void fill_driver_slots() {
#define GPUPROF_FILL_SLOT(symbol, model)                                            \
  {                                                                                 \
    using RowHook = Hook<Api::symbol, decltype(::model)>;                           \
    fill_slot(Api::symbol, reinterpret_cast<void*>(&RowHook::enter), &RowHook::get, \
              &RowHook::set);                                                       \
  }
#define GPUPROF_API_AS(library, symbol, model, role) \
  GPUPROF_ROWS_##library(GPUPROF_FILL_SLOT, symbol, model)
#include "preload/apis.def"
#undef GPUPROF_API_AS
#undef GPUPROF_FILL_SLOT
  fill_driver_hand_slots();
}

#undef GPUPROF_ROWS_cudart
#undef GPUPROF_ROWS_driver
#undef GPUPROF_ROWS_nccl
#undef GPUPROF_API
#undef GPUPROF_CALLBACK
#undef GPUPROF_HAND

}  // namespace gpuprof
