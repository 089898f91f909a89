// SPDX-License-Identifier: Apache-2.0
#include "collector/sources/nvml_devices.h"

#include "collector/base/libraries.h"
#include "collector/record/cuda_start.h"

namespace gpuprof {
namespace {

template <typename Function>
bool look_up(void* library, const char* name, Function& out) {
  out = reinterpret_cast<Function>(real_symbol(library, name));
  return out != nullptr;
}

}  // namespace

// CUDA numbers what the process may see; NVML what the machine has. Both know the bus.
size_t find_nvml_gpus(void* library, NvmlGpu* out) {
  if (!driver_has_started()) return 0;
  void* const runtime = loaded_cudart();
  int (*handle_by_bus)(const char*, NvmlDevice*) = nullptr;
  int (*count_devices)(int*) = nullptr;
  int (*bus_id)(char*, int, int) = nullptr;
  int (*context_state)(int, unsigned*, int*) = nullptr;
  look_up(loaded_driver(), "cuDevicePrimaryCtxGetState", context_state);
  int count = 0;
  if (!look_up(library, "nvmlDeviceGetHandleByPciBusId_v2", handle_by_bus)) return 0;
  if (!look_up(runtime, "cudaGetDeviceCount", count_devices) || count_devices(&count) != 0)
    return 0;
  if (!look_up(runtime, "cudaDeviceGetPCIBusId", bus_id)) return 0;
  size_t found = 0;
  for (int id = 0; id < count && found < kMostNvmlGpus; ++id) {
    unsigned flags = 0;
    int in_use = 1;
    if (context_state) context_state(id, &flags, &in_use);
    char bus[32] = "";
    NvmlDevice handle = nullptr;
    if (!in_use || bus_id(bus, sizeof bus, id) != 0) continue;
    if (handle_by_bus(bus, &handle) != 0) continue;
    out[found++] = {static_cast<uint32_t>(id), handle};
  }
  return found;
}

}  // namespace gpuprof
