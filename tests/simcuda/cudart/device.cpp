// SPDX-License-Identifier: Apache-2.0
// Devices, their properties, device-wide synchronisation, the profiler switch.
#include <cupti.h>

#include <cstdio>
#include <cstring>

#include "tests/simcuda/core/clock.h"
#include "tests/simcuda/core/later_callbacks.h"
#include "tests/simcuda/core/version.h"
#include "tests/simcuda/cudart/entry_points.h"

namespace gpuprof::simcuda {
namespace {

cudaError_t attribute_value(cudaDeviceAttr attribute, int* value) {
  switch (attribute) {
    case cudaDevAttrMaxThreadsPerBlock:
    case cudaDevAttrMaxBlockDimX:
    case cudaDevAttrMaxBlockDimY: *value = 1024; break;
    case cudaDevAttrMaxBlockDimZ: *value = 64; break;
    case cudaDevAttrMaxGridDimX: *value = 2147483647; break;
    case cudaDevAttrMaxGridDimY:
    case cudaDevAttrMaxGridDimZ: *value = 65535; break;
    case cudaDevAttrMaxSharedMemoryPerBlock: *value = 48 * 1024; break;
    case cudaDevAttrMaxSharedMemoryPerBlockOptin: *value = 227 * 1024; break;
    case cudaDevAttrMaxSharedMemoryPerMultiprocessor: *value = 228 * 1024; break;
    case cudaDevAttrWarpSize: *value = 32; break;
    case cudaDevAttrMultiProcessorCount: *value = 132; break;
    case cudaDevAttrMaxThreadsPerMultiProcessor: *value = 2048; break;
    case cudaDevAttrClockRate: *value = 1'980'000; break;
    case cudaDevAttrComputeCapabilityMajor: *value = 9; break;
    case cudaDevAttrComputeCapabilityMinor: *value = 0; break;
    case cudaDevAttrAsyncEngineCount: *value = 2; break;
    case cudaDevAttrConcurrentKernels:
    case cudaDevAttrUnifiedAddressing:
    case cudaDevAttrManagedMemory:
    case cudaDevAttrCanMapHostMemory:
    case cudaDevAttrMemoryPoolsSupported:
    case cudaDevAttrCooperativeLaunch:
    case cudaDevAttrStreamPrioritiesSupported: *value = 1; break;
    default: *value = 0;
  }
  return cudaSuccess;
}

void fill_properties(cudaDeviceProp* p, int device) {
  const DeviceModel model = Core::instance().device_model(device);
  std::memset(p, 0, sizeof *p);
  std::snprintf(p->name, sizeof p->name, "%s", model.name);
  std::memcpy(p->uuid.bytes, "simcuda-device", 14);
  p->uuid.bytes[15] = static_cast<char>(device);
  p->totalGlobalMem = model.memory_bytes;
  p->sharedMemPerBlock = 48 * 1024;
  p->sharedMemPerBlockOptin = 227 * 1024;
  p->sharedMemPerMultiprocessor = 228 * 1024;
  p->regsPerBlock = p->regsPerMultiprocessor = 65536;
  p->warpSize = 32;
  p->maxThreadsPerBlock = 1024;
  p->maxThreadsDim[0] = p->maxThreadsDim[1] = 1024;
  p->maxThreadsDim[2] = 64;
  p->maxGridSize[0] = 2147483647;
  p->maxGridSize[1] = p->maxGridSize[2] = 65535;
  p->totalConstMem = 65536;
  p->major = 9;
  p->multiProcessorCount = static_cast<int>(model.multiprocessors);
  p->maxThreadsPerMultiProcessor = 2048;
  p->maxBlocksPerMultiProcessor = 32;
  p->asyncEngineCount = 2;
  p->concurrentKernels = p->unifiedAddressing = p->managedMemory = p->canMapHostMemory = 1;
  p->cooperativeLaunch = p->memoryPoolsSupported = p->streamPrioritiesSupported = 1;
  p->memoryBusWidth = 5120;
  p->l2CacheSize = 50 << 20;
  p->pciBusID = 0x10 + device;
}

cudaError_t synchronize_device(ApiCall& call) {
  Core& core = Core::instance();
  Core::Lock held = core.lock();
  Device& device = core.device(thread_state().device);
  call.details.device = device.index;
  const uint32_t context = device.context_id;
  if (const cudaError_t refused = core.refuse_wait(device)) return refused;
  std::vector<OpPtr> ops = core.tail(device);
  core.block_on(std::move(held), std::move(ops));
  core.report_sync(SyncInfo{SyncKind::kContext, call.details.device, context, UINT32_MAX, 0, 0,
                            call.correlation(), call.begin(), now_ns()});
  return cudaSuccess;
}

constexpr ApiInfo kGetCount{"cudaGetDeviceCount", CUPTI_RUNTIME_TRACE_CBID_cudaGetDeviceCount_v3020,
                            true};
constexpr ApiInfo kSetDevice{"cudaSetDevice", CUPTI_RUNTIME_TRACE_CBID_cudaSetDevice_v3020, true};
constexpr ApiInfo kGetDevice{"cudaGetDevice", CUPTI_RUNTIME_TRACE_CBID_cudaGetDevice_v3020, true};
constexpr ApiInfo kProperties{"cudaGetDeviceProperties",
                              CUPTI_RUNTIME_TRACE_CBID_cudaGetDeviceProperties_v12000, true};
constexpr ApiInfo kAttribute{"cudaDeviceGetAttribute",
                             CUPTI_RUNTIME_TRACE_CBID_cudaDeviceGetAttribute_v5000, true};
constexpr ApiInfo kRuntimeVersionApi{"cudaRuntimeGetVersion",
                                     CUPTI_RUNTIME_TRACE_CBID_cudaRuntimeGetVersion_v3020, true};
constexpr ApiInfo kDriverVersion{"cudaDriverGetVersion",
                                 CUPTI_RUNTIME_TRACE_CBID_cudaDriverGetVersion_v3020, true};
constexpr ApiInfo kMemInfo{"cudaMemGetInfo", CUPTI_RUNTIME_TRACE_CBID_cudaMemGetInfo_v3020, true};
constexpr ApiInfo kBusId{"cudaDeviceGetPCIBusId",
                         CUPTI_RUNTIME_TRACE_CBID_cudaDeviceGetPCIBusId_v4010, true};
constexpr ApiInfo kCanPeer{"cudaDeviceCanAccessPeer",
                           CUPTI_RUNTIME_TRACE_CBID_cudaDeviceCanAccessPeer_v4000, true};
constexpr ApiInfo kEnablePeer{"cudaDeviceEnablePeerAccess",
                              CUPTI_RUNTIME_TRACE_CBID_cudaDeviceEnablePeerAccess_v4000, true};
constexpr ApiInfo kSynchronize{"cudaDeviceSynchronize",
                               CUPTI_RUNTIME_TRACE_CBID_cudaDeviceSynchronize_v3020};
constexpr ApiInfo kContextWait{"cudaExecutionCtxSynchronize", kLaterContextWait};
constexpr ApiInfo kReset{"cudaDeviceReset", CUPTI_RUNTIME_TRACE_CBID_cudaDeviceReset_v3020};
constexpr ApiInfo kProfilerStart{"cudaProfilerStart",
                                 CUPTI_RUNTIME_TRACE_CBID_cudaProfilerStart_v4000};
constexpr ApiInfo kProfilerStop{"cudaProfilerStop",
                                CUPTI_RUNTIME_TRACE_CBID_cudaProfilerStop_v4000};

}  // namespace
}  // namespace gpuprof::simcuda

using namespace gpuprof::simcuda;

extern "C" {

cudaError_t cudaGetDeviceCount(int* count) {
  return run_api(kGetCount, [&](ApiCall&) {
    if (count == nullptr) return cudaErrorInvalidValue;
    *count = Core::instance().device_count();
    return cudaSuccess;
  });
}

cudaError_t cudaSetDevice(int device) {
  return run_api(kSetDevice, [&](ApiCall&) {
    if (!valid_device(device)) return cudaErrorInvalidDevice;
    thread_state().device = thread_state().runtime_device = device;
    thread_state().has_context = true;
    thread_state().context = nullptr;
    const Core::Lock held = Core::instance().lock();
    Core::instance().device(device);
    return cudaSuccess;
  });
}

cudaError_t cudaGetDevice(int* device) {
  return run_api(kGetDevice, [&](ApiCall&) {
    if (device == nullptr) return cudaErrorInvalidValue;
    *device = thread_state().device;
    return cudaSuccess;
  });
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
  return run_api(kProperties, [&](ApiCall&) {
    if (properties == nullptr) return cudaErrorInvalidValue;
    if (!valid_device(device)) return cudaErrorInvalidDevice;
    fill_properties(properties, device);
    return cudaSuccess;
  });
}

cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device) {
  return run_api(kAttribute, [&](ApiCall&) {
    if (value == nullptr) return cudaErrorInvalidValue;
    if (!valid_device(device)) return cudaErrorInvalidDevice;
    return attribute_value(attribute, value);
  });
}

cudaError_t cudaRuntimeGetVersion(int* version) {
  return run_api(kRuntimeVersionApi, [&](ApiCall&) {
    if (version == nullptr) return cudaErrorInvalidValue;
    *version = cuda_version();
    return cudaSuccess;
  });
}

cudaError_t cudaDriverGetVersion(int* version) {
  return run_api(kDriverVersion, [&](ApiCall&) {
    if (version == nullptr) return cudaErrorInvalidValue;
    *version = cuda_version();
    return cudaSuccess;
  });
}

cudaError_t cudaMemGetInfo(size_t* free_bytes, size_t* total_bytes) {
  return run_api(kMemInfo, [&](ApiCall&) {
    if (free_bytes == nullptr || total_bytes == nullptr) return cudaErrorInvalidValue;
    MemoryMap& memory = Core::instance().memory();
    *total_bytes = memory.capacity_bytes();
    *free_bytes = *total_bytes - memory.used_bytes(thread_state().device);
    return cudaSuccess;
  });
}

cudaError_t cudaDeviceGetPCIBusId(char* text, int length, int device) {
  return run_api(kBusId, [&](ApiCall&) {
    if (text == nullptr || length < 13) return cudaErrorInvalidValue;
    if (!valid_device(device)) return cudaErrorInvalidDevice;
    std::snprintf(text, static_cast<size_t>(length), "0000:%02x:00.0", 0x10 + device);
    return cudaSuccess;
  });
}

cudaError_t cudaDeviceCanAccessPeer(int* can, int device, int peer) {
  return run_api(kCanPeer, [&](ApiCall&) {
    if (can == nullptr) return cudaErrorInvalidValue;
    if (!valid_device(device) || !valid_device(peer)) return cudaErrorInvalidDevice;
    *can = device != peer ? 1 : 0;
    return cudaSuccess;
  });
}

cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned flags) {
  return run_api(kEnablePeer, [&](ApiCall&) {
    if (flags != 0) return cudaErrorInvalidValue;
    return valid_device(peer) ? cudaSuccess : cudaErrorInvalidDevice;
  });
}

cudaError_t cudaDeviceSynchronize(void) { return run_api(kSynchronize, synchronize_device); }

// Since 13.1. The device's own context stands for each.
cudaError_t cudaExecutionCtxSynchronize(void*) { return run_api(kContextWait, synchronize_device); }

// Waits; allocations and streams stay, since nothing of the program needs them gone.
cudaError_t cudaDeviceReset(void) {
  return run_api(kReset, [](ApiCall& call) {
    const cudaError_t result = synchronize_device(call);
    Core& core = Core::instance();
    const Core::Lock held = core.lock();
    core.report_reset(core.device(thread_state().device).context_id);
    return result;
  });
}

cudaError_t cudaProfilerStart(void) {
  return run_api(kProfilerStart, [](ApiCall&) { return cudaSuccess; });
}
cudaError_t cudaProfilerStop(void) {
  return run_api(kProfilerStop, [](ApiCall&) { return cudaSuccess; });
}

}  // extern "C"
