// SPDX-License-Identifier: Apache-2.0
// Options that commands which name functions of native stacks share.
#pragma once

#include <CLI/CLI.hpp>

#include "tools/symbols/symbolizer.h"

namespace gpuprof {

// --debug-dir DIR, as often as wanted: searched before the system's folder.
void add_debug_dirs(CLI::App& app, SymbolOptions& out);

}  // namespace gpuprof
