// SPDX-License-Identifier: Apache-2.0
// What frameworks and compilers ask of the driver about devices, contexts, pointers and kernels,
// and what no simulated device can do.
#include <cstring>

#include "tests/simcuda/core/refused.h"
#include "tests/simcuda/driver/driver_api.h"

namespace gpuprof::simcuda {
namespace {

SIM_GETTER(cuDeviceGetAttribute)
SIM_GETTER(cuDeviceGetUuid_v2)
SIM_GETTER(cuPointerGetAttribute)
SIM_GETTER(cuMemGetAddressRange_v2)
SIM_GETTER(cuMemGetAllocationGranularity)
SIM_GETTER(cuFuncGetAttribute)
SIM_GETTER(cuFuncSetAttribute)
SIM_GETTER(cuOccupancyMaxActiveBlocksPerMultiprocessor)

constexpr size_t kGranularity = 2 << 20;

CUcontext context_of(int device) {
  return reinterpret_cast<CUcontext>(static_cast<intptr_t>(device) + 1);
}

}  // namespace
}  // namespace gpuprof::simcuda

using namespace gpuprof::simcuda;

extern "C" {

// Attributes have the same numbers as the runtime's.
CUresult cuDeviceGetAttribute(int* out, CUdevice_attribute attribute, CUdevice device) {
  return as_driver(k_cuDeviceGetAttribute, [&] {
    return cudaDeviceGetAttribute(out, static_cast<cudaDeviceAttr>(attribute), device);
  });
}
// As cudaDeviceProp has it.
CUresult cuDeviceGetUuid_v2(CUuuid* out, CUdevice device) {
  return driver_only(k_cuDeviceGetUuid_v2, [&](ApiCall&) {
    if (out == nullptr) return cudaErrorInvalidValue;
    if (!valid_device(device)) return cudaErrorInvalidDevice;
    *out = CUuuid{};
    std::memcpy(out->bytes, "simcuda-device", 14);
    out->bytes[15] = static_cast<char>(device);
    return cudaSuccess;
  });
}
CUresult cuPointerGetAttribute(void* out, CUpointer_attribute attribute, CUdeviceptr address) {
  return driver_only(k_cuPointerGetAttribute, [&](ApiCall&) {
    const auto memory = Core::instance().memory().find(pointer(address));
    if (out == nullptr || !memory) return cudaErrorInvalidValue;
    const bool on_device = memory->kind != MemoryKind::kPinned;
    switch (attribute) {
      case CU_POINTER_ATTRIBUTE_CONTEXT:
        *static_cast<CUcontext*>(out) = context_of(memory->device);
        return cudaSuccess;
      case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
        *static_cast<unsigned*>(out) = on_device ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST;
        return cudaSuccess;
      case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
        *static_cast<int*>(out) = memory->device;
        return cudaSuccess;
      case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:  // one address space: the same
        *static_cast<CUdeviceptr*>(out) = address;
        return cudaSuccess;
      default: return cudaErrorInvalidValue;
    }
  });
}
CUresult cuMemGetAddressRange_v2(CUdeviceptr* base, size_t* bytes, CUdeviceptr address) {
  return driver_only(k_cuMemGetAddressRange_v2, [&](ApiCall&) {
    const auto memory = Core::instance().memory().find(pointer(address));
    if (!memory) return cudaErrorInvalidValue;
    if (base != nullptr) *base = memory->address;
    if (bytes != nullptr) *bytes = memory->bytes;
    return cudaSuccess;
  });
}
CUresult cuMemGetAllocationGranularity(size_t* out, const CUmemAllocationProp*,
                                       CUmemAllocationGranularity_flags) {
  return driver_only(k_cuMemGetAllocationGranularity, [&](ApiCall&) {
    if (out == nullptr) return cudaErrorInvalidValue;
    *out = kGranularity;
    return cudaSuccess;
  });
}

// What cudaFuncGetAttributes says of every kernel; the others are 0.
CUresult cuFuncGetAttribute(int* out, CUfunction_attribute attribute, CUfunction) {
  return driver_only(k_cuFuncGetAttribute, [&](ApiCall&) {
    if (out == nullptr) return cudaErrorInvalidValue;
    switch (attribute) {
      case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK: *out = 1024; break;
      case CU_FUNC_ATTRIBUTE_NUM_REGS: *out = 32; break;
      default: *out = 0;
    }
    return cudaSuccess;
  });
}
CUresult cuFuncSetAttribute(CUfunction, CUfunction_attribute, int) {
  return driver_only(k_cuFuncSetAttribute, [](ApiCall&) { return cudaSuccess; });
}
CUresult cuFuncSetCacheConfig(CUfunction, CUfunc_cache) { return CUDA_SUCCESS; }
CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, CUfunction kernel, int threads,
                                                     size_t shared) {
  return as_driver(k_cuOccupancyMaxActiveBlocksPerMultiprocessor, [&] {
    return cudaOccupancyMaxActiveBlocksPerMultiprocessor(blocks, kernel, threads, shared);
  });
}

CUresult cuGetErrorString(CUresult error, const char** text) {
  if (text == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *text = cudaGetErrorString(static_cast<cudaError_t>(error));
  return CUDA_SUCCESS;
}

// Functions of these names exist and say that they cannot.
#define SIM_REFUSED(name) SIMCUDA_REFUSED(CUresult, name, CUDA_ERROR_NOT_SUPPORTED)
SIM_REFUSED(cuCtxPopCurrent_v2)
SIM_REFUSED(cuCtxPushCurrent_v2)
SIM_REFUSED(cuDevSmResourceSplitByCount)
SIM_REFUSED(cuLinkAddData_v2)
SIM_REFUSED(cuLinkComplete)
SIM_REFUSED(cuLinkCreate_v2)
SIM_REFUSED(cuMemExportToShareableHandle)
SIM_REFUSED(cuMemGetAllocationPropertiesFromHandle)
SIM_REFUSED(cuMemImportFromShareableHandle)
SIM_REFUSED(cuMemRetainAllocationHandle)
SIM_REFUSED(cuStreamWriteValue32_v2)
SIM_REFUSED(cuTensorMapEncodeTiled)
#undef SIM_REFUSED

}  // extern "C"
