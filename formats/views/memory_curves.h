// SPDX-License-Identifier: Apache-2.0
// How much memory was allocated over time: of CUDA, and of a framework's allocators.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string_view>
#include <vector>

#include "formats/trace/trace.h"

namespace gpuprof {

// A level of memory over time, from calls that allocate and release.
struct MemoryPoint {
  int64_t time;
  int64_t total;   // bytes allocated and not released, after this event; see MemoryCurves
  int64_t change;  // of this event; negative: release
  EventIndex event;
};

// A call or record of CUPTI's that allocates or releases.
struct MemoryChange {
  int64_t time;
  uint64_t address, bytes;
  bool release;
  EventIndex event;
};

// Of each call CUPTI's record, if there is one, else the call: cuMemMap and cuMemUnmap, as of
// PyTorch's expandable segments, have none. In no order.
struct MemoryChanges {
  std::vector<MemoryChange> device, host;  // host: pinned
};
MemoryChanges memory_changes(const Trace& trace, const Process& process);
// Whether a call of this name allocates or releases pinned memory of the host.
bool names_host_memory(std::string_view api);

// Whether a device_type of TensorCurve and Shape is a GPU or another accelerator, by PyTorch's
// numbers (c10/core/DeviceType.h): CUDA, HIP, XLA, XPU, MPS, HPU, MTIA, PrivateUse1.
constexpr bool is_gpu_memory(uint32_t device_type) {
  for (const uint32_t type : {1u, 6u, 9u, 12u, 13u, 15u, 19u, 20u}) {
    if (device_type == type) return true;
  }
  return false;
}

// What a framework's allocator says of itself: `total` is what it has
// allocated, on one device.
struct TensorCurve {
  uint32_t device_type, device_id;  // as in Shape
  bool totals_given;                // else they are sums of the changes in the window
  std::vector<MemoryPoint> points;
};

// `device` and `host` memory from memory_changes(). What was allocated before the
// window is counted where the memory log says it; else it is not known, and its
// release is left out. Each of the process's stretches begins with what was
// allocated then.
struct MemoryCurves {
  std::vector<MemoryPoint> device, host;
  int64_t device_before = 0;  // allocated when the window began, where the memory log says
  std::vector<TensorCurve> tensors;
};
MemoryCurves memory_curves(const Trace& trace, const Process& process);

}  // namespace gpuprof
