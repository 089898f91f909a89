// SPDX-License-Identifier: Apache-2.0
// libcudnn.so.9 but for the graph API (cudnn_graph.cpp): handles, descriptors, batch normalisation.
#include "tests/simcuda/math/library_kernel.h"

using namespace gpuprof::simcuda;

namespace {
enum : int { kSuccess = 0, kNotSupported = 3000, kExecutionFailed = 5000 };
constexpr size_t kVersion = 91900;  // PyTorch wants no older one than it was built with
constexpr size_t kRuntimeVersion = 13000;
}  // namespace

extern "C" {

size_t cudnnGetVersion() { return kVersion; }
size_t cudnnGetCudartVersion() { return kRuntimeVersion; }
const char* cudnnGetErrorString(int status) {
  switch (status) {
    case kSuccess: return "CUDNN_STATUS_SUCCESS";
    case kNotSupported: return "CUDNN_STATUS_NOT_SUPPORTED";
    default: return "CUDNN_STATUS_EXECUTION_FAILED";
  }
}
void cudnnGetLastErrorString(char* text, size_t bytes) {
  if (bytes > 0) text[0] = '\0';
}
// 0: major, 1: minor, 2: patch level.
SIM_EXPORT(cudnnGetProperty, (int which, int* out)) {
  const size_t parts[] = {kVersion / 10000, kVersion / 100 % 100, kVersion % 100};
  *out = static_cast<int>(parts[which]);
  return kSuccess;
}

SIM_EXPORT(cudnnCreate, (MathHandle * *out)) {
  *out = new MathHandle();
  return kSuccess;
}
SIM_EXPORT(cudnnDestroy, (MathHandle * handle)) {
  delete handle;
  return kSuccess;
}
SIM_EXPORT(cudnnSetStream, (MathHandle * handle, cudaStream_t stream)) {
  handle->stream = stream;
  return kSuccess;
}
SIM_EXPORT(cudnnGetStream, (MathHandle * handle, cudaStream_t* out)) {
  *out = handle->stream;
  return kSuccess;
}

// No workspace is needed.
SIM_EXPORT(cudnnGetBatchNormalizationForwardTrainingExWorkspaceSize,
           (void*, int, int, void*, void*, void*, void*, void*, size_t* bytes)) {
  *bytes = 0;
  return kSuccess;
}
SIM_EXPORT(cudnnGetBatchNormalizationBackwardExWorkspaceSize,
           (void*, int, int, void*, void*, void*, void*, void*, void*, void*, size_t* bytes)) {
  *bytes = 0;
  return kSuccess;
}
SIM_EXPORT(cudnnGetBatchNormalizationTrainingExReserveSpaceSize,
           (void*, int, int, void*, void*, size_t* bytes)) {
  *bytes = 0;
  return kSuccess;
}

#define SIM_DNN_OBJECT(name)                       \
  SIM_EXPORT(cudnnCreate##name, (void** out)) {    \
    make_opaque(out);                              \
    return kSuccess;                               \
  }                                                \
  SIM_EXPORT(cudnnDestroy##name, (void* object)) { \
    destroy_opaque(object);                        \
    return kSuccess;                               \
  }
#define SIM_DNN_DONE(name) \
  SIM_EXPORT(name, (void*)) { return kSuccess; }
#define SIM_DNN_KERNEL(name)                                                                  \
  SIM_EXPORT(name, (MathHandle * handle)) {                                                   \
    return launch_library_kernel("sim_" #name, handle->stream) ? kSuccess : kExecutionFailed; \
  }
#define SIM_DNN_REFUSED(name) \
  SIM_EXPORT(name, (void*)) { return kNotSupported; }
#include "tests/simcuda/math/cudnn.def"
#undef SIM_DNN_OBJECT
#undef SIM_DNN_DONE
#undef SIM_DNN_KERNEL
#undef SIM_DNN_REFUSED

}  // extern "C"
