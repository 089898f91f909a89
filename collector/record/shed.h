// SPDX-License-Identifier: Apache-2.0
// Which kinds GPUPROF_BUDGET has taken out of the recording. The drain thread decides
// (window/budget.h); hooks have it in their flags, what else records asks here.
#pragma once

#include <atomic>
#include <cstdint>

#include "collector/record/recorder.h"
#include "formats/core/shed.h"

namespace gpuprof {

extern std::atomic<uint32_t> g_shed;  // a bit per ShedKind

constexpr uint32_t shed_bit(ShedKind kind) { return 1u << static_cast<uint32_t>(kind); }

inline bool is_shed(ShedKind kind) {
  return g_shed.load(std::memory_order_relaxed) & shed_bit(kind);
}

// Which kind the calls of a row are; none: they stay.
constexpr ShedKind shed_kind(const ApiRow& row) {
  if (row.library == Library::nccl) return ShedKind::none;
  switch (row.role) {
    case ApiRole::sync:
    case ApiRole::device_sync: return ShedKind::waits;
    case ApiRole::call:
    case ApiRole::end_context:
    case ApiRole::alloc:
    case ApiRole::dealloc:
    case ApiRole::host_alloc:
    case ApiRole::host_dealloc:
    case ApiRole::event:
    case ApiRole::stream: return ShedKind::calls;
    case ApiRole::none:
    case ApiRole::launch:
    case ApiRole::graph_launch:
    case ApiRole::copy:
    case ApiRole::set:
    case ApiRole::graph:
    case ApiRole::begin_capture:
    case ApiRole::end_capture:
    case ApiRole::profiler_start:
    case ApiRole::profiler_stop:
    case ApiRole::collective: break;
  }
  return ShedKind::none;
}
inline bool is_shed(const ApiRow& row) { return is_shed(shed_kind(row)); }

}  // namespace gpuprof
