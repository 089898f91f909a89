// SPDX-License-Identifier: Apache-2.0
// Contexts: primary ones, and which is current on a thread.
#include "tests/simcuda/driver/driver_api.h"

namespace gpuprof::simcuda {
namespace {

SIM_GETTER(cuDevicePrimaryCtxGetState)
SIM_GETTER(cuCtxGetId)
SIM_GETTER(cuCtxGetDevice)
SIM_GETTER(cuStreamGetCtx)
SIM_GETTER(cuStreamGetCtx_ptsz)

// A device's primary context has the device's number plus one for a handle.
CUcontext primary_of(int device) {
  return reinterpret_cast<CUcontext>(static_cast<intptr_t>(device) + 1);
}

int device_of(CUcontext context) {
  return static_cast<int>(reinterpret_cast<intptr_t>(context)) - 1;
}

CUresult context_of_stream(const ApiInfo& api, CUstream handle, bool per_thread, CUcontext* out) {
  return driver_only(api, [&](ApiCall&) {
    if (out == nullptr) return cudaErrorInvalidValue;
    if (handle == nullptr && !thread_state().has_context) return cudaErrorDeviceUninitialized;
    Core& core = Core::instance();
    const Core::Lock held = core.lock();
    const auto stream = core.stream(handle, per_thread);
    if (stream == nullptr) return cudaErrorInvalidResourceHandle;
    *out = primary_of(stream->device);
    return cudaSuccess;
  });
}

}  // namespace
}  // namespace gpuprof::simcuda

using namespace gpuprof::simcuda;

extern "C" {

CUresult cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice device) {
  if (context == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (!valid_device(device)) return CUDA_ERROR_INVALID_DEVICE;
  *context = primary_of(device);
  return CUDA_SUCCESS;
}
CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device) {
  return valid_device(device) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}
CUresult cuDevicePrimaryCtxGetState(CUdevice device, unsigned* flags, int* active) {
  return driver_only(k_cuDevicePrimaryCtxGetState, [&](ApiCall&) {
    if (flags == nullptr || active == nullptr) return cudaErrorInvalidValue;
    if (!valid_device(device)) return cudaErrorInvalidDevice;
    *flags = 0;
    const Core::Lock held = Core::instance().lock();
    *active = Core::instance().has_context(device) ? 1 : 0;
    return cudaSuccess;
  });
}

CUresult cuCtxSetCurrent(CUcontext context) {
  ThreadState& thread = thread_state();
  if (context != nullptr && !valid_device(device_of(context))) return CUDA_ERROR_INVALID_CONTEXT;
  thread.has_context = context != nullptr;
  thread.device = context != nullptr ? device_of(context) : thread.runtime_device;
  return CUDA_SUCCESS;
}
// "If no context is bound to the calling CPU thread then *pctx is set to NULL" (cuCtxGetCurrent).
CUresult cuCtxGetCurrent(CUcontext* context) {
  if (context == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const ThreadState& thread = thread_state();
  *context = thread.has_context ? primary_of(thread.device) : nullptr;
  return CUDA_SUCCESS;
}
// The number that CUPTI's records have; of a context that was destroyed none (CUDA driver API,
// cuCtxGetId: CUDA_ERROR_CONTEXT_IS_DESTROYED).
CUresult cuCtxGetId(CUcontext context, unsigned long long* id) {
  return driver_only(k_cuCtxGetId, [&](ApiCall&) {
    if (context == nullptr && !thread_state().has_context) return cudaErrorDeviceUninitialized;
    const int device = context == nullptr ? thread_state().device : device_of(context);
    if (id == nullptr || !valid_device(device)) return cudaErrorInvalidValue;
    Core& core = Core::instance();
    const Core::Lock held = core.lock();
    *id = core.device(device).context_id;
    return cudaSuccess;
  });
}
CUresult cuCtxGetDevice(CUdevice* device) {
  return driver_only(k_cuCtxGetDevice, [&](ApiCall&) {
    if (device == nullptr) return cudaErrorInvalidValue;
    if (!thread_state().has_context) return cudaErrorDeviceUninitialized;
    *device = thread_state().device;
    return cudaSuccess;
  });
}
CUresult cuStreamGetCtx(CUstream stream, CUcontext* out) {
  return context_of_stream(k_cuStreamGetCtx, stream, false, out);
}
CUresult cuStreamGetCtx_ptsz(CUstream stream, CUcontext* out) {
  return context_of_stream(k_cuStreamGetCtx_ptsz, stream, true, out);
}

}  // extern "C"
