// SPDX-License-Identifier: Apache-2.0
// Contexts: primary ones, those that are made, and which is current on a thread.
#include "tests/simcuda/driver/driver_api.h"

namespace gpuprof::simcuda {
namespace {

SIM_API(cuCtxCreate_v4)
SIM_API(cuCtxDestroy_v2)
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

CUcontext handle_of(const std::shared_ptr<Context>& context) {
  return reinterpret_cast<CUcontext>(context.get());
}

CUcontext current_context() {
  const ThreadState& thread = thread_state();
  if (!thread.has_context) return nullptr;
  return thread.context != nullptr ? handle_of(thread.context) : primary_of(thread.device);
}

// Null: none.
void make_current(CUcontext handle, const std::shared_ptr<Context>& made) {
  ThreadState& thread = thread_state();
  thread.has_context = handle != nullptr;
  thread.context = made;
  thread.device = handle == nullptr ? thread.runtime_device
                  : made != nullptr ? made->device
                                    : device_of(handle);
}

std::shared_ptr<Context> made_context(CUcontext handle) {
  const Core::Lock held = Core::instance().lock();
  return Core::instance().context(handle);
}

CUresult context_of_stream(const ApiInfo& api, CUstream handle, bool per_thread, CUcontext* out) {
  return driver_only(api, [&](ApiCall&) {
    if (out == nullptr) return cudaErrorInvalidValue;
    if (handle == nullptr && !thread_state().has_context) return cudaErrorDeviceUninitialized;
    Core& core = Core::instance();
    const Core::Lock held = core.lock();
    const auto stream = core.stream(handle, per_thread);
    if (stream == nullptr) return cudaErrorInvalidResourceHandle;
    *out = stream->context_id == core.device(stream->device).context_id
               ? primary_of(stream->device)
               : handle_of(core.context_of(stream->context_id));
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

CUresult cuCtxCreate_v4(CUcontext* out, CUctxCreateParams*, unsigned, CUdevice device) {
  return driver_only(k_cuCtxCreate_v4, [&](ApiCall& call) {
    if (out == nullptr) return cudaErrorInvalidValue;
    if (!valid_device(device)) return cudaErrorInvalidDevice;
    call.details.device = device;
    const auto made = [device] {
      const Core::Lock held = Core::instance().lock();
      return Core::instance().create_context(device);
    }();
    *out = handle_of(made);
    make_current(*out, made);
    return cudaSuccess;
  });
}
// One that is current on this thread "will also be popped" (cuCtxDestroy): contexts are not
// stacked here, so none is current then.
CUresult cuCtxDestroy_v2(CUcontext context) {
  return driver_only(k_cuCtxDestroy_v2, [&](ApiCall&) {
    if (context != nullptr && current_context() == context) make_current(nullptr, nullptr);
    const Core::Lock held = Core::instance().lock();
    return Core::instance().destroy_context(context) ? cudaSuccess : cudaErrorContextIsDestroyed;
  });
}
CUresult cuCtxSetCurrent(CUcontext context) {
  const auto made = made_context(context);
  if (context != nullptr && made == nullptr && !valid_device(device_of(context))) {
    return CUDA_ERROR_INVALID_CONTEXT;
  }
  make_current(context, made);
  return CUDA_SUCCESS;
}
// "If no context is bound to the calling CPU thread then *pctx is set to NULL" (cuCtxGetCurrent).
CUresult cuCtxGetCurrent(CUcontext* context) {
  if (context == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *context = current_context();
  return CUDA_SUCCESS;
}
// The number that CUPTI's records have; of a context that was destroyed none (CUDA driver API,
// cuCtxGetId: CUDA_ERROR_CONTEXT_IS_DESTROYED).
CUresult cuCtxGetId(CUcontext context, unsigned long long* id) {
  return driver_only(k_cuCtxGetId, [&](ApiCall&) {
    if (context == nullptr) context = current_context();
    if (context == nullptr) return cudaErrorDeviceUninitialized;
    if (id == nullptr) return cudaErrorInvalidValue;
    Core& core = Core::instance();
    const Core::Lock held = core.lock();
    const auto made = core.context(context);
    if (made == nullptr && !valid_device(device_of(context))) return cudaErrorContextIsDestroyed;
    *id = made != nullptr ? made->id : core.device(device_of(context)).context_id;
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
