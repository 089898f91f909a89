// SPDX-License-Identifier: Apache-2.0
// A page that needs no other file and no network. What it shows is in it as JSON, too; its script
// draws charts and tables from that.
#pragma once

#include <string>
#include <string_view>

#include "tools/describe.h"

namespace gpuprof {

// Text as it stands in HTML, between tags or in an attribute.
std::string html_text(std::string_view text);
// The same of a JSON value that is a string.
inline std::string html_text_of(const Json& text) {
  return html_text(text.get_ref<const std::string&>());
}

// One of the figures at the top of a page: a `div` for its section "figures".
std::string html_figure(std::string_view id, std::string_view name, std::string_view value,
                        std::string_view note);
// A JSON number of microseconds, for people.
std::string us_text(const Json& us);

struct HtmlPage {
  std::string command;               // that makes it: "gpuprof report"
  std::string title, body, footing;  // HTML
  std::string data;                  // JSON
  bool charts = true;                // else the library that draws them is left out
};

std::string html_page(const HtmlPage& page);

}  // namespace gpuprof
