// SPDX-License-Identifier: Apache-2.0
// What changed between two runs as one HTML page (html_page.h). What it says can be read without
// JavaScript, the table of changes cannot.
#pragma once

#include <string>

#include "tools/describe.h"

namespace gpuprof {

// `diff`: of diff_json(). Texts of any bytes are shown as text.
std::string diff_html(const Json& diff);

}  // namespace gpuprof
