// SPDX-License-Identifier: Apache-2.0
#include "collector/base/redact.h"

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstring>

#include "formats/core/text.h"

namespace gpuprof {
namespace {

std::atomic<uint32_t> g_redacted{0};

constexpr char kBetweenPaths[] = " \t\"',:;=()[]<>";

}  // namespace

void redact(uint32_t what) { g_redacted.store(what, std::memory_order_relaxed); }

bool is_redacted(Redact what) {
  return g_redacted.load(std::memory_order_relaxed) >> static_cast<uint32_t>(what) & 1;
}

std::string_view shown_path(std::string_view path) {
  if (!is_redacted(Redact::paths)) return path;
  size_t begin = path.size();
  while (begin > 0 && path[begin - 1] != '/') --begin;
  return slice(path, begin);
}

const char* shown_text(const char* text, char* out, size_t size) {
  size_t used = 0, word = 0;  // where the word that is being copied begins
  for (; *text && used + 1 < size; ++text) {
    if (*text == '/' && is_redacted(Redact::paths)) {
      used = word;
      continue;
    }
    out[used++] = *text;
    if (std::strchr(kBetweenPaths, *text)) word = used;
  }
  out[used] = '\0';
  return out;
}

const char* shown_name(const char* kind, const char* name, char* out, size_t size) {
  if (!name[0] || !is_redacted(Redact::environment)) return name;
  pseudonym(kind, name, {}, out, size);
  return out;
}

void pseudonym(const char* kind, std::string_view text, std::string_view salt, char* out,
               size_t size) {
  uint64_t hash = 14695981039346656037u;  // FNV-1a
  for (const std::string_view part : {salt, text}) {
    for (const char c : part) hash = (hash ^ static_cast<uint8_t>(c)) * 1099511628211u;
  }
  std::snprintf(out, size, "%s-%08x", kind, static_cast<uint32_t>(hash ^ hash >> 32));
}

}  // namespace gpuprof
