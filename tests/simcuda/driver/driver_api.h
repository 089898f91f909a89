// SPDX-License-Identifier: Apache-2.0
// How the driver's functions are made: each is a call of the runtime's function of the same effect,
// shown to CUPTI and the truth log under the driver's name.
#pragma once

#include <cuda.h>
#include <cupti.h>

#include "tests/simcuda/cudart/entry_points.h"

// The header renames these to their newest versions.
#undef cuGetProcAddress
#undef cuEventElapsedTime

#define SIM_API(name) \
  constexpr ApiInfo k_##name{#name, CUPTI_DRIVER_TRACE_CBID_##name, false, true};
#define SIM_GETTER(name) \
  constexpr ApiInfo k_##name{#name, CUPTI_DRIVER_TRACE_CBID_##name, true, true};

namespace gpuprof::simcuda {

template <typename Body>
CUresult as_driver(const ApiInfo& api, Body&& body, const void* params = nullptr) {
  return static_cast<CUresult>(run_driver(api, params, static_cast<Body&&>(body)));
}

// A function that the runtime does not have.
template <typename Body>
CUresult driver_only(const ApiInfo& api, Body&& body) {
  return static_cast<CUresult>(run_api(api, static_cast<Body&&>(body)));
}

inline void* pointer(CUdeviceptr address) { return reinterpret_cast<void*>(address); }
inline void* pointer(void* address) { return address; }
inline const void* pointer(const void* address) { return address; }

}  // namespace gpuprof::simcuda
