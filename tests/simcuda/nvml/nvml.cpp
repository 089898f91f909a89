// SPDX-License-Identifier: Apache-2.0
// A libnvidia-ml.so.1 whose every answer goes into the truth folder as nvml_<pid>.jsonl. Signatures
// are those of NVML; its header is not part of the toolkit's runtime.
#include <fmt/format.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <string>

#include "tests/simcuda/core/clock.h"

namespace {

using gpuprof::simcuda::now_ns;

enum : int {
  kSuccess = 0,
  kUninitialized = 1,
  kInvalidArgument = 2,
  kNotSupported = 3,
  kNotFound = 6
};

struct SimDevice {
  int index;
  unsigned long long answers;
};

SimDevice g_devices[64];
SimDevice g_slices[64];  // SIMCUDA_MIG: of each the one that CUDA's device is

bool has_slices() { return std::getenv("SIMCUDA_MIG") != nullptr; }
bool is_slice(const void* device) { return device >= g_slices && device < std::end(g_slices); }
std::atomic<int> g_users{0};  // nvmlInit less nvmlShutdown

// SIMCUDA_NVLINK=LINKSxMBPS[,down=N]: what each GPU has, the first N of them not active.
struct SimLinks {
  unsigned links = 0, mbytes_per_s = 0, down = 0;
};
SimLinks links() {
  SimLinks out;
  const char* const text = std::getenv("SIMCUDA_NVLINK");
  if (text) std::sscanf(text, "%ux%u,down=%u", &out.links, &out.mbytes_per_s, &out.down);
  return out;
}

// NVML's answer to a question about a link; kSuccess: the GPU has it.
int find_link(const void* device, unsigned link, const void* out) {
  if (g_users == 0) return kUninitialized;
  if (device == nullptr || out == nullptr) return kInvalidArgument;
  const SimLinks all = links();
  if (all.links == 0) return kNotSupported;
  return link < all.links ? kSuccess : kInvalidArgument;
}

// nvmlFieldValue_t.
struct FieldValue {
  unsigned field, scope;
  long long timestamp, latency_us;
  unsigned value_type;
  int result;
  union {
    double number;
    unsigned small;
    unsigned long long large;
  } value;
};
constexpr unsigned kUnsignedInt = 1;                    // NVML_VALUE_TYPE_UNSIGNED_INT
constexpr unsigned kCommonSpeed = 90, kLinkCount = 91;  // NVML_FI_DEV_NVLINK_...

// SIMCUDA_NVML=NAME,...: functions that this GPU does not support.
bool supported(const char* name) {
  const char* text = std::getenv("SIMCUDA_NVML");
  return text == nullptr || std::strstr(text, name) == nullptr;
}

void note(const SimDevice& device, const char* counter, unsigned long long value) {
  const char* const folder = std::getenv("SIMCUDA_TRUTH");
  if (folder == nullptr) return;
  static std::FILE* const file =
      std::fopen(fmt::format("{}/nvml_{}.jsonl", folder, ::getpid()).c_str(), "a");
  if (file == nullptr) return;
  fmt::print(file, "{{\"t\":\"nvml\",\"device\":{},\"name\":\"{}\",\"value\":{},\"time\":{}}}\n",
             device.index, counter, value, now_ns());
  std::fflush(file);
}

// Each answer differs from the one before. "NVML_ERROR_UNINITIALIZED if the library has not been
// successfully initialized" (NVML, Device Queries).
template <typename Value>
int answer(const char* function, void* handle, const char* counter, unsigned long long base,
           Value* out) {
  if (g_users == 0) return kUninitialized;
  if (handle == nullptr || out == nullptr) return kInvalidArgument;
  if (!supported(function)) return kNotSupported;
  SimDevice& device = *static_cast<SimDevice*>(handle);
  *out = static_cast<Value>(base + device.answers++ % 50);
  note(device, counter, *out);
  return kSuccess;
}

struct Utilization {
  unsigned gpu, memory;
};
struct Memory {
  unsigned long long total, free, used;
};

}  // namespace

extern "C" {

int nvmlInit_v2() {
  ++g_users;
  return kSuccess;
}

int nvmlShutdown() {
  if (g_users == 0) return kUninitialized;
  --g_users;
  return kSuccess;
}

// As the runtime's cudaDeviceGetPCIBusId numbers them: bus 10 (hex) is device 0.
int nvmlDeviceGetHandleByPciBusId_v2(const char* bus_id, void** out) {
  if (g_users == 0) return kUninitialized;
  unsigned domain = 0, bus = 0;
  if (bus_id == nullptr || out == nullptr || std::sscanf(bus_id, "%x:%x:", &domain, &bus) != 2) {
    return kInvalidArgument;
  }
  if (bus < 0x10 || bus >= 0x10 + 64) return kNotFound;
  g_devices[bus - 0x10].index = static_cast<int>(bus - 0x10);
  *out = &g_devices[bus - 0x10];
  return kSuccess;
}

int nvmlDeviceGetMigMode(void* device, unsigned* now, unsigned* later) {
  if (g_users == 0) return kUninitialized;
  if (device == nullptr || now == nullptr || later == nullptr) return kInvalidArgument;
  *now = *later = has_slices();
  return kSuccess;
}

// Of slices alone; their last byte is the device's number (cuDeviceGetUuid_v2).
int nvmlDeviceGetHandleByUUID(const char* uuid, void** out) {
  if (g_users == 0) return kUninitialized;
  unsigned index = 0;
  constexpr const char* kForm = "MIG-73696d63-7564-612d-6465-76696365%*2x%2x";  // "simcuda-device"
  if (uuid == nullptr || out == nullptr || std::sscanf(uuid, kForm, &index) != 1) return kNotFound;
  if (!has_slices() || index >= 64 || !supported("nvmlDeviceGetHandleByUUID")) return kNotFound;
  g_slices[index].index = static_cast<int>(index);
  *out = &g_slices[index];
  return kSuccess;
}

int nvmlDeviceGetClockInfo(void* device, int type, unsigned* out) {
  return type == 1 ? answer("nvmlDeviceGetClockInfo", device, "SM clock", 1400, out)
                   : answer("nvmlDeviceGetClockInfo", device, "memory clock", 2600, out);
}

int nvmlDeviceGetMaxClockInfo(void* device, int, unsigned* out) {
  return answer("nvmlDeviceGetMaxClockInfo", device, "SM clock at most", 1980, out);
}

int nvmlDeviceGetPowerUsage(void* device, unsigned* out) {
  return answer("nvmlDeviceGetPowerUsage", device, "power", 350000, out);
}

int nvmlDeviceGetTemperature(void* device, int, unsigned* out) {
  return answer("nvmlDeviceGetTemperature", device, "temperature", 40, out);
}

int nvmlDeviceGetCurrentClocksThrottleReasons(void* device, unsigned long long* out) {
  return answer("nvmlDeviceGetCurrentClocksThrottleReasons", device, "throttle reasons", 0, out);
}

int nvmlDeviceGetUtilizationRates(void* device, Utilization* out) {
  if (out == nullptr) return kInvalidArgument;
  // "On MIG-enabled GPUs, querying device utilization rates is not currently supported" (NVML).
  if (has_slices()) return kNotSupported;
  const char* const name = "nvmlDeviceGetUtilizationRates";
  const int result = answer(name, device, "GPU busy", 50, &out->gpu);
  return result != kSuccess ? result : answer(name, device, "GPU memory busy", 10, &out->memory);
}

int nvmlDeviceGetMemoryInfo(void* device, Memory* out) {
  if (out == nullptr) return kInvalidArgument;
  // A GPU with slices is asked for all of them together, and others fill theirs.
  const unsigned long long gib = is_slice(device) ? 2 : has_slices() ? 79 : 20;
  out->total = (is_slice(device) ? 10ull : 80ull) << 30;
  const int result =
      answer("nvmlDeviceGetMemoryInfo", device, "GPU memory used", gib << 30, &out->used);
  out->free = out->total - out->used;
  return result;
}

int nvmlDeviceGetTotalEccErrors(void* device, int type, int, unsigned long long* out) {
  return answer("nvmlDeviceGetTotalEccErrors", device,
                type == 0 ? "ECC errors corrected" : "ECC errors uncorrected", 0, out);
}

int nvmlSystemGetCudaDriverVersion_v2(int* out) {
  if (out == nullptr) return kInvalidArgument;
  *out = 13000;
  return kSuccess;
}

int nvmlDeviceGetNvLinkState(void* device, unsigned link, int* active) {
  const int result = find_link(device, link, active);
  if (result == kSuccess) *active = link >= links().down;
  return result;
}

int nvmlDeviceGetNvLinkVersion(void* device, unsigned link, unsigned* version) {
  constexpr unsigned kNvLink4 = 6;  // NVML_NVLINK_VERSION_4_0
  const int result = find_link(device, link, version);
  if (result == kSuccess) *version = kNvLink4;
  return result;
}

// It succeeds if any field could be read; each has a result of its own.
int nvmlDeviceGetFieldValues(void* device, int count, FieldValue* values) {
  if (g_users == 0) return kUninitialized;
  if (device == nullptr || values == nullptr) return kInvalidArgument;
  const SimLinks all = links();
  for (int i = 0; i < count; ++i) {
    FieldValue& value = values[i];
    const bool known = value.field == kCommonSpeed || value.field == kLinkCount;
    value.result = known && all.links > 0 ? kSuccess : kNotSupported;
    if (value.result != kSuccess) continue;
    value.value_type = kUnsignedInt;
    value.value.small = value.field == kLinkCount ? all.links : all.mbytes_per_s;
  }
  return kSuccess;
}

// What is at the other end of an NVLink is not told, and no process is listed.
int nvmlDeviceGetNvLinkRemoteDeviceType(void*, unsigned, int*) { return kNotSupported; }
int nvmlDeviceGetNvLinkRemotePciInfo_v2(void*, unsigned, void*) { return kNotSupported; }
int nvmlDeviceGetComputeRunningProcesses(void*, unsigned* count, void*) {
  if (count == nullptr) return kInvalidArgument;
  *count = 0;
  return kSuccess;
}

}  // extern "C"
