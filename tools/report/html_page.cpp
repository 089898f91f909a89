// SPDX-License-Identifier: Apache-2.0
#include "tools/report/html_page.h"

#include <fmt/format.h>

#include <map>

#include "tools/console.h"
#include "tools/report/html_assets.h"

namespace gpuprof {
namespace {

// JSON that no HTML parser takes for markup, and in which nothing turns the direction of writing.
std::string for_script(const std::string& json) {
  std::string out;
  out.reserve(json.size());
  for (const char c : escaped(json, Layout::lines)) {
    switch (c) {
      case '<': out += "\\u003c"; break;
      case '>': out += "\\u003e"; break;
      case '&': out += "\\u0026"; break;
      default: out += c;
    }
  }
  return out;
}

// What is filled in is not looked through again.
std::string filled(std::string_view page, const std::map<std::string_view, std::string_view>& at) {
  std::string out;
  while (!page.empty()) {
    const size_t begin = page.find("{{");
    out += page.substr(0, begin);
    if (begin == std::string_view::npos) break;
    const size_t end = page.find("}}", begin);
    out += at.at(page.substr(begin + 2, end - begin - 2));
    page.remove_prefix(end + 2);
  }
  return out;
}

}  // namespace

std::string html_text(std::string_view text) {
  std::string out;
  for (const char c : escaped(text, Layout::lines)) {
    switch (c) {
      case '&': out += "&amp;"; break;
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '"': out += "&quot;"; break;
      case '\'': out += "&#39;"; break;
      default: out += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
    }
  }
  return out;
}

std::string html_figure(std::string_view id, std::string_view name, std::string_view value,
                        std::string_view note) {
  return fmt::format("<div id=\"{}\"><span>{}</span><b>{}</b><small>{}</small></div>\n", id, name,
                     value, note);
}

std::string us_text(const Json& us) { return format_duration(us.get<double>() * 1000); }

std::string html_page(const HtmlPage& page) {
  const HtmlAssets assets = html_assets();
  const std::string data = for_script(page.data);
  const auto chart = [&](std::string_view text) { return page.charts ? text : std::string_view(); };
  return filled(assets.page, {{"command", page.command},
                              {"title", page.title},
                              {"style", assets.style},
                              {"body", page.body},
                              {"footing", page.footing},
                              {"data", data},
                              {"licence", chart(assets.licence)},
                              {"chart", chart(assets.chart)},
                              {"script", assets.script}});
}

}  // namespace gpuprof
