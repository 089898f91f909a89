// SPDX-License-Identifier: Apache-2.0
// What the simulated math libraries have in common: a handle with a stream, opaque descriptors, and
// kernels, which they launch as NVIDIA's do, by a runtime of their own that goes through the
// driver.
#pragma once

#include <cuda_runtime_api.h>

namespace gpuprof::simcuda {

// What a handle of any of these libraries points to.
struct MathHandle {
  cudaStream_t stream = nullptr;
  int pointer_mode = 0;
  int math_mode = 0;
};

// Puts a kernel of that name, which the caller keeps, into the stream. Any thread; false: the
// launch failed.
bool launch_library_kernel(const char* name, cudaStream_t stream);

// For what is only made, passed on and destroyed.
void make_opaque(void** out);
void destroy_opaque(void* object);

}  // namespace gpuprof::simcuda

// An exported function whose true arguments after these do not matter.
#define SIM_EXPORT(name, parameters)               \
  int sim_export_##name parameters __asm__(#name); \
  int sim_export_##name parameters
