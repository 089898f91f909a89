// SPDX-License-Identifier: Apache-2.0
// A libcuda.so.1 for those who look whether a driver is there. The simulated runtime does not go
// through it: the real one needs undocumented tables that only the real driver has.
#include <cuda.h>

#include <cstdio>
#include <cstdlib>

namespace {

constexpr int kDriverVersion = 13000;

int device_count() {
  const char* text = std::getenv("SIMCUDA_DEVICES");
  const int n = text == nullptr ? 0 : std::atoi(text);
  return n > 0 ? n : 8;
}

}  // namespace

extern "C" {

CUresult cuInit(unsigned flags) { return flags == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE; }

CUresult cuDriverGetVersion(int* version) {
  if (version == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *version = kDriverVersion;
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetCount(int* count) {
  if (count == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *count = device_count();
  return CUDA_SUCCESS;
}

CUresult cuDeviceGet(CUdevice* device, int ordinal) {
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
