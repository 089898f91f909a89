// SPDX-License-Identifier: Apache-2.0
// What the program named by NVTX (message NvtxNames), on its way to lanes and shapes.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "formats/dump/lane_filler.h"
#include "formats/gpuprof.pb.h"

namespace gpuprof {

class NvtxNames {
 public:
  // `most`: names that are believed, so that a small hostile file stays small.
  void add(const dump::NvtxNames& names, size_t most);
  // Threads, and categories of ranges and marks.
  void name_lanes(Trace& trace, std::vector<OpenLane>& lanes) const;
  // Once it is known which stream is behind a handle: streams and GPUs.
  void name_process(Process& process) const;

 private:
  std::map<std::pair<std::string, uint64_t>, std::string> categories_;  // by domain and number
  std::map<uint64_t, std::string> threads_, streams_, devices_;
};

}  // namespace gpuprof
