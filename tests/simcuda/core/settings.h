// SPDX-License-Identifier: Apache-2.0
// SIMCUDA_* environment variables, read once when the simulator starts. README.md lists them.
#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace gpuprof::simcuda {

// The Nth call (from 1) of an API fails with a CUDA error code.
struct InjectedFailure {
  uint64_t call = 0;
  int error = 0;
};

struct Settings {
  int devices = 8;
  uint64_t memory_bytes = 80ull << 30;
  uint64_t kernel_ns = 5000;
  uint64_t launch_latency_ns = 3000;
  uint32_t queue = 0;                      // entries of a stream that may wait; 0: any number
  uint32_t connections = 0;                // work queues of a device; 0: one per stream
  uint64_t copy_limit_bytes = 1ull << 20;  // bytes really moved per copy
  uint64_t seed = 1;
  uint32_t first_correlation = 1;
  double pageable_gb_s = 6;
  double pinned_gb_s = 25;
  double device_gb_s = 1000;
  double peer_gb_s = 50;
  double memset_gb_s = 2000;
  bool no_driver = false;
  bool reversed_node_ids = false;  // of executable graphs: not in the order of capture
  uint64_t held_graph_launch = 0;  // which launch of a graph is held, from 1 on; 0: none
  uint64_t held_ms = 0;            // so long, before the driver has it
  uint32_t injection_ms = 0;       // from loading an injection library to starting it
  std::string truth_directory;
  bool truth_all = false;
  bool truth_sync = false;
  std::map<std::string, InjectedFailure> failures;
};

// Wrong values give one line on stderr and leave the default.
const Settings& settings();

}  // namespace gpuprof::simcuda
