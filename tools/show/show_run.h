// SPDX-License-Identifier: Apache-2.0
// A run's report, as a page in the browser or as a few lines.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace gpuprof {

// Writes the page to `output`; if that is empty, beside the input; if that cannot be
// written, into this user's directory for temporary files. Returns its path. Throws
// Failure.
std::string write_page(const std::vector<std::string>& inputs, const std::string& output);

// Shows a page of this machine. Over ssh it is served on 127.0.0.1:`port`, once, and a line says
// what to forward.
void show_page(const std::string& path, uint16_t port);

// Serves a Perfetto trace to ui.perfetto.dev, which a browser opens, as Perfetto's own scripts do.
void show_in_perfetto(const std::vector<std::string>& inputs, uint16_t port);

// After a run: `format` is "verdict" (at most ten lines on standard error), "text", or "json" or
// "html", which are written into the run's folder. `name` says what a path is called for people.
using NamePath = std::function<std::string(const std::string& path)>;
void report_run(const std::string& folder, const std::string& format, const NamePath& name);

}  // namespace gpuprof
