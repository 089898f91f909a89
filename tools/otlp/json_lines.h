// SPDX-License-Identifier: Apache-2.0
// OTLP as JSON, by the rules of OpenTelemetry's "JSON Protobuf Encoding" and "File Exporter". Whole
// numbers of 64 bits are strings of decimals, enum values are numbers, and a file has one object
// on each line.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "formats/io/file_bytes.h"
#include "tools/describe.h"

namespace gpuprof::otlp {

// A list of KeyValue. What is not known is not added.
class Attributes {
 public:
  void text(std::string_view key, std::string_view value);  // empty: not known
  void whole(std::string_view key, int64_t value);
  void texts(std::string_view key, const std::vector<std::string>& values);
  Json take() { return std::move(list_); }

 private:
  void add(std::string_view key, const char* type, Json value);

  Json list_ = Json::array();
};

// A moment, as fixed64 fields have it; `ns` since 1970, not negative.
Json unix_nano(int64_t ns);

// Writes lines of spans or of metrics, each with its resource. A line stays below 1 MiB:
// who reads files line by line has a limit.
class LineWriter {
 public:
  // `kind`: "Spans" or "Metrics".
  LineWriter(OutputFile& out, std::string_view kind) : out_(out), kind_(kind) {}
  // What is added from now on belongs to these.
  void begin(const Json& resource, const Json& scope);
  void add(const Json& item);
  // Writes what is still held back.
  void end();

 private:
  static constexpr size_t kLineBytes =
      size_t{512} * 1024;  // a line ends with the item that reaches it

  OutputFile& out_;
  const std::string kind_;
  std::string before_, items_;
};

}  // namespace gpuprof::otlp
