// SPDX-License-Identifier: Apache-2.0
// The truth log's lines. README.md states the format.
#pragma once

#include <string>

#include "tests/simcuda/core/port.h"

namespace gpuprof::simcuda {

// Who made a call: the program itself, or a library with a runtime of its own.
enum class CallOrigin : uint8_t { kApplication, kNccl };

// What a call's line says beyond its name and times; what is unset is left out.
struct CallDetails {
  int device = -1;
  int64_t stream = -1;
  int64_t bytes = -1;
  const void* pointer = nullptr;
  const char* kernel = nullptr;
  CopyKind copy_kind = CopyKind::kNone;
  bool waited = false;  // the copy: for its own work
  bool has_shape = false;
  uint32_t grid[3] = {0, 0, 0};
  uint32_t block[3] = {0, 0, 0};
  uint32_t shmem = 0;
  int64_t event = -1;
  int64_t graph = -1;
};

const char* copy_kind_name(CopyKind kind);

void write_truth(const ApiEvent& event, const CallDetails& details, uint32_t tid, CallOrigin origin,
                 bool trivial);
void write_truth(const GpuOpInfo& op);
void write_truth(const SyncInfo& info);

}  // namespace gpuprof::simcuda
