// SPDX-License-Identifier: Apache-2.0
// What ranks are connected by, as far as their dumps tell, and what that can carry at most.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "formats/trace/trace.h"

namespace gpuprof::analysis {

// Which link is assumed: no record says which way NCCL takes.
struct LinkPeak {
  double gbs = 0;    // 1e9 bytes a second, one way; 0: not known
  std::string link;  // "18 NVLinks of 26.6 GB/s", "8 InfiniBand ports of 400 Gb/s"
};

class Interconnect {
 public:
  void add(const Process& process);
  // What bounds the bus bandwidth of a collective on these ranks, which are all of its
  // communicator. On one host: the active NVLinks of a GPU, the least of all ranks'. On several:
  // all active ports of a host, the least of all hosts', of what a host sends as a whole by
  // bus_bandwidth.h (AllReduce, AllGather, ReduceScatter, Broadcast, Reduce).
  LinkPeak peak_of(std::string_view function, std::span<const int32_t> ranks) const;

 private:
  struct Rank {
    std::string host;
    LinkPeak nvlinks;
  };
  std::map<int32_t, Rank> ranks_;
  std::map<std::string, LinkPeak> hosts_;
};

}  // namespace gpuprof::analysis
