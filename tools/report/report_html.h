// SPDX-License-Identifier: Apache-2.0
// The report as one HTML page that needs no other file and no network. What it shows is in it as
// the JSON of report_json.h; verdict, parts of a step and findings can be read without JavaScript.
#pragma once

#include <string>

#include "tools/describe.h"

namespace gpuprof {

// `report`: of report_json(). Texts of any bytes are shown as text.
std::string report_html(const Json& report);

}  // namespace gpuprof
