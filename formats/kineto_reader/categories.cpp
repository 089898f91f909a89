// SPDX-License-Identifier: Apache-2.0
#include "formats/kineto_reader/categories.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>

#include "formats/trace/names.h"

namespace gpuprof::kineto {
namespace {

struct Spelling {
  std::string_view text;  // in lower case
  Category category;
};

// Frequent ones first.
constexpr Spelling kSpellings[] = {
    {"cpu_op", Category::op},
    {"python_function", Category::python},
    {"cuda_runtime", Category::runtime},
    {"kernel", Category::kernel},
    {"user_annotation", Category::annotation},
    {"cuda_driver", Category::driver},
    {"gpu_memcpy", Category::copy},
    {"gpu_memset", Category::set},
    {"gpu_user_annotation", Category::gpu_annotation},
    {"cuda_sync", Category::sync},
    {"cuda_event", Category::event},
    {"overhead", Category::overhead},
    {"operator", Category::op},
    {"runtime", Category::runtime},
    {"memcpy", Category::copy},
    {"memset", Category::set},
    {"python", Category::python},
    {"hip_runtime", Category::runtime},
    {"hip_driver", Category::driver},
    // Other devices' names, which Kineto of today has as aliases of the above.
    {"xpu_runtime", Category::runtime},
    {"xpu_driver", Category::driver},
    {"xpu_sync", Category::xpu_sync},
    {"mtia_runtime", Category::runtime},
    {"mtia_ccp_events", Category::kernel},
    {"privateuse1_runtime", Category::runtime},
    {"privateuse1_driver", Category::driver},
    {"glow_runtime", Category::runtime},
    {"hpu_op", Category::runtime},
    {"trace", Category::span},
};

bool same(std::string_view text, std::string_view lower) {
  return text.size() == lower.size() &&
         std::equal(text.begin(), text.end(), lower.begin(), [](char a, char b) {
           return a == b || std::tolower(static_cast<unsigned char>(a)) == b;
         });
}

constexpr uint32_t kDirections = 11, kMemoryKinds = 8;  // CUPTI's, with "Unknown" as 0
constexpr uint32_t kHostToDevice = 1, kDeviceToHost = 2, kDeviceToDevice = 8, kHostToHost = 9;
constexpr uint32_t kPageable = 1, kPinned = 2, kDevice = 3, kManaged = 5;

// Of a letter of PTI's; 0: it is none.
uint32_t memory_kind_of(char letter) {
  switch (letter) {
    case 'M': return kPageable;
    case 'H': return kPinned;
    case 'D': return kDevice;
    case 'S': return kManaged;
    default: return 0;
  }
}

// "M2D". Shared memory may be on either side.
void set_kinds_of_pti(std::string_view type, Shape& shape) {
  if (type.size() != 3 || type[1] != '2') return;
  const uint32_t from = memory_kind_of(type[0]), to = memory_kind_of(type[2]);
  if (!from || !to) return;
  shape.source_kind = from, shape.destination_kind = to;
  if (from == kManaged || to == kManaged) return;
  shape.direction = from == kDevice ? (to == kDevice ? kDeviceToDevice : kDeviceToHost)
                                    : (to == kDevice ? kHostToDevice : kHostToHost);
}

// What stands between the first '(' and the last ')'.
std::string_view in_brackets(std::string_view name) {
  const size_t open = name.find('('), close = name.rfind(')');
  if (open == std::string_view::npos || close == std::string_view::npos || close < open) return {};
  return name.substr(open + 1, close - open - 1);
}

}  // namespace

Category category_of_text(std::string_view text) {
  for (const Spelling& spelling : kSpellings) {
    if (same(text, spelling.text)) return spelling.category;
  }
  return Category::other;
}

bool is_launch_flow(std::string_view category) {
  return category == "ac2g" || category == "async" || category == "async_cpu_to_gpu" ||
         category == "async_gpu";
}

std::optional<uint64_t> step_number(std::string_view name) {
  constexpr std::string_view kStep = "ProfilerStep#";
  if (!name.starts_with(kStep)) return std::nullopt;
  uint64_t number = 0;
  const char* const end = name.data() + name.size();
  const auto [at, error] = std::from_chars(name.data() + kStep.size(), end, number);
  if (error != std::errc() || at != end) return std::nullopt;
  return number;
}

uint32_t copy_direction_of(std::string_view name) {
  for (uint32_t kind = 1; kind < kDirections; ++kind) {
    if (copy_direction_name(kind) == name) return kind;
  }
  return 0;
}

uint32_t memory_kind_of(std::string_view name) {
  const auto alike = [](char a, char b) {
    const auto lower = [](char c) { return std::tolower(static_cast<unsigned char>(c)); };
    return lower(a) == (b == '_' ? ' ' : lower(b));
  };
  for (uint32_t kind = 1; kind < kMemoryKinds; ++kind) {
    const std::string_view known = memory_kind_name(kind);
    if (std::equal(known.begin(), known.end(), name.begin(), name.end(), alike)) return kind;
  }
  return 0;
}

void set_copy_kinds(std::string_view name, Shape& shape) {
  if (!name.starts_with("Memcpy ")) return;
  const std::string_view direction = name.substr(7, name.find(' ', 7) - 7);
  shape.direction = copy_direction_of(direction);
  set_kinds_of_pti(direction, shape);
  const std::string_view kinds = in_brackets(name);
  const size_t arrow = kinds.find(" -> ");
  if (arrow == std::string_view::npos || shape.source_kind) return;
  shape.source_kind = memory_kind_of(kinds.substr(0, arrow));
  shape.destination_kind = memory_kind_of(kinds.substr(arrow + 4));
}

void set_memory_kind(std::string_view name, Shape& shape) {
  shape.destination_kind = memory_kind_of(in_brackets(name));
}

std::string usual_name(std::string_view name, const Shape& shape) {
  if (shape.kind == Kind::gpu_set) {
    const bool bare = name == "Memset" && shape.destination_kind;
    return bare ? fmt::format("Memset ({})", memory_kind_name(shape.destination_kind)) : "";
  }
  if (shape.direction == 0 || !name.starts_with("Memcpy")) return {};
  const std::string_view direction = copy_direction_name(shape.direction);
  if (name.find(direction) != std::string_view::npos) return {};
  return fmt::format("Memcpy {} ({} -> {})", direction, memory_kind_name(shape.source_kind),
                     memory_kind_name(shape.destination_kind));
}

}  // namespace gpuprof::kineto
