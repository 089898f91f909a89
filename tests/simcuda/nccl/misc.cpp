// SPDX-License-Identifier: Apache-2.0
// Versions, error texts, memory.
#include "tests/simcuda/core/refused.h"
#include "tests/simcuda/nccl/api_scope.h"
#include "tests/simcuda/nccl/comm.h"

using namespace gpuprof::simcuda;

extern "C" {

ncclResult_t pncclGetVersion(int* version) {
  if (version == nullptr) return ncclInvalidArgument;
  *version = NCCL_VERSION_CODE;
  return ncclSuccess;
}

const char* pncclGetErrorString(ncclResult_t result) {
  switch (result) {
    case ncclSuccess: return "no error";
    case ncclUnhandledCudaError: return "unhandled cuda error";
    case ncclSystemError: return "unhandled system error";
    case ncclInternalError: return "internal error";
    case ncclInvalidArgument: return "invalid argument";
    case ncclInvalidUsage: return "invalid usage";
    case ncclRemoteError: return "remote process exited or there was a network error";
    case ncclInProgress: return "NCCL operation in progress";
    default: return "unknown result code";
  }
}

const char* pncclGetLastError(ncclComm_t) { return ""; }

ncclResult_t pncclMemAlloc(void** out, size_t bytes) {
  ApiScope scope("ncclMemAlloc");
  if (out == nullptr || sim_core() == nullptr) return scope.finish(ncclInvalidArgument);
  const bool good = sim_core()->allocate(out, bytes) == cudaSuccess;
  return scope.finish(good ? ncclSuccess : ncclUnhandledCudaError);
}

ncclResult_t pncclMemFree(void* pointer) {
  ApiScope scope("ncclMemFree");
  if (pointer == nullptr) return scope.finish(ncclSuccess);
  if (sim_core() == nullptr) return scope.finish(ncclUnhandledCudaError);
  const bool good = sim_core()->release(pointer) == cudaSuccess;
  return scope.finish(good ? ncclSuccess : ncclUnhandledCudaError);
}

// A buffer known to a communicator moves nothing faster here.
ncclResult_t pncclCommRegister(const ncclComm_t comm, void* buffer, size_t, void** handle) {
  ApiScope scope("ncclCommRegister");
  if (comm == nullptr || handle == nullptr) return scope.finish(ncclInvalidArgument);
  *handle = buffer;
  return scope.finish(ncclSuccess);
}

ncclResult_t pncclCommDeregister(const ncclComm_t comm, void*) {
  ApiScope scope("ncclCommDeregister");
  return scope.finish(comm == nullptr ? ncclInvalidArgument : ncclSuccess);
}

__attribute__((weak, alias("pncclGetVersion"))) decltype(pncclGetVersion) ncclGetVersion;
__attribute__((weak,
               alias("pncclGetErrorString"))) decltype(pncclGetErrorString) ncclGetErrorString;
__attribute__((weak, alias("pncclGetLastError"))) decltype(pncclGetLastError) ncclGetLastError;
__attribute__((weak, alias("pncclMemAlloc"))) decltype(pncclMemAlloc) ncclMemAlloc;
__attribute__((weak, alias("pncclMemFree"))) decltype(pncclMemFree) ncclMemFree;
__attribute__((weak, alias("pncclCommRegister"))) decltype(pncclCommRegister) ncclCommRegister;
__attribute__((weak,
               alias("pncclCommDeregister"))) decltype(pncclCommDeregister) ncclCommDeregister;

// What frameworks link and the tests do not use: windows known to a communicator,
// device-side communicators, operators of a program's own.
#define SIM_REFUSED(name) SIMCUDA_REFUSED(ncclResult_t, name, ncclInvalidUsage)
SIM_REFUSED(ncclCommWindowDeregister)
SIM_REFUSED(ncclCommWindowRegister)
SIM_REFUSED(ncclDevCommCreate)
SIM_REFUSED(ncclDevCommDestroy)
SIM_REFUSED(ncclRedOpCreatePreMulSum)
SIM_REFUSED(ncclRedOpDestroy)
#undef SIM_REFUSED

}  // extern "C"
