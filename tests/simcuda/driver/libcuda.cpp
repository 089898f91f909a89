// SPDX-License-Identifier: Apache-2.0
// The driver's start and devices. NVIDIA's own libcudart cannot run on this driver: it
// needs undocumented tables.
#include <cuda.h>

#include <cstdio>
#include <cstdlib>

#include "tests/simcuda/core/core.h"
#include "tests/simcuda/core/settings.h"
#include "tests/simcuda/core/start.h"

namespace {

constexpr int kDriverVersion = 13000;

int device_count() {
  const char* text = std::getenv("SIMCUDA_DEVICES");
  const int n = text == nullptr ? 0 : std::atoi(text);
  return n > 0 ? n : 8;
}

// In a child that was forked after the driver's start, cuInit and cuDeviceGetCount give this error
// (triton-lang/triton #10443).
bool is_forked() {
  return gpuprof::simcuda::Core::instance().health() == cudaErrorInitializationError;
}

bool is_there() { return gpuprof::simcuda::driver_is_started() && !is_forked(); }

}  // namespace

extern "C" {

CUresult cuInit(unsigned flags) {
  if (flags != 0) return CUDA_ERROR_INVALID_VALUE;
  if (gpuprof::simcuda::settings().no_driver) return CUDA_ERROR_NO_DEVICE;
  if (is_forked()) return CUDA_ERROR_NOT_INITIALIZED;
  gpuprof::simcuda::start_driver();
  return CUDA_SUCCESS;
}

CUresult cuDriverGetVersion(int* version) {
  if (version == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *version = kDriverVersion;
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetCount(int* count) {
  if (!is_there()) return CUDA_ERROR_NOT_INITIALIZED;
  if (count == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *count = device_count();
  return CUDA_SUCCESS;
}

CUresult cuDeviceGet(CUdevice* device, int ordinal) {
  if (!is_there()) return CUDA_ERROR_NOT_INITIALIZED;
  if (device == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (ordinal < 0 || ordinal >= device_count()) return CUDA_ERROR_INVALID_DEVICE;
  *device = ordinal;
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetName(char* name, int length, CUdevice device) {
  if (name == nullptr || length <= 0) return CUDA_ERROR_INVALID_VALUE;
  if (device < 0 || device >= device_count()) return CUDA_ERROR_INVALID_DEVICE;
  std::snprintf(name, static_cast<size_t>(length), "Simulated GPU (simcuda)");
  return CUDA_SUCCESS;
}

}  // extern "C"
