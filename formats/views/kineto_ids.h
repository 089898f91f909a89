// SPDX-License-Identifier: Apache-2.0
// The process and device ids that rows go by in a Kineto-style JSON file.
#pragma once

#include <cstdint>
#include <map>
#include <span>

#include "formats/trace/process_key.h"

namespace gpuprof {

struct KinetoIds {
  uint32_t pid = 0;
  uint32_t overhead_pid = 0;
  std::map<uint32_t, uint32_t> gpus;  // device -> pid of its rows
};

// Unique among `processes`. A single process keeps its own: pid, and devices by ordinal; of
// several, GPUs are counted through.
std::map<ProcessKey, KinetoIds> assign_kineto_ids(std::span<const Process* const> processes);

}  // namespace gpuprof
