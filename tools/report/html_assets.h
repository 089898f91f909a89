// SPDX-License-Identifier: Apache-2.0
// The files that the report's page is made of, as they were when the command was built.
#pragma once

#include <string_view>

namespace gpuprof {

struct HtmlAssets {
  std::string_view page;     // with places {{name}} to fill in
  std::string_view style;    // CSS
  std::string_view script;   // what draws the charts and sorts the tables
  std::string_view chart;    // Chart.js
  std::string_view licence;  // of Chart.js
};

HtmlAssets html_assets();

}  // namespace gpuprof
