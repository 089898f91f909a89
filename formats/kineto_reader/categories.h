// SPDX-License-Identifier: Apache-2.0
// Kineto's categories, in the spelling of today and of 2021 (Operator, Kernel, Runtime, async).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "formats/core/record.h"
#include "formats/trace/trace.h"

namespace gpuprof::kineto {

enum class Category : uint8_t {
  op,
  annotation,
  python,
  runtime,
  driver,
  kernel,
  copy,
  set,
  gpu_annotation,
  sync,
  event,
  overhead,
  xpu_sync,  // a wait of a thread of the host, or a barrier on an XPU
  span,      // the time that the profiler was on
  other,     // any that is not in the list
};
Category category_of_text(std::string_view text);

// Whether a flow of this category is the arrow from a call to the work that it launched.
bool is_launch_flow(std::string_view category);

// 12 of "ProfilerStep#12"; nothing of other names.
std::optional<uint64_t> step_number(std::string_view name);

// CUPTI's numbers of "HtoD", and of "Pageable", "pageable", "device_static"; 0: not one of them.
uint32_t copy_direction_of(std::string_view name);
uint32_t memory_kind_of(std::string_view name);

// "Memcpy HtoD (Pinned -> Device)" as CUPTI's numbers; what is not said stays 0. "Memcpy M2D (...)"
// is what Kineto writes for XPUs (ptiViewMemcpyTypeToString() in Intel's PTI): from pageable memory
// (M), pinned (H), the device's (D) or shared (S).
void set_copy_kinds(std::string_view name, Shape& shape);
// "Memset (Device)"
void set_memory_kind(std::string_view name, Shape& shape);
// What Kineto calls such a copy, or set, of CUDA's; empty: it is called so, or nothing is known.
std::string usual_name(std::string_view name, const Shape& shape);

}  // namespace gpuprof::kineto
