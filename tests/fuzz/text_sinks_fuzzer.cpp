// SPDX-License-Identifier: Apache-2.0
// Arbitrary bytes as a name on its way to a terminal, a page or JSON: none of them acts there, ends
// what it stands in, or makes it something that cannot be read.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "formats/io/json_text.h"
#include "tools/console.h"
#include "tools/report/html_page.h"

namespace {

using namespace gpuprof;

void require(bool holds) {
  if (!holds) std::abort();
}

// Well-formed UTF-8, of which no code point acts on a terminal, line breaks and tabs apart.
void require_shown(std::string_view text, bool lines) {
  while (!text.empty()) {
    const size_t length = utf8_length(text);
    require(length != 0);
    const auto at = [&](size_t i) { return static_cast<uint32_t>(static_cast<uint8_t>(text[i])); };
    uint32_t code = at(0);
    if (length == 2) code = (code & 0x1f) << 6 | (at(1) & 0x3f);
    if (length == 3) code = (code & 0x0f) << 12 | (at(1) & 0x3f) << 6 | (at(2) & 0x3f);
    const bool is_break = code == '\n' || code == '\t';
    require(length == 4 || !acts_on_terminal(code) || (lines && is_break));
    text.remove_prefix(length);
  }
}

void check_terminal(std::string_view text) {
  const std::string line = escaped(text), lines = escaped(text, Layout::lines);
  require_shown(line, false);
  require_shown(lines, true);
  require(escaped(line) == line);  // once is enough
}

void check_html(std::string_view text) {
  const std::string html = html_text(text);
  require_shown(html, true);
  require(html.find_first_of("<>\"'") == std::string::npos);
  for (size_t at = html.find('&'); at != std::string::npos; at = html.find('&', at + 1)) {
    const std::string_view rest = std::string_view(html).substr(at);
    const std::string_view entities[] = {"&amp;", "&lt;", "&gt;", "&quot;", "&#39;"};
    require(std::any_of(std::begin(entities), std::end(entities),
                        [&](std::string_view entity) { return rest.starts_with(entity); }));
  }
}

void check_json(std::string_view text) {
  std::string json;
  append_json_text(json, text);
  require(nlohmann::json::parse(json, nullptr, false).is_string());
}

// The data of a page is between two tags, and is what was put in.
void check_page(std::string_view text) {
  const Json data = {{"name", std::string(text)}};
  HtmlPage page{"gpuprof report", html_text(text), html_text(text), "", dump_json(data), false};
  const std::string html = html_page(page);
  require_shown(html, true);
  const std::string_view begin = "id=\"report\">", end = "</script>";
  const size_t at = html.find(begin);
  require(at != std::string::npos);
  const std::string_view rest = std::string_view(html).substr(at + begin.size());
  const std::string_view inside = rest.substr(0, rest.find(end));
  const Json read = Json::parse(inside, nullptr, false);
  require(read.is_object() && read == Json::parse(dump_json(data)));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  check_terminal(text);
  check_html(text);
  check_json(text);
  check_page(text);
  return 0;
}
