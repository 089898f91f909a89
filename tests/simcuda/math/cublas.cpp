// SPDX-License-Identifier: Apache-2.0
// libcublas.so.13: handles with their stream and modes; what computes is a kernel that does
// nothing.
#include "tests/simcuda/math/library_kernel.h"

using namespace gpuprof::simcuda;

namespace {
enum : int { kSuccess = 0, kNotInitialized = 1, kExecutionFailed = 13 };
}  // namespace

extern "C" {

SIM_EXPORT(cublasCreate_v2, (MathHandle * *out)) {
  *out = new MathHandle();
  return kSuccess;
}
SIM_EXPORT(cublasDestroy_v2, (MathHandle * handle)) {
  delete handle;
  return kSuccess;
}
SIM_EXPORT(cublasSetStream_v2, (MathHandle * handle, cudaStream_t stream)) {
  handle->stream = stream;
  return kSuccess;
}
SIM_EXPORT(cublasGetStream_v2, (MathHandle * handle, cudaStream_t* out)) {
  *out = handle->stream;
  return kSuccess;
}
SIM_EXPORT(cublasSetPointerMode_v2, (MathHandle * handle, int mode)) {
  handle->pointer_mode = mode;
  return kSuccess;
}
SIM_EXPORT(cublasGetPointerMode_v2, (MathHandle * handle, int* out)) {
  *out = handle->pointer_mode;
  return kSuccess;
}
SIM_EXPORT(cublasSetSmCountTarget, (MathHandle*, int)) { return kSuccess; }
SIM_EXPORT(cublasSetMathMode, (MathHandle * handle, int mode)) {
  handle->math_mode = mode;
  return kSuccess;
}
SIM_EXPORT(cublasGetMathMode, (MathHandle * handle, int* out)) {
  *out = handle->math_mode;
  return kSuccess;
}
SIM_EXPORT(cublasSetWorkspace_v2, (MathHandle*, void*, size_t)) { return kSuccess; }

#define SIM_BLAS(name)                                                                        \
  SIM_EXPORT(name, (MathHandle * handle)) {                                                   \
    if (handle == nullptr) return kNotInitialized;                                            \
    return launch_library_kernel("sim_" #name, handle->stream) ? kSuccess : kExecutionFailed; \
  }
#include "tests/simcuda/math/cublas.def"
#undef SIM_BLAS

}  // extern "C"
