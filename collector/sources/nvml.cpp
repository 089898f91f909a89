// SPDX-License-Identifier: Apache-2.0
#include "collector/sources/nvml.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstdio>

#include "collector/base/fork.h"
#include "collector/base/libraries.h"
#include "collector/base/log.h"
#include "collector/base/os.h"
#include "collector/record/session.h"
#include "collector/sources/nvml_devices.h"
#include "formats/core/counters.h"
#include "formats/core/wire.h"

namespace gpuprof {
namespace {

// The part of NVML's ABI that is needed; spelt out because its header does not come with the
// toolkit's runtime. Numbers: nvml.h, unchanged since NVML 4 (R304).
enum ClockType : int { kClockSm = 1, kClockMemory = 2 };
enum EccErrorType : int { kEccCorrected = 0, kEccUncorrected = 1 };
constexpr int kTemperatureGpu = 0;
constexpr int kSinceDriverLoad = 0;  // NVML_VOLATILE_ECC
struct NvmlUtilization {
  unsigned gpu, memory;  // percent
};
struct NvmlMemory {
  unsigned long long total, free, used;
};

struct NvmlApi {
  int (*Init_v2)();
  int (*DeviceGetClockInfo)(NvmlDevice, int, unsigned*);
  int (*DeviceGetPowerUsage)(NvmlDevice, unsigned*);
  int (*DeviceGetTemperature)(NvmlDevice, int, unsigned*);
  int (*DeviceGetCurrentClocksThrottleReasons)(NvmlDevice, unsigned long long*);
  int (*DeviceGetUtilizationRates)(NvmlDevice, NvmlUtilization*);
  int (*DeviceGetMemoryInfo)(NvmlDevice, NvmlMemory*);
  int (*DeviceGetTotalEccErrors)(NvmlDevice, int, int, unsigned long long*);
  int (*DeviceGetMaxClockInfo)(NvmlDevice, int, unsigned*);  // null: a library without it
};

constexpr double kPeriodNs = 1e8;
constexpr double kLookNs = 1e9;  // for GPUs that come into use in a window

struct Device {
  uint32_t id;  // CUDA's
  NvmlDevice handle, memory;
  uint32_t done;  // bit per counter that this GPU does not have, or that never changes
};
struct Sample {
  uint64_t ticks, value;
  uint16_t device;
  uint16_t counter;
};

NvmlApi g_nvml{};
void* g_library = nullptr;
bool g_tried = false;
Device g_devices[kMostNvmlGpus];
size_t g_device_count = 0;
uint64_t g_next_ticks = 0, g_next_look = 0;
constinit Immortal<PodVector<Sample>> g_samples;

template <typename Function>
bool look_up(void* library, const char* name, Function& out) {
  out = reinterpret_cast<Function>(real_symbol(library, name));
  return out != nullptr;
}

bool load(char* why, size_t why_size) {
  void* const library = ::dlopen("libnvidia-ml.so.1", RTLD_LAZY | RTLD_LOCAL);
  if (!library) {
    std::snprintf(why, why_size, "libnvidia-ml.so.1 was not found; it comes with the driver");
    return false;
  }
  const bool found =
      look_up(library, "nvmlInit_v2", g_nvml.Init_v2) &&
      look_up(library, "nvmlDeviceGetClockInfo", g_nvml.DeviceGetClockInfo) &&
      look_up(library, "nvmlDeviceGetPowerUsage", g_nvml.DeviceGetPowerUsage) &&
      look_up(library, "nvmlDeviceGetTemperature", g_nvml.DeviceGetTemperature) &&
      look_up(library, "nvmlDeviceGetCurrentClocksThrottleReasons",
              g_nvml.DeviceGetCurrentClocksThrottleReasons) &&
      look_up(library, "nvmlDeviceGetUtilizationRates", g_nvml.DeviceGetUtilizationRates) &&
      look_up(library, "nvmlDeviceGetMemoryInfo", g_nvml.DeviceGetMemoryInfo) &&
      look_up(library, "nvmlDeviceGetTotalEccErrors", g_nvml.DeviceGetTotalEccErrors);
  if (!found) {
    std::snprintf(why, why_size, "libnvidia-ml.so.1 lacks a function that is needed");
    return false;
  }
  (void)look_up(library, "nvmlDeviceGetMaxClockInfo", g_nvml.DeviceGetMaxClockInfo);
  g_library = library;
  const int result = g_nvml.Init_v2();
  if (result != 0) std::snprintf(why, why_size, "nvmlInit gave error %d", result);
  return result == 0;
}

// Adds those that the program has begun to use since.
void find_devices() {
  NvmlGpu gpus[kMostNvmlGpus];
  const size_t count = find_nvml_gpus(g_library, gpus);
  for (size_t i = 0; i < count && g_device_count < kMostNvmlGpus; ++i) {
    Device* const end = g_devices + g_device_count;
    const bool known =
        std::any_of(g_devices, end, [&](const Device& d) { return d.id == gpus[i].id; });
    if (!known) g_devices[g_device_count++] = {gpus[i].id, gpus[i].handle, gpus[i].memory, 0};
  }
}

int read_counter(const Device& of, Counter counter, uint64_t& value) {
  const NvmlDevice device = of.handle;
  unsigned small = 0;
  unsigned long long large = 0;
  NvmlUtilization busy{};
  NvmlMemory memory{};
  int result = 0;
  switch (counter) {
    case Counter::sm_clock: result = g_nvml.DeviceGetClockInfo(device, kClockSm, &small); break;
    case Counter::memory_clock:
      result = g_nvml.DeviceGetClockInfo(device, kClockMemory, &small);
      break;
    case Counter::power: result = g_nvml.DeviceGetPowerUsage(device, &small); break;
    case Counter::temperature:
      result = g_nvml.DeviceGetTemperature(device, kTemperatureGpu, &small);
      break;
    case Counter::throttle_reasons:
      result = g_nvml.DeviceGetCurrentClocksThrottleReasons(device, &large);
      break;
    case Counter::gpu_busy:
      result = g_nvml.DeviceGetUtilizationRates(device, &busy);
      small = busy.gpu;
      break;
    case Counter::memory_busy:
      result = g_nvml.DeviceGetUtilizationRates(device, &busy);
      small = busy.memory;
      break;
    case Counter::memory_used:
      if (!of.memory) return -1;
      result = g_nvml.DeviceGetMemoryInfo(of.memory, &memory);
      large = memory.used;
      break;
    case Counter::ecc_corrected:
      result = g_nvml.DeviceGetTotalEccErrors(device, kEccCorrected, kSinceDriverLoad, &large);
      break;
    case Counter::ecc_uncorrected:
      result = g_nvml.DeviceGetTotalEccErrors(device, kEccUncorrected, kSinceDriverLoad, &large);
      break;
    case Counter::max_sm_clock:
      if (!g_nvml.DeviceGetMaxClockInfo) return -1;
      result = g_nvml.DeviceGetMaxClockInfo(device, kClockSm, &small);
      break;
    case Counter::processor_wait:  // of a thread, not of a GPU
    case Counter::thread_running:
    case Counter::thread_waiting:
    case Counter::none: return -1;
  }
  value = large ? large : small;
  return result;
}

void put_packed(WireWriter& out, uint32_t field, ByteBuffer& scratch) {
  out.bytes(field, scratch.data(), scratch.size());
  scratch.clear();
}

void add_zigzag(ByteBuffer& scratch, uint64_t difference) {
  uint8_t bytes[kMaxVarintBytes];
  const uint8_t* const end = put_varint(bytes, zigzag(static_cast<int64_t>(difference)));
  (void)scratch.append(bytes, static_cast<size_t>(end - bytes));
}

}  // namespace

void nvml_begin() {
  if (!activity_on(Activity::nvml)) return;
  g_next_ticks = g_next_look = 0;
  g_device_count = 0;
  if (!g_tried) {
    g_tried = true;
    char why[160] = "";
    if (!load(why, sizeof why)) {
      g_nvml = NvmlApi{};
      log_line(LogLevel::warn, "no clocks, power and temperature (activity nvml): %s", why);
    }
  }
}

void nvml_sample(uint64_t ticks) {
  if (!g_nvml.Init_v2 || ticks < g_next_ticks) return;
  g_next_ticks = ticks + static_cast<uint64_t>(kPeriodNs * session().clock.ticks_per_ns);
  if (ticks >= g_next_look) {
    g_next_look = ticks + static_cast<uint64_t>(kLookNs * session().clock.ticks_per_ns);
    find_devices();
  }
  for (size_t i = 0; i < g_device_count; ++i) {
    Device& device = g_devices[i];
    for (uint16_t counter = 1; counter < kCounters; ++counter) {
      if (device.done >> counter & 1) continue;
      uint64_t value = 0;
      if (read_counter(device, static_cast<Counter>(counter), value) != 0) {
        device.done |= 1u << counter;
        continue;
      }
      if (counter == static_cast<uint16_t>(Counter::max_sm_clock)) device.done |= 1u << counter;
      (void)g_samples->push_back({now_ticks(), value, static_cast<uint16_t>(device.id), counter});
    }
  }
}

bool encode_counters(ByteBuffer& out, uint32_t clock_shift) {
  PodVector<Sample>& samples = *g_samples;
  if (samples.empty()) return false;
  WireWriter wire(out);
  ByteBuffer times, values;
  for (size_t i = 0; i < g_device_count; ++i) {
    for (uint16_t counter = 1; counter < kCounters; ++counter) {
      uint64_t last_time = 0, last_value = 0;
      for (const Sample& sample : samples) {
        if (sample.device != g_devices[i].id || sample.counter != counter) continue;
        const uint64_t time = sample.ticks >> clock_shift;
        add_zigzag(times, time - last_time);
        add_zigzag(values, sample.value - last_value);
        last_time = time;
        last_value = sample.value;
      }
      if (times.empty()) continue;
      const size_t mark = wire.open(1);
      wire.uint(1, g_devices[i].id);
      wire.uint(2, counter);
      put_packed(wire, 3, times);
      put_packed(wire, 4, values);
      wire.close(mark);
    }
  }
  samples.clear();
  return wire.ok();
}

namespace {
void forget_nvml() {
  g_tried = false;
  g_library = nullptr;
  g_nvml = NvmlApi{};
  g_device_count = 0;
  g_next_ticks = g_next_look = 0;
  g_samples->clear();
}
GPUPROF_FORGET_IN_CHILD(forget_nvml);
}  // namespace

}  // namespace gpuprof
