// SPDX-License-Identifier: Apache-2.0
#include "collector/sources/interconnect.h"

#include "collector/base/fork.h"
#include "collector/base/libraries.h"
#include "collector/sources/network_ports.h"
#include "collector/sources/nvml_devices.h"

namespace gpuprof {
namespace {

// NVML's ABI as far as it is needed; its header does not come with the toolkit's runtime. Numbers
// and layout: nvml.h, unchanged since R410.
constexpr unsigned kMostLinks = 36;    // NVML_NVLINK_MAX_LINKS is 18 up to Blackwell
constexpr unsigned kCommonSpeed = 90;  // NVML_FI_DEV_NVLINK_SPEED_MBPS_COMMON
constexpr unsigned kUnsignedInt = 1;   // NVML_VALUE_TYPE_UNSIGNED_INT
struct NvmlFieldValue {
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
static_assert(sizeof(NvmlFieldValue) == 40);

struct Links {
  uint32_t device, active, version, mbytes_per_s;
};

constexpr uint64_t kSecond = 1'000'000'000;

uint64_t g_next_look_ns = 0;
bool g_initialised = false, g_links_known = false, g_ports_known = false;
Links g_links[kMostNvmlGpus];
size_t g_link_count = 0;
NetworkPort g_ports[kMostNetworkPorts];
size_t g_port_count = 0;

template <typename Function>
Function symbol(void* library, const char* name) {
  return reinterpret_cast<Function>(real_symbol(library, name));
}

uint32_t common_speed(void* nvml, NvmlDevice device) {
  const auto get =
      symbol<int (*)(NvmlDevice, int, NvmlFieldValue*)>(nvml, "nvmlDeviceGetFieldValues");
  NvmlFieldValue value{};
  value.field = kCommonSpeed;
  const bool told =
      get && get(device, 1, &value) == 0 && value.result == 0 && value.value_type == kUnsignedInt;
  return told ? value.value.small : 0;
}

// A link that is down says that it is not active; one that the GPU does not have gives an error.
Links links_of(void* nvml, const NvmlGpu& gpu) {
  const auto state = symbol<int (*)(NvmlDevice, unsigned, int*)>(nvml, "nvmlDeviceGetNvLinkState");
  const auto version =
      symbol<int (*)(NvmlDevice, unsigned, unsigned*)>(nvml, "nvmlDeviceGetNvLinkVersion");
  Links out{gpu.id, 0, 0, 0};
  for (unsigned link = 0; state && link < kMostLinks; ++link) {
    int active = 0;
    if (state(gpu.handle, link, &active) != 0 || active != 1) continue;
    unsigned number = 0;
    if (out.active++ == 0 && version && version(gpu.handle, link, &number) == 0) {
      out.version = number;
    }
  }
  if (out.active > 0) out.mbytes_per_s = common_speed(nvml, gpu.handle);
  return out;
}

void look_at_links() {
  void* const nvml = loaded_nvml();
  if (!nvml) return;
  if (!g_initialised) {  // by NCCL, most likely; it counts its callers
    const auto init = symbol<int (*)()>(nvml, "nvmlInit_v2");
    g_initialised = init && init() == 0;
    g_links_known = !g_initialised;
  }
  if (!g_initialised) return;
  NvmlGpu gpus[kMostNvmlGpus];
  const size_t count = find_nvml_gpus(nvml, gpus);
  for (size_t i = 0; i < count; ++i) {
    const Links links = links_of(nvml, gpus[i]);
    if (links.active > 0) g_links[g_link_count++] = links;
  }
  g_links_known = count > 0;
}

void forget_interconnect() {
  g_next_look_ns = 0;
  g_initialised = g_links_known = g_ports_known = false;
  g_link_count = g_port_count = 0;
}
GPUPROF_FORGET_IN_CHILD(forget_interconnect);

}  // namespace

void look_at_interconnect(uint64_t now_ns) {
  if (g_links_known && g_ports_known) return;
  if (now_ns < g_next_look_ns) return;
  g_next_look_ns = now_ns + kSecond;
  if (!g_ports_known) g_port_count = read_network_ports("/sys/class/infiniband", g_ports);
  g_ports_known = true;
  if (!g_links_known) look_at_links();
}

void encode_interconnect(WireWriter& out) {
  for (size_t i = 0; i < g_link_count; ++i) {
    const size_t mark = out.open(26);
    out.uint(1, g_links[i].device);
    out.uint(2, g_links[i].active);
    out.uint(3, g_links[i].version);
    out.uint(4, g_links[i].mbytes_per_s);
    out.close(mark);
  }
  for (size_t i = 0; i < g_port_count; ++i) {
    const size_t mark = out.open(27);
    out.text(1, g_ports[i].adapter);
    out.uint(2, g_ports[i].number);
    out.uint(3, g_ports[i].mbits_per_s);
    out.text(4, g_ports[i].link_layer);
    out.close(mark);
  }
}

}  // namespace gpuprof
