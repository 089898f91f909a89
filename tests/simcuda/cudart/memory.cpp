// SPDX-License-Identifier: Apache-2.0
// Allocation: device, host, managed, pitched. Pools are in memory_pool.cpp.
#include <cupti.h>

#include "tests/simcuda/core/clock.h"
#include "tests/simcuda/cudart/entry_points.h"

namespace gpuprof::simcuda {
namespace {

constexpr size_t kPitch = 512;

void report(ApiCall& call, const Allocation& memory, bool allocation) {
  Core& core = Core::instance();
  MemoryInfo info;
  info.allocation = allocation;
  info.kind = memory.kind;
  info.address = memory.address;
  info.bytes = memory.bytes;
  info.time = now_ns();
  info.device = memory.device;
  info.correlation = call.correlation();
  const Core::Lock held = core.lock();
  info.context_id = core.device(thread_state().device).context_id;
  core.report_memory(info);
}

// Memory of a device is not had, nor given back, where a capture forbids what is unsafe: "a call to
// cudaMalloc" is (CUDA runtime API, cudaThreadExchangeStreamCaptureMode), and cudaFree (Warp 1.19,
// CaptureMode). Of the host's memory no document tells.
cudaError_t refuse_unsafe_call(MemoryKind kind) {
  Core& core = Core::instance();
  const Core::Lock held = core.lock();
  return kind == MemoryKind::kDevice ? core.refuse_unsafe_call() : cudaSuccess;
}

cudaError_t allocate(ApiCall& call, MemoryKind kind, void** out, size_t bytes) {
  call.details.device = thread_state().device;
  call.details.bytes = static_cast<int64_t>(bytes);
  if (out == nullptr) return cudaErrorInvalidValue;
  *out = nullptr;
  if (bytes == 0) return cudaSuccess;
  if (const cudaError_t refused = refuse_unsafe_call(kind)) return refused;
  const auto memory = Core::instance().memory().allocate(kind, bytes, thread_state().device, false);
  if (!memory) return cudaErrorMemoryAllocation;
  *out = reinterpret_cast<void*>(memory->address);
  call.details.pointer = *out;
  report(call, *memory, true);
  return cudaSuccess;
}

void wait_for_device() {
  Core& core = Core::instance();
  Core::Lock held = core.lock();
  std::vector<OpPtr> ops = core.tail(core.device(thread_state().device));
  core.block_on(std::move(held), std::move(ops));
}

// Freeing waits for the device, as with the real runtime: one reason why it is slow in a loop. But
// there is no "implicit synchronization when the pointer was allocated with cudaMallocAsync or
// cudaMallocFromPoolAsync" (CUDA runtime API, cudaFree).
cudaError_t release(ApiCall& call, void* pointer, bool host) {
  call.details.device = thread_state().device;
  call.details.pointer = pointer;
  Core& core = Core::instance();
  if (pointer == nullptr) {
    const Core::Lock held = core.lock();
    core.device(thread_state().device);  // cudaFree(0) is the idiom that starts a context
    return cudaSuccess;
  }
  const auto known = core.memory().find(pointer);
  const bool is_host = known && known->kind == MemoryKind::kPinned;
  if (!known || known->registered || is_host != host ||
      known->address != reinterpret_cast<uintptr_t>(pointer)) {
    return cudaErrorInvalidValue;
  }
  if (const cudaError_t refused = refuse_unsafe_call(known->kind)) return refused;
  if (!known->pooled) wait_for_device();
  const auto memory = core.memory().release(pointer);
  if (!memory) return cudaErrorInvalidValue;
  call.details.bytes = static_cast<int64_t>(memory->bytes);
  report(call, *memory, false);
  return cudaSuccess;
}

constexpr ApiInfo kMalloc{"cudaMalloc", CUPTI_RUNTIME_TRACE_CBID_cudaMalloc_v3020};
constexpr ApiInfo kFree{"cudaFree", CUPTI_RUNTIME_TRACE_CBID_cudaFree_v3020};
constexpr ApiInfo kMallocHost{"cudaMallocHost", CUPTI_RUNTIME_TRACE_CBID_cudaMallocHost_v3020};
constexpr ApiInfo kHostAlloc{"cudaHostAlloc", CUPTI_RUNTIME_TRACE_CBID_cudaHostAlloc_v3020};
constexpr ApiInfo kFreeHost{"cudaFreeHost", CUPTI_RUNTIME_TRACE_CBID_cudaFreeHost_v3020};
constexpr ApiInfo kManaged{"cudaMallocManaged", CUPTI_RUNTIME_TRACE_CBID_cudaMallocManaged_v6000};
constexpr ApiInfo kPitched{"cudaMallocPitch", CUPTI_RUNTIME_TRACE_CBID_cudaMallocPitch_v3020};
constexpr ApiInfo kRegister{"cudaHostRegister", CUPTI_RUNTIME_TRACE_CBID_cudaHostRegister_v4000};
constexpr ApiInfo kUnregister{"cudaHostUnregister",
                              CUPTI_RUNTIME_TRACE_CBID_cudaHostUnregister_v4000};
constexpr ApiInfo kDevicePointer{"cudaHostGetDevicePointer",
                                 CUPTI_RUNTIME_TRACE_CBID_cudaHostGetDevicePointer_v3020, true};
constexpr ApiInfo kAttributes{"cudaPointerGetAttributes",
                              CUPTI_RUNTIME_TRACE_CBID_cudaPointerGetAttributes_v4000, true};

cudaMemoryType memory_type(MemoryKind kind) {
  if (kind == MemoryKind::kDevice) return cudaMemoryTypeDevice;
  return kind == MemoryKind::kManaged ? cudaMemoryTypeManaged : cudaMemoryTypeHost;
}

}  // namespace
}  // namespace gpuprof::simcuda

using namespace gpuprof::simcuda;

extern "C" {

cudaError_t cudaMalloc(void** out, size_t bytes) {
  return run_api(kMalloc,
                 [&](ApiCall& call) { return allocate(call, MemoryKind::kDevice, out, bytes); });
}

cudaError_t cudaFree(void* pointer) {
  return run_api(kFree, [&](ApiCall& call) { return release(call, pointer, false); });
}

cudaError_t cudaMallocHost(void** out, size_t bytes) {
  return run_api(kMallocHost,
                 [&](ApiCall& call) { return allocate(call, MemoryKind::kPinned, out, bytes); });
}

cudaError_t cudaHostAlloc(void** out, size_t bytes, unsigned) {
  return run_api(kHostAlloc,
                 [&](ApiCall& call) { return allocate(call, MemoryKind::kPinned, out, bytes); });
}

cudaError_t cudaFreeHost(void* pointer) {
  return run_api(kFreeHost, [&](ApiCall& call) { return release(call, pointer, true); });
}

cudaError_t cudaMallocManaged(void** out, size_t bytes, unsigned) {
  return run_api(kManaged,
                 [&](ApiCall& call) { return allocate(call, MemoryKind::kManaged, out, bytes); });
}

cudaError_t cudaMallocPitch(void** out, size_t* pitch, size_t width, size_t height) {
  return run_api(kPitched, [&](ApiCall& call) {
    if (pitch == nullptr) return cudaErrorInvalidValue;
    *pitch = (width + kPitch - 1) / kPitch * kPitch;
    return allocate(call, MemoryKind::kDevice, out, *pitch * height);
  });
}

cudaError_t cudaHostRegister(void* pointer, size_t bytes, unsigned) {
  return run_api(kRegister, [&](ApiCall& call) {
    call.details.pointer = pointer;
    call.details.bytes = static_cast<int64_t>(bytes);
    if (pointer == nullptr || bytes == 0) return cudaErrorInvalidValue;
    return Core::instance().memory().register_host(pointer, bytes)
               ? cudaSuccess
               : cudaErrorHostMemoryAlreadyRegistered;
  });
}

cudaError_t cudaHostUnregister(void* pointer) {
  return run_api(kUnregister, [&](ApiCall& call) {
    call.details.pointer = pointer;
    MemoryMap& memory = Core::instance().memory();
    const auto known = memory.find(pointer);
    if (!known || !known->registered) return cudaErrorHostMemoryNotRegistered;
    memory.release(pointer);
    return cudaSuccess;
  });
}

cudaError_t cudaHostGetDevicePointer(void** out, void* host, unsigned) {
  return run_api(kDevicePointer, [&](ApiCall&) {
    if (out == nullptr || !Core::instance().memory().find(host)) return cudaErrorInvalidValue;
    *out = host;
    return cudaSuccess;
  });
}

cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* out, const void* pointer) {
  return run_api(kAttributes, [&](ApiCall&) {
    if (out == nullptr) return cudaErrorInvalidValue;
    *out = cudaPointerAttributes{};
    out->hostPointer = const_cast<void*>(pointer);
    const auto known = Core::instance().memory().find(pointer);
    if (!known) return cudaSuccess;
    out->type = memory_type(known->kind);
    out->device = known->device;
    out->devicePointer = const_cast<void*>(pointer);
    if (out->type == cudaMemoryTypeDevice) out->hostPointer = nullptr;
    return cudaSuccess;
  });
}

}  // extern "C"
