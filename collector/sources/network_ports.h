// SPDX-License-Identifier: Apache-2.0
// The active ports of the host's InfiniBand and RoCE adapters, as the kernel lists them
// (Documentation/ABI/stable/sysfs-class-infiniband).
#pragma once

#include <cstddef>
#include <cstdint>

namespace gpuprof {

struct NetworkPort {
  char adapter[64];      // "mlx5_0"
  uint32_t number;       // from 1
  uint32_t mbits_per_s;  // one way, 10^6 bits; 0: not known
  char link_layer[32];   // "InfiniBand", "Ethernet"
};
inline constexpr size_t kMostNetworkPorts = 64;

// At most kMostNetworkPorts are written to `out`, in the order of the directory; returns how many.
// `directory`: "/sys/class/infiniband". On the drain thread.
size_t read_network_ports(const char* directory, NetworkPort* out);

// 400000 for "400 Gb/sec (4X NDR)", 2500 for "2.5 Gb/sec (1X SDR)"; 0: it is none such.
uint32_t read_rate_mbits(const char* text);

}  // namespace gpuprof
