// SPDX-License-Identifier: Apache-2.0
// Green contexts: a share of a device's multiprocessors with streams of its own. Limits of a
// context, which are kept and limit nothing. And a program's marks of what is worth profiling.
#include <array>
#include <atomic>

#include "tests/simcuda/driver/driver_api.h"

// What the opaque handle is here.
struct CUgreenCtx_st {
  int device;
  uint32_t context_id;
};

namespace gpuprof::simcuda {
namespace {

SIM_GETTER(cuDeviceGetDevResource)
SIM_GETTER(cuDevResourceGenerateDesc)
SIM_API(cuGreenCtxCreate)
SIM_API(cuGreenCtxDestroy)
SIM_API(cuCtxFromGreenCtx)
SIM_API(cuGreenCtxStreamCreate)
SIM_API(cuGreenCtxRecordEvent)
SIM_API(cuGreenCtxWaitEvent)
SIM_GETTER(cuCtxGetLimit)
SIM_GETTER(cuCtxSetLimit)
SIM_API(cuProfilerStart)
SIM_API(cuProfilerStop)

constexpr uint32_t kFirstGreenContext = 101;  // after those of the devices
std::array<std::atomic<size_t>, CU_LIMIT_MAX> limits{1024, 1 << 20,
                                                     8 << 20};  // stack, printf, heap

}  // namespace
}  // namespace gpuprof::simcuda

using namespace gpuprof::simcuda;

extern "C" {

CUresult cuDeviceGetDevResource(CUdevice, CUdevResource* out, CUdevResourceType type) {
  return driver_only(k_cuDeviceGetDevResource, [&](ApiCall&) {
    if (out == nullptr || type != CU_DEV_RESOURCE_TYPE_SM) return cudaErrorInvalidValue;
    *out = CUdevResource{};
    out->type = type;
    out->sm.smCount = 132;
    return cudaSuccess;
  });
}
CUresult cuDevResourceGenerateDesc(CUdevResourceDesc* out, CUdevResource* resources, unsigned n) {
  return driver_only(k_cuDevResourceGenerateDesc, [&](ApiCall&) {
    if (out == nullptr || resources == nullptr || n == 0) return cudaErrorInvalidValue;
    *out = reinterpret_cast<CUdevResourceDesc>(resources);
    return cudaSuccess;
  });
}
CUresult cuGreenCtxCreate(CUgreenCtx* out, CUdevResourceDesc resources, CUdevice device, unsigned) {
  return driver_only(k_cuGreenCtxCreate, [&](ApiCall& call) {
    if (out == nullptr || resources == nullptr || !valid_device(device)) {
      return cudaErrorInvalidValue;
    }
    call.details.device = device;
    static std::atomic<uint32_t> next{kFirstGreenContext};
    *out = new CUgreenCtx_st{device, next++};
    return cudaSuccess;
  });
}
CUresult cuGreenCtxDestroy(CUgreenCtx context) {
  return driver_only(k_cuGreenCtxDestroy, [&](ApiCall&) {
    delete context;
    return cudaSuccess;
  });
}
// As a context that can be made current it stands for its device.
CUresult cuCtxFromGreenCtx(CUcontext* out, CUgreenCtx context) {
  return driver_only(k_cuCtxFromGreenCtx, [&](ApiCall&) {
    if (out == nullptr || context == nullptr) return cudaErrorInvalidValue;
    *out = reinterpret_cast<CUcontext>(static_cast<intptr_t>(context->device) + 1);
    return cudaSuccess;
  });
}
CUresult cuGreenCtxStreamCreate(CUstream* out, CUgreenCtx context, unsigned flags, int priority) {
  return driver_only(k_cuGreenCtxStreamCreate, [&](ApiCall& call) {
    // A stream of a green context never waits for the legacy default stream.
    if (out == nullptr || context == nullptr || flags != CU_STREAM_NON_BLOCKING) {
      return cudaErrorInvalidValue;
    }
    Core& core = Core::instance();
    const Core::Lock held = core.lock();
    const auto stream = core.create_stream(core.device(context->device), flags, priority,
                                           call.correlation(), context->context_id);
    call.details.device = context->device;
    call.details.stream = stream->id;
    *out = reinterpret_cast<CUstream>(stream.get());
    return cudaSuccess;
  });
}
CUresult cuGreenCtxRecordEvent(CUgreenCtx, CUevent) {
  return driver_only(k_cuGreenCtxRecordEvent, [](ApiCall&) { return cudaSuccess; });
}
CUresult cuGreenCtxWaitEvent(CUgreenCtx, CUevent) {
  return driver_only(k_cuGreenCtxWaitEvent, [](ApiCall&) { return cudaSuccess; });
}

CUresult cuCtxGetLimit(size_t* out, CUlimit limit) {
  return driver_only(k_cuCtxGetLimit, [&](ApiCall&) {
    if (out == nullptr) return cudaErrorInvalidValue;
    if (limit >= CU_LIMIT_MAX) return cudaErrorUnsupportedLimit;
    *out = limits[limit];
    return cudaSuccess;
  });
}
CUresult cuCtxSetLimit(CUlimit limit, size_t value) {
  return driver_only(k_cuCtxSetLimit, [&](ApiCall&) {
    if (limit >= CU_LIMIT_MAX) return cudaErrorUnsupportedLimit;
    limits[limit] = value;
    return cudaSuccess;
  });
}

CUresult cuProfilerStart(void) {
  return driver_only(k_cuProfilerStart, [](ApiCall&) { return cudaSuccess; });
}
CUresult cuProfilerStop(void) {
  return driver_only(k_cuProfilerStop, [](ApiCall&) { return cudaSuccess; });
}

}  // extern "C"
