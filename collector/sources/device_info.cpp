// SPDX-License-Identifier: Apache-2.0
#include "collector/sources/device_info.h"

#include <cstring>

#include "collector/base/libraries.h"
#include "collector/cupti/cupti_session.h"
#include "collector/record/cuda_start.h"
#include "collector/record/session.h"

namespace gpuprof {
namespace {

// The few values of the runtime's ABI that are needed; spelt out because vendor headers are
// confined to the CUPTI files. Numbers: enum cudaDeviceAttr (cudaDevAttr*), stable since CUDA 5.
enum DeviceAttribute : int {
  kMaxThreadsPerBlock = 1,
  kMaxSharedPerBlock = 8,
  kWarpSize = 10,
  kMaxRegistersPerBlock = 12,
  kMultiprocessors = 16,
  kMaxThreadsPerMultiprocessor = 39,
  kComputeMajor = 75,
  kComputeMinor = 76,
  kMaxSharedPerMultiprocessor = 81,
  kMaxRegistersPerMultiprocessor = 82,
  kMaxSharedPerBlockOptin = 97,
};

template <typename Function>
Function symbol(void* library, const char* name) {
  return reinterpret_cast<Function>(real_symbol(library, name));
}

void encode_one_device(WireWriter& out, void* runtime, int device) {
  const auto attribute = symbol<int (*)(int*, int, int)>(runtime, "cudaDeviceGetAttribute");
  const auto properties = symbol<int (*)(void*, int)>(runtime, "cudaGetDeviceProperties");
  const size_t mark = out.open(22);
  out.uint(1, static_cast<uint64_t>(device));
  // cudaDeviceProp begins with name[256], uuid[16], luid[8], a mask, and totalGlobalMem at 288 in
  // all versions; it is about 1 KiB long.
  alignas(16) static unsigned char buffer[8192];
  std::memset(buffer, 0, sizeof buffer);
  if (properties && properties(buffer, device) == 0) {
    out.text(2, std::string_view(reinterpret_cast<char*>(buffer),
                                 ::strnlen(reinterpret_cast<char*>(buffer), 256)));
    uint64_t total = 0;
    std::memcpy(&total, buffer + 288, sizeof total);
    out.uint(3, total);
  }
  const struct {
    uint32_t field;
    DeviceAttribute attribute;
  } rows[] = {{4, kComputeMajor},
              {5, kComputeMinor},
              {6, kMultiprocessors},
              {7, kMaxThreadsPerBlock},
              {8, kMaxThreadsPerMultiprocessor},
              {9, kMaxRegistersPerBlock},
              {10, kMaxRegistersPerMultiprocessor},
              {11, kMaxSharedPerBlock},
              {12, kMaxSharedPerBlockOptin},
              {13, kMaxSharedPerMultiprocessor},
              {14, kWarpSize}};
  for (const auto& row : rows) {
    int value = 0;
    if (attribute && attribute(&value, row.attribute, device) == 0 && value > 0) {
      out.uint(row.field, static_cast<uint64_t>(value));
    }
  }
  out.close(mark);
}

uint32_t version_from(void* library, const char* function) {
  const auto get = symbol<int (*)(int*)>(library, function);
  int version = 0;
  return get && get(&version) == 0 && version > 0 ? static_cast<uint32_t>(version) : 0;
}

}  // namespace

void encode_clock(WireWriter& out, uint32_t field, const RingHeader& header) {
  const size_t mark = out.open(field);
  out.uint(1, header.clock_source);
  out.uint(2, header.clock_shift);
  const uint32_t anchors = header.anchor_count.load(std::memory_order_acquire);
  for (uint32_t i = 0; i < anchors && i < kMaxAnchors; ++i) {
    const size_t anchor = out.open(3);
    out.uint(1, header.anchors[i].ticks);
    out.uint(2, header.anchors[i].monotonic_ns);
    out.uint(3, header.anchors[i].realtime_ns);
    out.close(anchor);
  }
  out.uint(4, static_cast<uint64_t>(session().clock.ticks_per_ns * 1e9));
  out.close(mark);
}

bool encode_devices_and_versions(WireWriter& out) {
  const bool started = driver_has_started();
  void* const runtime = loaded_cudart();
  const uint32_t driver_version = version_from(loaded_driver(), "cuDriverGetVersion");
  const uint32_t by_runtime =
      started && !driver_version ? version_from(runtime, "cudaDriverGetVersion") : 0;
  out.uint(18, driver_version ? driver_version : by_runtime);
  // "As of CUDA 12.0, this function no longer initializes CUDA" (CUDA runtime API).
  const bool may_ask = started || !library_is_loaded("libcudart.so.11");
  out.uint(19, may_ask ? version_from(runtime, "cudaRuntimeGetVersion") : 0);
  out.uint(20, cupti_version());
  out.uint(21, version_from(loaded_nccl(), "ncclGetVersion"));
  if (!started) return false;
  const auto count_devices = symbol<int (*)(int*)>(runtime, "cudaGetDeviceCount");
  int devices = 0;
  if (!count_devices || count_devices(&devices) != 0) return true;
  for (int device = 0; device < devices && device < 64; ++device) {
    encode_one_device(out, runtime, device);
  }
  return true;
}

}  // namespace gpuprof
