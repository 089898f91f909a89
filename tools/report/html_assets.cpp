// SPDX-License-Identifier: Apache-2.0
#include "tools/report/html_assets.h"

// Defined in html_files.S.
extern "C" {
extern const char gpuprof_html_page[], gpuprof_html_page_end[];
extern const char gpuprof_html_style[], gpuprof_html_style_end[];
extern const char gpuprof_html_script[], gpuprof_html_script_end[];
extern const char gpuprof_html_chart[], gpuprof_html_chart_end[];
extern const char gpuprof_html_licence[], gpuprof_html_licence_end[];
}

namespace gpuprof {
namespace {

std::string_view between(const char* begin, const char* end) {
  return {begin, static_cast<size_t>(end - begin)};
}

}  // namespace

HtmlAssets html_assets() {
  return {between(gpuprof_html_page, gpuprof_html_page_end),
          between(gpuprof_html_style, gpuprof_html_style_end),
          between(gpuprof_html_script, gpuprof_html_script_end),
          between(gpuprof_html_chart, gpuprof_html_chart_end),
          between(gpuprof_html_licence, gpuprof_html_licence_end)};
}

}  // namespace gpuprof
