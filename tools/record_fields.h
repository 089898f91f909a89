// SPDX-License-Identifier: Apache-2.0
// The fields of a record as `gpuprof parse` prints them; one list of keys for text and JSON.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "formats/trace/trace.h"

namespace gpuprof {

// Collects `, "key": value` or ` key=value`.
class FieldWriter {
 public:
  enum class Style { json, text };
  FieldWriter(Style style, std::string& out) : style_(style), out_(out) {}

  void number(std::string_view key, int64_t value);
  void number(std::string_view key, uint64_t value);
  void address(std::string_view key, uint64_t value);  // text: in hex
  void text(std::string_view key, std::string_view value);
  void list(std::string_view key, std::initializer_list<uint64_t> values);
  void json(std::string_view key, std::string_view value);                   // that is JSON already
  void texts(std::string_view key, const std::vector<std::string>& values);  // text: "a; b"

 private:
  void key(std::string_view key);

  Style style_;
  std::string& out_;
};

// Appends `text` to `out` as a JSON string; bytes that are not UTF-8 are replaced.
void append_json_string(std::string& out, std::string_view text);

// The arguments of `event`: everything but kind, name, lane, times and correlation. Which keys each
// kind has is listed in kRecordKeys.
void write_arguments(const Trace& trace, const Process& process, const Event& event,
                     FieldWriter& out);

// For `gpuprof parse --help`.
extern const char* const kRecordKeys;

}  // namespace gpuprof
