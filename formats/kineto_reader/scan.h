// SPDX-License-Identifier: Apache-2.0
// Finding JSON values in text, as they come in trace files: fast, and without a judgement of what
// is in strings and numbers. Text must be followed by kScanPadding readable bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

namespace gpuprof::kineto {

inline constexpr size_t kScanPadding = 32;
inline constexpr int kDeepest = 512;  // nested arrays and objects; deeper ones are refused

enum class ValueType : uint8_t { none, string, number, literal, object, array, wrong };

// `text` of a string is what lies between its quotes, of anything else the whole value.
struct Value {
  std::string_view text;
  ValueType type = ValueType::none;
  bool escaped = false;  // string: has backslashes
};

inline bool is_space(char c) { return c == ' ' || c == '\n' || c == '\r' || c == '\t'; }

inline const char* skip_space(const char* at, const char* end) {
  while (at < end && is_space(*at)) ++at;
  return at;
}

// The quote that ends the string whose first character is at `at`; null: none before `end`.
inline const char* string_end(const char* at, const char* end, bool& escaped) {
  while (at < end) {
#ifdef __SSE2__
    const __m128i block = _mm_loadu_si128(reinterpret_cast<const __m128i*>(at));
    const __m128i hit = _mm_or_si128(_mm_cmpeq_epi8(block, _mm_set1_epi8('"')),
                                     _mm_cmpeq_epi8(block, _mm_set1_epi8('\\')));
    const int mask = _mm_movemask_epi8(hit);
    if (mask == 0) {
      at += 16;
      continue;
    }
    at += __builtin_ctz(static_cast<unsigned>(mask));
    if (at >= end) return nullptr;
#endif
    if (*at == '"') return at;
    if (*at == '\\') {
      escaped = true;
      ++at;
    }
    ++at;
  }
  return nullptr;
}

// Past the object or array that begins at `at`; null: it does not end before `end`, or is too deep.
inline const char* skip_nested(const char* at, const char* end) {
  int depth = 0;
  while (at < end) {
#ifdef __SSE2__
    const __m128i block = _mm_loadu_si128(reinterpret_cast<const __m128i*>(at));
    const __m128i lower = _mm_or_si128(block, _mm_set1_epi8(0x20));  // [ { and ] } are one
    const __m128i hit = _mm_or_si128(_mm_cmpeq_epi8(block, _mm_set1_epi8('"')),
                                     _mm_or_si128(_mm_cmpeq_epi8(lower, _mm_set1_epi8('{')),
                                                  _mm_cmpeq_epi8(lower, _mm_set1_epi8('}'))));
    const int mask = _mm_movemask_epi8(hit);
    if (mask == 0) {
      at += 16;
      continue;
    }
    at += __builtin_ctz(static_cast<unsigned>(mask));
    if (at >= end) return nullptr;
#endif
    const char c = *at++;
    if (c == '"') {
      bool escaped = false;
      const char* const quote = string_end(at, end, escaped);
      if (!quote) return nullptr;
      at = quote + 1;
    } else if (c == '{' || c == '[') {
      if (++depth > kDeepest) return nullptr;
    } else if (c == '}' || c == ']') {
      if (--depth == 0) return at;
    }
  }
  return nullptr;
}

inline bool ends_word(char c) {
  return c == ',' || c == '}' || c == ']' || c == ':' || c == '"' || is_space(c);
}

// Reads the value at `at` (no space before it). Null: it does not end before `end`. What is no JSON
// value (NaN, Infinity, N/A) has type `wrong` and reaches to the next separator.
inline const char* read_value(const char* at, const char* end, Value& out) {
  const char* const begin = at;
  out.escaped = false;
  if (at >= end) return nullptr;
  if (*at == '"') {
    const char* const quote = string_end(at + 1, end, out.escaped);
    if (!quote) return nullptr;
    out.text = {begin + 1, static_cast<size_t>(quote - begin - 1)};
    out.type = ValueType::string;
    return quote + 1;
  }
  if (*at == '{' || *at == '[') {
    out.type = *at == '{' ? ValueType::object : ValueType::array;
    at = skip_nested(at, end);
    if (at) out.text = {begin, static_cast<size_t>(at - begin)};
    return at;
  }
  while (at < end && !ends_word(*at)) ++at;
  if (at == end) return nullptr;
  out.text = {begin, static_cast<size_t>(at - begin)};
  const char first = *begin == '-' && out.text.size() > 1 ? begin[1] : *begin;
  if (first >= '0' && first <= '9') {
    out.type = ValueType::number;
  } else {
    const bool literal = out.text == "true" || out.text == "false" || out.text == "null";
    out.type = literal ? ValueType::literal : ValueType::wrong;
  }
  return at;
}

// Where the last event seems to begin in text that ends within an array of events. That is an
// object after ',' or '[' whose first key is one of an event's. Null: none. It is a guess where
// events hold arrays of objects with such keys; whoever reads on from there must be able to be told
// otherwise.
const char* last_event_start(const char* begin, const char* end);
// The first one at or after `begin`.
const char* next_event_start(const char* begin, const char* end);

}  // namespace gpuprof::kineto
