// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "formats/writers/exporter.h"

namespace gpuprof {

// Flame graphs for speedscope.app, for each process: GPU time by what launched it (ranges,
// operators, native stack, call, kernel). A second one has the idle time before that work. See
// Exporter::write.
bool write_speedscope(const Trace& trace, const std::string& path, const ExportOptions& options,
                      std::string& error);

}  // namespace gpuprof
