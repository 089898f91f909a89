// SPDX-License-Identifier: Apache-2.0
#include "tools/otlp/json_lines.h"

#include <fmt/format.h>

#include <utility>

namespace gpuprof::otlp {

void Attributes::add(std::string_view key, const char* type, Json value) {
  list_.push_back({{"key", key}, {"value", {{type, std::move(value)}}}});
}

void Attributes::text(std::string_view key, std::string_view value) {
  if (!value.empty()) add(key, "stringValue", value);
}

void Attributes::whole(std::string_view key, int64_t value) {
  add(key, "intValue", std::to_string(value));
}

void Attributes::texts(std::string_view key, const std::vector<std::string>& values) {
  Json list = Json::array();
  for (const std::string& value : values) list.push_back({{"stringValue", value}});
  if (!values.empty()) add(key, "arrayValue", {{"values", std::move(list)}});
}

Json unix_nano(int64_t ns) { return std::to_string(ns); }

void LineWriter::begin(const Json& resource, const Json& scope) {
  end();
  before_ = fmt::format(R"({{"resource{}":[{{"resource":{},"scope{}":[{{"scope":{},"{}":[)", kind_,
                        dump_json(resource), kind_, dump_json(scope),
                        kind_ == "Spans" ? "spans" : "metrics");
}

void LineWriter::add(const Json& item) {
  if (!items_.empty()) items_ += ',';
  items_ += dump_json(item);
  if (before_.size() + items_.size() >= kLineBytes) end();
}

void LineWriter::end() {
  if (items_.empty()) return;
  out_.write(before_);
  out_.write(items_);
  out_.write("]}]}]}\n");
  items_.clear();
}

}  // namespace gpuprof::otlp
