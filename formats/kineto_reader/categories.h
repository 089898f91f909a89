// SPDX-License-Identifier: Apache-2.0
// Kineto's categories, in the spelling of today and of 2021 (Operator, Kernel, Runtime, async).
#pragma once

#include <cstdint>
#include <optional>
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
  span,   // the time that the profiler was on
  other,  // any that is not in the list
};
Category category_of_text(std::string_view text);

// Whether a flow of this category is the arrow from a call to the work that it launched.
bool is_launch_flow(std::string_view category);

// 12 of "ProfilerStep#12"; nothing of other names.
std::optional<uint64_t> step_number(std::string_view name);

// "Memcpy HtoD (Pinned -> Device)" as CUPTI's numbers; what is not said stays 0.
void set_copy_kinds(std::string_view name, Shape& shape);
// "Memset (Device)"
void set_memory_kind(std::string_view name, Shape& shape);

}  // namespace gpuprof::kineto
