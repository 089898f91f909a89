// SPDX-License-Identifier: Apache-2.0
// What frameworks link and no test calls: memory for other processes, and, since PyTorch 2.15, code
// loaded as a library, user objects and memory of graphs. All of it is refused, as by a device
// without it.
#include <cupti.h>

#include "tests/simcuda/cudart/entry_points.h"

namespace gpuprof::simcuda {
namespace {

#define SIM_REFUSED(name, version) \
  constexpr ApiInfo k_##name{#name, CUPTI_RUNTIME_TRACE_CBID_##name##version, true};
SIM_REFUSED(cudaIpcGetMemHandle, _v4010)
SIM_REFUSED(cudaIpcOpenMemHandle, _v4010)
SIM_REFUSED(cudaIpcCloseMemHandle, _v4010)
SIM_REFUSED(cudaIpcGetEventHandle, _v4010)
SIM_REFUSED(cudaIpcOpenEventHandle, _v4010)
SIM_REFUSED(cudaDeviceGetGraphMemAttribute, _v11040)
SIM_REFUSED(cudaDeviceSetGraphMemAttribute, _v11040)
SIM_REFUSED(cudaGraphRetainUserObject, _v11030)
SIM_REFUSED(cudaKernelSetAttributeForDevice, _v12060)
SIM_REFUSED(cudaLibraryGetGlobal, _v12060)
SIM_REFUSED(cudaLibraryGetKernel, _v12060)
SIM_REFUSED(cudaLibraryGetKernelCount, _v12060)
SIM_REFUSED(cudaLibraryGetManaged, _v12060)
SIM_REFUSED(cudaLibraryGetUnifiedFunction, _v12060)
SIM_REFUSED(cudaLibraryLoadData, _v12060)
SIM_REFUSED(cudaLibraryLoadFromFile, _v12060)
SIM_REFUSED(cudaLibraryUnload, _v12060)
SIM_REFUSED(cudaStreamUpdateCaptureDependencies, _v12030)
SIM_REFUSED(cudaUserObjectCreate, _v11030)
SIM_REFUSED(cudaUserObjectRelease, _v11030)
#undef SIM_REFUSED

cudaError_t refuse(const ApiInfo& api) {
  return run_api(api, [](ApiCall&) { return cudaErrorNotSupported; });
}

}  // namespace
}  // namespace gpuprof::simcuda

using namespace gpuprof::simcuda;

extern "C" {

cudaError_t cudaIpcGetMemHandle(cudaIpcMemHandle_t*, void*) {
  return refuse(k_cudaIpcGetMemHandle);
}
cudaError_t cudaIpcOpenMemHandle(void**, cudaIpcMemHandle_t, unsigned) {
  return refuse(k_cudaIpcOpenMemHandle);
}
cudaError_t cudaIpcCloseMemHandle(void*) { return refuse(k_cudaIpcCloseMemHandle); }
cudaError_t cudaIpcGetEventHandle(cudaIpcEventHandle_t*, cudaEvent_t) {
  return refuse(k_cudaIpcGetEventHandle);
}
cudaError_t cudaIpcOpenEventHandle(cudaEvent_t*, cudaIpcEventHandle_t) {
  return refuse(k_cudaIpcOpenEventHandle);
}
cudaError_t cudaDeviceGetGraphMemAttribute(int, cudaGraphMemAttributeType, void*) {
  return refuse(k_cudaDeviceGetGraphMemAttribute);
}
cudaError_t cudaDeviceSetGraphMemAttribute(int, cudaGraphMemAttributeType, void*) {
  return refuse(k_cudaDeviceSetGraphMemAttribute);
}
cudaError_t cudaGraphRetainUserObject(cudaGraph_t, cudaUserObject_t, unsigned, unsigned) {
  return refuse(k_cudaGraphRetainUserObject);
}
cudaError_t cudaKernelSetAttributeForDevice(cudaKernel_t, cudaFuncAttribute, int, int) {
  return refuse(k_cudaKernelSetAttributeForDevice);
}
cudaError_t cudaLibraryGetGlobal(void**, size_t*, cudaLibrary_t, const char*) {
  return refuse(k_cudaLibraryGetGlobal);
}
cudaError_t cudaLibraryGetKernel(cudaKernel_t*, cudaLibrary_t, const char*) {
  return refuse(k_cudaLibraryGetKernel);
}
cudaError_t cudaLibraryGetKernelCount(unsigned*, cudaLibrary_t) {
  return refuse(k_cudaLibraryGetKernelCount);
}
cudaError_t cudaLibraryGetManaged(void**, size_t*, cudaLibrary_t, const char*) {
  return refuse(k_cudaLibraryGetManaged);
}
cudaError_t cudaLibraryGetUnifiedFunction(void**, cudaLibrary_t, const char*) {
  return refuse(k_cudaLibraryGetUnifiedFunction);
}
cudaError_t cudaLibraryLoadData(cudaLibrary_t*, const void*, cudaJitOption*, void**, unsigned,
                                cudaLibraryOption*, void**, unsigned) {
  return refuse(k_cudaLibraryLoadData);
}
cudaError_t cudaLibraryLoadFromFile(cudaLibrary_t*, const char*, cudaJitOption*, void**, unsigned,
                                    cudaLibraryOption*, void**, unsigned) {
  return refuse(k_cudaLibraryLoadFromFile);
}
cudaError_t cudaLibraryUnload(cudaLibrary_t) { return refuse(k_cudaLibraryUnload); }
cudaError_t cudaStreamUpdateCaptureDependencies(cudaStream_t, cudaGraphNode_t*,
                                                const cudaGraphEdgeData*, size_t, unsigned) {
  return refuse(k_cudaStreamUpdateCaptureDependencies);
}
cudaError_t cudaUserObjectCreate(cudaUserObject_t*, void*, cudaHostFn_t, unsigned, unsigned) {
  return refuse(k_cudaUserObjectCreate);
}
cudaError_t cudaUserObjectRelease(cudaUserObject_t, unsigned) {
  return refuse(k_cudaUserObjectRelease);
}

}  // extern "C"
