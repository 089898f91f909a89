// SPDX-License-Identifier: Apache-2.0
#include "collector/sources/nvml_devices.h"

#include <cstdio>

#include "collector/base/libraries.h"
#include "collector/record/cuda_start.h"

namespace gpuprof {
namespace {

template <typename Function>
bool look_up(void* library, const char* name, Function& out) {
  out = reinterpret_cast<Function>(real_symbol(library, name));
  return out != nullptr;
}

// With MIG "per-instance information can be queried by using specific MIG device handles"
// (nvmlDeviceGetMemoryInfo), and cuDeviceGetUuid_v2 gives CUDA's device the slice's UUID. Null: not
// known.
NvmlDevice slice_of(void* library, int id) {
  int (*uuid)(unsigned char*, int) = nullptr;
  int (*handle_by_uuid)(const char*, NvmlDevice*) = nullptr;
  unsigned char b[16] = {};
  if (!look_up(loaded_driver(), "cuDeviceGetUuid_v2", uuid) || uuid(b, id) != 0) return nullptr;
  if (!look_up(library, "nvmlDeviceGetHandleByUUID", handle_by_uuid)) return nullptr;
  char name[64];
  std::snprintf(name, sizeof name,
                "MIG-%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", b[0],
                b[1], b[2], b[3], b[4], b[5], b[6], b[7], b[8], b[9], b[10], b[11], b[12], b[13],
                b[14], b[15]);
  NvmlDevice handle = nullptr;
  return handle_by_uuid(name, &handle) == 0 ? handle : nullptr;
}

bool has_slices(void* library, NvmlDevice handle) {
  int (*mode)(NvmlDevice, unsigned*, unsigned*) = nullptr;
  unsigned now = 0, later = 0;
  return look_up(library, "nvmlDeviceGetMigMode", mode) && mode(handle, &now, &later) == 0 &&
         now == 1;
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
    const NvmlDevice memory = has_slices(library, handle) ? slice_of(library, id) : handle;
    out[found++] = {static_cast<uint32_t>(id), handle, memory};
  }
  return found;
}

}  // namespace gpuprof
