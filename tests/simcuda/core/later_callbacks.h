// SPDX-License-Identifier: Apache-2.0
// Callback ids of the runtime that are newer than the headers this is compiled with
// (cupti_runtime_cbid.h of 13.5).
#pragma once

#include <cstdint>

namespace gpuprof::simcuda {

enum LaterCallback : uint32_t {
  kLaterContextWait = 534,
  kLaterHostFunction = 550,
  kLaterHostFunctionPtsz,
  kLaterCopy = 554,
  kLaterCopyPtsz,
  kLaterCopy3d,
  kLaterCopy3dPtsz,
  kLaterCallbackEnd = 567  // CUPTI_RUNTIME_TRACE_CBID_SIZE
};

struct LaterCallbackName {
  uint32_t cbid;
  const char* name;
};
inline constexpr LaterCallbackName kLaterCallbackNames[] = {
    {kLaterContextWait, "cudaExecutionCtxSynchronize_v13010"},
    {kLaterHostFunction, "cudaLaunchHostFunc_v2_v13020"},
    {kLaterHostFunctionPtsz, "cudaLaunchHostFunc_v2_ptsz_v13020"},
    {kLaterCopy, "cudaMemcpyWithAttributesAsync_v13020"},
    {kLaterCopyPtsz, "cudaMemcpyWithAttributesAsync_ptsz_v13020"},
    {kLaterCopy3d, "cudaMemcpy3DWithAttributesAsync_v13020"},
    {kLaterCopy3dPtsz, "cudaMemcpy3DWithAttributesAsync_ptsz_v13020"},
};

}  // namespace gpuprof::simcuda
