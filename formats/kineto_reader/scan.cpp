// SPDX-License-Identifier: Apache-2.0
#include "formats/kineto_reader/scan.h"

#include <algorithm>
#include <cstring>

namespace gpuprof::kineto {
namespace {

constexpr std::string_view kEventKeys[] = {"ph",  "cat", "name", "pid", "tid", "ts",
                                           "dur", "id",  "args", "s",   "bp"};
constexpr size_t kMostSpace = 256;

// Whether an event begins at `brace`, which holds a '{'.
bool begins_event(const char* begin, const char* brace, const char* end) {
  const char* before = brace;
  while (before > begin && is_space(before[-1]) &&
         brace - before < static_cast<ptrdiff_t>(kMostSpace)) {
    --before;
  }
  if (before == begin || (before[-1] != ',' && before[-1] != '[')) return false;
  const char* at = skip_space(brace + 1, std::min(end, brace + kMostSpace));
  if (end - at < 8 || *at != '"') return false;
  const auto* const quote = static_cast<const char*>(std::memchr(at + 1, '"', 6));
  if (!quote) return false;
  const std::string_view key(at + 1, static_cast<size_t>(quote - at - 1));
  if (std::find(std::begin(kEventKeys), std::end(kEventKeys), key) == std::end(kEventKeys)) {
    return false;
  }
  at = skip_space(quote + 1, std::min(end, quote + kMostSpace));
  return at < end && *at == ':';
}

}  // namespace

const char* last_event_start(const char* begin, const char* end) {
  while (begin < end) {
    const auto* const brace =
        static_cast<const char*>(memrchr(begin, '{', static_cast<size_t>(end - begin)));
    if (!brace) return nullptr;
    if (begins_event(begin, brace, end)) return brace;
    end = brace;
  }
  return nullptr;
}

const char* next_event_start(const char* begin, const char* end) {
  for (const char* at = begin; at < end; ++at) {
    at = static_cast<const char*>(std::memchr(at, '{', static_cast<size_t>(end - at)));
    if (!at) return nullptr;
    if (begins_event(begin, at, end)) return at;
  }
  return nullptr;
}

}  // namespace gpuprof::kineto
