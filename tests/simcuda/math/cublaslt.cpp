// SPDX-License-Identifier: Apache-2.0
// libcublasLt.so.13: every product has one algorithm, which needs no workspace. Layouts are those
// of cublasLt.h, which not every toolkit's runtime part brings.
#include <cstdint>

#include "tests/simcuda/math/library_kernel.h"

using namespace gpuprof::simcuda;

namespace {

enum : int { kSuccess = 0, kExecutionFailed = 13, kNotSupported = 15 };
constexpr size_t kVersion = 130100;

struct HeuristicResult {  // cublasLtMatmulHeuristicResult_t
  uint64_t algorithm[8];
  size_t workspace;
  int status;
  float waves;
  int reserved[4];
};
static_assert(sizeof(HeuristicResult) == 96);

}  // namespace

extern "C" {

size_t cublasLtGetVersion() { return kVersion; }

SIM_EXPORT(cublasLtCreate, (MathHandle * *out)) {
  *out = new MathHandle();
  return kSuccess;
}
SIM_EXPORT(cublasLtDestroy, (MathHandle * handle)) {
  delete handle;
  return kSuccess;
}

#define SIM_OBJECT(name)                      \
  SIM_EXPORT(name##Create, (void** out)) {    \
    make_opaque(out);                         \
    return kSuccess;                          \
  }                                           \
  SIM_EXPORT(name##Destroy, (void* object)) { \
    destroy_opaque(object);                   \
    return kSuccess;                          \
  }                                           \
  SIM_EXPORT(name##SetAttribute, (void*)) { return kSuccess; }
SIM_OBJECT(cublasLtMatmulDesc)
SIM_OBJECT(cublasLtMatmulPreference)
SIM_OBJECT(cublasLtMatrixLayout)
#undef SIM_OBJECT

SIM_EXPORT(cublasLtMatmulAlgoGetHeuristic, (void*, void*, void*, void*, void*, void*, void*,
                                            int wanted, HeuristicResult* results, int* count)) {
  *count = wanted > 0 ? 1 : 0;
  if (wanted > 0) results[0] = HeuristicResult{};
  return kSuccess;
}

// To choose an algorithm by hand.
SIM_EXPORT(cublasLtMatmulAlgoInit, (...)) { return kNotSupported; }
SIM_EXPORT(cublasLtMatmulAlgoCheck, (...)) { return kNotSupported; }
SIM_EXPORT(cublasLtMatmulAlgoConfigGetAttribute, (...)) { return kNotSupported; }
SIM_EXPORT(cublasLtMatmulAlgoConfigSetAttribute, (...)) { return kNotSupported; }

SIM_EXPORT(cublasLtMatmul,
           (void*, void*, const void*, const void*, void*, const void*, void*, const void*,
            const void*, void*, void*, void*, const void*, void*, size_t, cudaStream_t stream)) {
  return launch_library_kernel("sim_cublasLt_gemm", stream) ? kSuccess : kExecutionFailed;
}

}  // extern "C"
