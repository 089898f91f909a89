// SPDX-License-Identifier: Apache-2.0
// What `gpuprof export` is asked for. The command and the program that writes the files read it
// from the same arguments.
#pragma once

#include <string>
#include <vector>

#include "formats/job_choice.h"
#include "tools/symbols/symbol_options.h"

namespace gpuprof {

struct ExportRequest {
  std::vector<std::string> inputs;
  std::string format, output;
  std::string signal;  // otlp: "traces" or "metrics"; empty: both
  std::string ranks;   // as read_ranks() takes them; empty: all
  JobChoice choice;
  SymbolOptions symbols;
};

void add_export_options(CLI::App& app, ExportRequest& request);

}  // namespace gpuprof
